"""PATTERNS: what a series repeats in segments of a given period."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from nilometer.mining.frequent_sets import SetKind
from nilometer.mining.partial_patterns import PartialPatterns, Pattern
from nilometer.mining.several_periods import SeveralPeriods
from nilometer.mining.symbol_miner import OPTIONS, VALUE, SymbolMiner, check_series
from nilometer.mining.symbols import Alphabet
from nilometer.mining.table_function import (
    CheckedCall,
    ColumnArgument,
    MiningError,
    OptionArgument,
    OptionKind,
    ResultColumn,
    Saved,
    TableArgument,
    Tables,
    WindowUse,
    result_rows,
)

RESULTS: Final = (
    ResultColumn("pattern", pa.string()),
    ResultColumn("length", pa.int64()),
    ResultColumn("support", pa.int64()),
    ResultColumn("missed", pa.int64()),
    ResultColumn("segments", pa.int64()),
    ResultColumn("confidence", pa.float64()),
    ResultColumn("complete", pa.bool_()),
)

SEVERAL_RESULTS: Final = (ResultColumn("period", pa.int64()), *RESULTS)
LONGEST: Final = 100_000

Mined = PartialPatterns | SeveralPeriods


class PatternsFunction:
    """Mines partial periodic patterns."""

    name = "PATTERNS"
    about = "what a series does again and again in segments of a given period"
    columns: Sequence[ColumnArgument] = (VALUE,)
    options: Sequence[OptionArgument] = (
        OptionArgument(
            "period",
            OptionKind.INTEGER,
            "the length of a segment, in samples",
            minimum=1,
            maximum=LONGEST,
        ),
        OptionArgument(
            "periods",
            OptionKind.NUMBERS,
            "several segment lengths instead, each mined separately; the answer then has a "
            "further column, period, the length that a pattern belongs to",
        ),
        OptionArgument(
            "confidence",
            OptionKind.NUMBER,
            "the minimum share of segments that follow a pattern",
            default=0.8,
            minimum=0.01,
            maximum=1,
        ),
        OptionArgument(
            "report",
            OptionKind.TEXT,
            "maximal: patterns without a longer frequent one around them; closed: those without a "
            "longer one that is as frequent; all: all that are frequent",
            default=SetKind.MAXIMAL.value,
            choices=tuple(one.value for one in SetKind),
        ),
        OptionArgument(
            "most",
            OptionKind.INTEGER,
            "how many patterns are reported, the longest first",
            default=100,
            minimum=1,
            maximum=10_000,
        ),
        OptionArgument(
            "hits",
            OptionKind.INTEGER,
            "how many different segments are kept; with more, supports are lower bounds (missed)",
            default=1000,
            minimum=1,
            maximum=100_000,
        ),
        *OPTIONS,
    )
    tables: Sequence[TableArgument] = ()
    window = WindowUse.ALLOWED
    needs: Sequence[str] = ()

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        """The columns of a pattern."""
        check_series(call)
        return RESULTS if periods_of(call) is None else SEVERAL_RESULTS

    def miner(self, call: CheckedCall, tables: Tables, saved: Saved | None) -> SymbolMiner[Mined]:
        """The miner of one key."""
        return SymbolMiner(self, call, saved)

    def start(self, call: CheckedCall, symbols: Alphabet) -> Mined:
        """A series without samples."""
        options = call.options
        if (periods := periods_of(call)) is not None:
            return SeveralPeriods(periods, options["confidence"], symbols, hits=options["hits"])
        return PartialPatterns(
            options["period"], options["confidence"], symbols, hits=options["hits"]
        )

    def load(self, saved: Saved) -> Mined:
        """Restore a saved series."""
        return SeveralPeriods.load(saved) if "periods" in saved else PartialPatterns.load(saved)

    def report(self, call: CheckedCall, mined: Mined) -> pa.RecordBatch:
        """A row for each pattern, the longest first; with several periods, one after the other."""
        patterns = mined.patterns(call.options["report"], call.options["most"])
        return result_rows(self.results(call), [_row(one) for one in patterns])


def periods_of(call: CheckedCall) -> list[int] | None:
    """The periods, if the call has several; raises an error if they are invalid."""
    option = call.options["periods"]
    if (option is None) == (call.options["period"] is None):
        raise MiningError(
            "PATTERNS needs a period, or several, and not both",
            hint="write period => 24, or periods => [24, 168]",
        )
    if option is None:
        return None
    periods = [int(one) for one in option]
    if (
        not periods
        or list(option) != periods
        or len(set(periods)) < len(periods)
        or not all(1 <= one <= LONGEST for one in periods)
    ):
        raise MiningError(
            f"periods are different whole numbers from 1 to {LONGEST}",
            detail=f"got {', '.join(f'{one:g}' for one in option) or 'none'}",
        )
    return periods


def _row(one: Pattern) -> dict[str, object]:
    shown = {"pattern": one.text, "length": one.length, "confidence": one.confidence}
    return vars(one) | shown | {"period": len(one.symbols)}


FUNCTION: Final = PatternsFunction()
