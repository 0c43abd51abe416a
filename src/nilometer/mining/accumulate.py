"""ACCUMULATE in FROM: after each row, the sum of arrays over the window of its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.mining.ragged_vectors import as_vectors
from nilometer.mining.running_total import RunningTotal, Total
from nilometer.mining.table_function import (
    CheckedCall,
    ColumnArgument,
    Columns,
    FollowFunction,
    Numbers,
    OptionArgument,
    ResultColumn,
    RowResults,
    Saved,
    TableArgument,
    Tables,
    Takes,
    WindowUse,
)
from nilometer.mining.vectors import as_numbers

_INSTANT: Final = pa.timestamp("us", tz="UTC")


class Accumulating:
    """The sums of one key."""

    def __init__(self, window: int, saved: Saved | None) -> None:
        self._window = window
        self._running = RunningTotal(window)
        if saved is not None:
            self._running.load(saved)

    def follow(self, times: Int64s, columns: Columns) -> RowResults:
        vectors = as_vectors(columns["value"])
        live = as_numbers(columns["live"]) if "live" in columns else np.zeros(len(times))
        rows: list[int] = []
        totals: list[Total] = []
        for row, (vector, usable) in enumerate(zip(vectors, np.isfinite(live), strict=True)):
            if vector is None or not usable:
                continue
            total = self._running.add(int(times[row]), vector, float(live[row]))
            if total is not None:
                rows.append(row)
                totals.append(total)
        return RowResults(np.array(rows, np.int64), _columns(totals, "live" in columns))

    def dead_after(self) -> int | None:
        last = self._running.last
        return None if last is None else last + self._window

    def save(self) -> Saved:
        return self._running.save()


def _columns(totals: Sequence[Total], has_live: bool) -> tuple[pa.Array, ...]:
    return (
        _lists([one.total for one in totals]),
        pa.array([one.live if has_live else None for one in totals], pa.float64()),
        pa.array([one.rows for one in totals], pa.int64()),
        pa.array([one.since for one in totals], _INSTANT),
    )


def _lists(vectors: Sequence[Numbers]) -> pa.Array:
    ends = np.cumsum([0, *(len(one) for one in vectors)], dtype=np.int32)
    values = np.concatenate([np.zeros(0), *vectors])
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values))


class Accumulate:
    """The sum of arrays, and of live times, over the rows of each key in a window."""

    name = "ACCUMULATE"
    about = "after each row, the sum of arrays over the rows of its key in the window"
    columns = (
        ColumnArgument(
            "value",
            Takes.NUMBERS,
            "the arrays to add up, place by place; a row whose array has another length than "
            "those in the window, or a NULL or NaN in it, is left out",
        ),
        ColumnArgument(
            "live", Takes.NUMBER, "a number to add up beside them, such as the live time", False
        ),
    )
    options: tuple[OptionArgument, ...] = ()
    tables: tuple[TableArgument, ...] = ()
    window = WindowUse.NEEDED
    needs: tuple[str, ...] = ()

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        return (
            ResultColumn("total", pa.list_(pa.float64())),
            ResultColumn("live_total", pa.float64()),
            ResultColumn("rows", pa.int64()),
            ResultColumn("since", _INSTANT),
        )

    def follower(self, call: CheckedCall, tables: Tables, saved: Saved | None) -> Accumulating:
        assert call.window is not None
        return Accumulating(call.window, saved)


FUNCTION: Final[FollowFunction] = Accumulate()
