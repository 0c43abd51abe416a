"""PATTERNS: what a series does again and again in segments of a given period."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from nilometer.mining.frequent_sets import Wanted
from nilometer.mining.partial_patterns import PartialPatterns, Pattern
from nilometer.mining.symbol_miner import OPTIONS, VALUE, SymbolMiner, check_series
from nilometer.mining.symbols import Alphabet
from nilometer.mining.table_function import (
    Call,
    ColumnArgument,
    Constant,
    OptionArgument,
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


class PatternsFunction:
    """Mines partial periodic patterns."""

    name = "PATTERNS"
    about = "what a series does again and again in segments of a given period"
    columns: Sequence[ColumnArgument] = (VALUE,)
    options: Sequence[OptionArgument] = (
        OptionArgument(
            "period",
            Constant.INTEGER,
            "the length of a segment, in samples",
            required=True,
            least=1,
            most=100_000,
        ),
        OptionArgument(
            "confidence",
            Constant.NUMBER,
            "which share of the segments follows a pattern at least",
            default=0.8,
            least=0.01,
            most=1,
        ),
        OptionArgument(
            "report",
            Constant.TEXT,
            "maximal: patterns without a longer frequent one around them; closed: those without a "
            "longer one that is as frequent; all: all that are frequent",
            default=Wanted.MAXIMAL.value,
            choices=tuple(one.value for one in Wanted),
        ),
        OptionArgument(
            "most",
            Constant.INTEGER,
            "how many patterns are reported, the longest first",
            default=100,
            least=1,
            most=10_000,
        ),
        OptionArgument(
            "hits",
            Constant.INTEGER,
            "how many different segments are kept; with more, supports are lower bounds (missed)",
            default=1000,
            least=1,
            most=100_000,
        ),
        *OPTIONS,
    )
    tables: Sequence[TableArgument] = ()
    window = WindowUse.ALLOWED
    needs: Sequence[str] = ()

    def results(self, call: Call) -> tuple[ResultColumn, ...]:
        """The columns of a pattern."""
        check_series(call)
        return RESULTS

    def miner(
        self, call: Call, tables: Tables, saved: Saved | None
    ) -> SymbolMiner[PartialPatterns]:
        """What mines one key."""
        return SymbolMiner(self, call, saved)

    def start(self, call: Call, symbols: Alphabet) -> PartialPatterns:
        """A series without samples."""
        options = call.options
        return PartialPatterns(
            options["period"], options["confidence"], symbols, hits=options["hits"]
        )

    def load(self, saved: Saved) -> PartialPatterns:
        """A series that was saved."""
        return PartialPatterns.load(saved)

    def report(self, call: Call, mined: PartialPatterns) -> pa.RecordBatch:
        """A row for each pattern, the longest first."""
        found = mined.patterns(call.options["report"], call.options["most"])
        return result_rows(RESULTS, [_row(one) for one in found])


def _row(one: Pattern) -> dict[str, object]:
    shown = {"pattern": one.text, "length": one.length, "confidence": one.confidence}
    return vars(one) | shown


FUNCTION: Final = PatternsFunction()
