"""The sum of vectors over a sliding window of time, exact for whole numbers, never drifting.

A sum from which departing rows are subtracted accumulates the rounding errors of all rows it ever
had. Here nothing is subtracted: the window is split in two. For the older part the sums from each
row to the split are kept, for the newer part the rows and their sum; the answer adds one of each.
When the older part is used up, the newer one replaces it (the queue of two stacks; see Tangwongsan,
Hirzel, Schneider: Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time, DEBS 2017,
section 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nilometer.kernels.arrays import Int64s
from nilometer.mining.table_function import Numbers, Saved


@dataclass(frozen=True)
class Total:
    """The sums of vectors and of live times over the rows of a window, and the first row's time."""

    total: Numbers
    live: float
    rows: int
    since: int


class RunningTotal:
    """The sums over rows of the last `window` microseconds, both ends included.

    >>> exposure = RunningTotal(window=10)
    >>> exposure.add(0, [1, 2], live=0.5).total.tolist()
    [1.0, 2.0]
    >>> exposure.add(10, [10, 20], live=0.5)
    Total(total=array([11., 22.]), live=1.0, rows=2, since=0)
    >>> exposure.add(11, [100, 200], live=0.5).total.tolist()
    [110.0, 220.0]
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._times: list[int] = []
        self._first = 0
        """The index of the first time in the window."""
        self._old: Numbers = np.zeros((0, 1))
        """Sums from each row to the end of the older part; the last row is at the split."""
        self._new: list[Numbers] = []
        self._sum: Numbers = np.zeros(1)
        """The sum of the newer part."""

    @property
    def last(self) -> int | None:
        """The time of the last row; None if there is none."""
        return self._times[-1] if self._times else None

    def add(self, time: int, vector: object, live: float = 0.0) -> Total | None:
        """The sums over the window that ends with this row.

        None if the length differs from that of the rows in the window; the row is then ignored.
        """
        row = np.append(np.asarray(vector, np.float64), live) + 0.0  # -0.0 is 0.0
        self._expire(time - self._window)
        if self._rows and len(row) != len(self._total()):
            return None
        self._times.append(time)
        self._new.append(row)
        self._sum = row if len(self._new) == 1 else self._sum + row
        total = self._total()
        return Total(total[:-1], float(total[-1]), self._rows, self._times[self._first])

    def save(self) -> Saved:
        """The rows of the window and their sums; whole numbers are stored compactly."""
        length = len(self._sum)
        return {
            "times": np.array(self._times[self._first :], np.int64),
            **_saved("old", self._old[len(self._old) - self._olds :].reshape(-1, length)),
            **_saved("new", np.array(self._new).reshape(len(self._new), length)),
            **_saved("sum", self._sum.reshape(1, length)),
        }

    def load(self, saved: Saved) -> None:
        """Restore from a saved state."""
        times: Int64s = saved["times"]
        self._times, self._first = times.tolist(), 0
        self._old, self._new = _loaded("old", saved), list(_loaded("new", saved))
        (self._sum,) = _loaded("sum", saved)

    @property
    def _rows(self) -> int:
        return len(self._times) - self._first

    @property
    def _olds(self) -> int:
        """The number of rows of the window in the older part."""
        return self._rows - len(self._new)

    def _total(self) -> Numbers:
        if not self._olds:
            return self._sum
        oldest: Numbers = self._old[len(self._old) - self._olds]
        return oldest + self._sum if self._new else oldest

    def _expire(self, before: int) -> None:
        while self._rows and self._times[self._first] < before:
            if not self._olds:
                self._turn()
            self._first += 1
        if not self._rows:
            self._times, self._first = [], 0

    def _turn(self) -> None:
        """Turn the newer part into the older one."""
        self._old = np.add.accumulate(np.array(self._new)[::-1], axis=0)[::-1]
        self._new = []
        del self._times[: self._first]
        self._first = 0


def _saved(name: str, rows: Numbers) -> Saved:
    """Rows of numbers, with the last of each apart: it is seldom a whole number."""
    return {name: _narrow(rows[:, :-1]), f"{name}_live": rows[:, -1]}


def _loaded(name: str, saved: Saved) -> Numbers:
    return np.column_stack([saved[name].astype(np.float64), saved[f"{name}_live"]])


def _narrow(values: Numbers) -> npt.NDArray[Any]:
    """The same numbers in the smallest integer type that holds all of them exactly."""
    largest = np.abs(values).max(initial=0.0)
    for kind in (np.int8, np.int16, np.int32):
        if largest <= np.iinfo(kind).max:
            whole = values.astype(kind)
            return whole if np.array_equal(whole, values) else values
    return values
