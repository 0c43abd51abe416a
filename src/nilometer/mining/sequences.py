"""SEQUENCES: subsequences of symbols that occur in all streams, or in enough of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.mining.frequent_sequences import COUNTERS, FrequentSequences
from nilometer.mining.symbol_texts import symbol_texts
from nilometer.mining.table_function import (
    CheckedCall,
    ColumnArgument,
    Columns,
    MiningError,
    OptionArgument,
    OptionKind,
    ResultColumn,
    Saved,
    TableArgument,
    Tables,
    Takes,
    WindowUse,
    result_rows,
)

_MOST_ENDING: Final = 4096
"""The limit on sequences of the longest length that may end in one row; more would be too slow."""

_RESULTS: Final = (
    ResultColumn("sequence", pa.list_(pa.string())),
    ResultColumn("streams", pa.int64()),
    ResultColumn("support", pa.int64()),
    ResultColumn("occurrences", pa.int64()),
    ResultColumn("error", pa.int64()),
)


class SequenceMiner:
    """Counts the subsequences of one key."""

    def __init__(self, call: CheckedCall, saved: Saved | None) -> None:
        chosen = call.options
        self._most: int = chosen["most"]
        self._sequences = FrequentSequences(
            shortest=chosen["shortest"],
            longest=chosen["longest"],
            gap=chosen["gap"],
            span=chosen["span"],
            across=chosen["across"],
            support=chosen["support"],
            counters=None if call.window is not None else chosen["counters"],
        )
        if saved is not None:
            self._sequences.load(saved)

    def add(self, times: Int64s, columns: Columns) -> None:
        """Count what ends in the next rows."""
        self._sequences.add(times, symbol_texts(columns["stream"]), symbol_texts(columns["value"]))

    def forget(self, before: int) -> None:
        """Subtract what begins in rows that leave."""
        self._sequences.forget(before)

    def answer(self) -> pa.RecordBatch:
        """The best sequences first."""
        sequences = self._sequences.answer(self._most)
        names = [column.name for column in _RESULTS]
        return result_rows(
            _RESULTS, [{name: getattr(one, name) for name in names} for one in sequences]
        )

    def save(self) -> Saved:
        """The counts, and the rows in which occurrences can begin."""
        return self._sequences.save()


@dataclass(frozen=True)
class Sequences:
    """The table function SEQUENCES."""

    name: str = "SEQUENCES"
    about: str = "subsequences of symbols that occur across all streams"
    columns: tuple[ColumnArgument, ...] = (
        ColumnArgument(
            "stream", Takes.ANY, "which stream a row belongs to; a row with NULL is left out"
        ),
        ColumnArgument("value", Takes.ANY, "the symbol of a row; a row with NULL is left out"),
    )
    options: tuple[OptionArgument, ...] = (
        OptionArgument(
            "shortest", OptionKind.INTEGER, "the least number of symbols", default=2, minimum=1
        ),
        OptionArgument(
            "longest", OptionKind.INTEGER, "the largest number of symbols", 5, minimum=1, maximum=64
        ),
        OptionArgument(
            "gap",
            OptionKind.INTEGER,
            "how many other rows of the stream may lie between two neighbours",
            default=0,
            minimum=0,
        ),
        OptionArgument(
            "span", OptionKind.DURATION, "the longest time an occurrence may span", minimum=0
        ),
        OptionArgument(
            "across",
            OptionKind.NUMBER,
            "the share of the streams in which it must occur: 1 is all of them",
            default=1.0,
            minimum=0,
            maximum=1,
        ),
        OptionArgument(
            "support",
            OptionKind.INTEGER,
            "the least number of occurrences in such a stream",
            default=1,
            minimum=1,
        ),
        OptionArgument("most", OptionKind.INTEGER, "at most this many are reported", 20, minimum=1),
        OptionArgument(
            "counters",
            OptionKind.INTEGER,
            "how many sequences are counted in each stream; in a window all are",
            default=COUNTERS,
            minimum=1,
            maximum=1_000_000,
        ),
    )
    tables: tuple[TableArgument, ...] = ()
    window: WindowUse = WindowUse.ALLOWED
    needs: tuple[str, ...] = ()

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        """Its columns; raises an error if too many sequences could end in one row."""
        shortest, longest, gap = (call.options[name] for name in ("shortest", "longest", "gap"))
        if shortest > longest:
            raise MiningError(
                "the shortest sequence is longer than the longest",
                detail=f"shortest is {shortest}, longest is {longest}",
                argument="shortest",
            )
        if (gap + 1) ** (longest - 1) > _MOST_ENDING:
            raise MiningError(
                "too many sequences could end in one row",
                detail=f"(gap + 1) ** (longest - 1) is more than {_MOST_ENDING}",
                hint="choose a smaller gap, or a smaller longest",
                argument="gap",
            )
        return _RESULTS

    def miner(self, call: CheckedCall, tables: Tables, saved: Saved | None) -> SequenceMiner:
        """The miner of one key, new or from its saved state."""
        return SequenceMiner(call, saved)


FUNCTION: Final = Sequences()
