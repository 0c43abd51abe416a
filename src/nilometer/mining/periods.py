"""PERIODS: the periods of the symbols of a series, and of the series as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from nilometer.mining.period_peaks import Period
from nilometer.mining.periodicity import Periodicity
from nilometer.mining.symbol_miner import OPTIONS, VALUE, SymbolMiner, check_series, uses_levels
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
from nilometer.mining.window_periodicity import WindowPeriodicity

_MOST_COUNTS: Final = 10_000_000
"""160 MB for each key."""
RESULTS: Final = (
    ResultColumn("rank", pa.int64()),
    ResultColumn("period", pa.int64()),
    ResultColumn("seconds", pa.float64()),
    ResultColumn("symbol", pa.string()),
    ResultColumn("confidence", pa.float64()),
    ResultColumn("chance", pa.float64()),
    ResultColumn("score", pa.float64()),
    ResultColumn("prominence", pa.float64()),
    ResultColumn("matches", pa.int64()),
    ResultColumn("multiple_of", pa.int64()),
    ResultColumn("phase", pa.int64()),
    ResultColumn("phase_confidence", pa.float64()),
)


class PeriodsFunction:
    """Finds after how many samples symbols recur, without a given period."""

    name = "PERIODS"
    about = "the periods of the symbols of a series and of the series as a whole"
    columns: Sequence[ColumnArgument] = (VALUE,)
    options: Sequence[OptionArgument] = (
        OptionArgument(
            "longest",
            OptionKind.INTEGER,
            "the longest period to look for, in samples; periods near it are detected less well",
            default=4096,
            minimum=2,
            maximum=1_000_000,
        ),
        OptionArgument(
            "most",
            OptionKind.INTEGER,
            "how many periods are reported for each symbol and of the whole series",
            default=10,
            minimum=1,
            maximum=1000,
        ),
        OptionArgument(
            "least",
            OptionKind.NUMBER,
            "how far the score of a period must stand out from its surroundings",
            default=0.1,
            minimum=0,
            maximum=2,
        ),
        *OPTIONS,
    )
    tables: Sequence[TableArgument] = ()
    window = WindowUse.ALLOWED
    needs: Sequence[str] = ("scipy",)

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        """The columns of a period; raises an error if there would be too many counts."""
        check_series(call)
        _check_size(call)
        return RESULTS

    def miner(
        self, call: CheckedCall, tables: Tables, saved: Saved | None
    ) -> SymbolMiner[Periodicity]:
        """The miner of one key."""
        return SymbolMiner(self, call, saved)

    def start(self, call: CheckedCall, symbols: Alphabet) -> Periodicity:
        """A series without samples; a window knows phases."""
        kind = Periodicity if call.window is None else WindowPeriodicity
        return kind(call.options["longest"], symbols)

    def load(self, saved: Saved) -> Periodicity:
        """Restore a saved series; one with a window is never saved."""
        return Periodicity.load(saved)

    def report(self, call: CheckedCall, mined: Periodicity) -> pa.RecordBatch:
        """A row for each period, the best first."""
        options = call.options
        periods = mined.periods(options["most"], options["least"])
        rows = [_row(rank, one, options["step"]) for rank, one in enumerate(periods, 1)]
        return result_rows(RESULTS, rows)


def _check_size(call: CheckedCall) -> None:
    """Refuse counts of each symbol and lag that would not fit into memory."""
    options = call.options
    symbols = options["symbols"]
    if uses_levels(call):
        symbols = len(options["breaks"]) + 1 if options["breaks"] else options["levels"]
    if symbols * options["longest"] > _MOST_COUNTS:
        raise MiningError(
            f"{symbols} symbols and periods up to {options['longest']} are too many together",
            detail=f"longest times the number of symbols may be {_MOST_COUNTS}",
            hint="choose a smaller longest, or distinguish fewer symbols",
            argument="longest",
        )


def _row(rank: int, one: Period, step: int | None) -> dict[str, object]:
    seconds = None if step is None else one.period * step / 1_000_000
    return vars(one) | {"rank": rank, "seconds": seconds}


FUNCTION: Final = PeriodsFunction()
