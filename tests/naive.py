"""Slow and obvious versions of what the kernels do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import isnan

from nilometer.kernels.rows_window import RowsWindow
from nilometer.model.network import TimeNetwork
from tests.cases import Row
from tests.graph_cases import CHOSEN, ID, GraphCase, GraphRow

Result = tuple[int, ...]
"""The numbers of the joined rows, stream by stream."""


def window_join(
    streams: Sequence[Sequence[Row]],
    network: TimeNetwork,
    keyed: bool = True,
    test: Callable[[tuple[Row, ...]], bool] = lambda _: True,
) -> list[Result]:
    """All combinations that satisfy every window as it was written, sorted."""
    results = []
    usable = [
        [row for row in rows if row[0] is not None and (not keyed or row[1] is not None)]
        for rows in streams
    ]
    for rows in _combinations(usable, network.given, keyed):
        if test(rows):
            results.append(tuple(row[3] for row in rows))
    return sorted(results)


def _combinations(
    streams: Sequence[Sequence[Row]], bounds: Sequence[Sequence[int]], keyed: bool
) -> list[tuple[Row, ...]]:
    combinations: list[tuple[Row, ...]] = [()]
    for j, rows in enumerate(streams):
        combinations = [
            (*chosen, row)
            for chosen, row in product(combinations, rows)
            if all(_fits(chosen[i], row, bounds[i][j], bounds[j][i], keyed) for i in range(j))
        ]
    return combinations


def _fits(earlier: Row, row: Row, ahead: int, behind: int, keyed: bool) -> bool:
    assert earlier[0] is not None
    assert row[0] is not None
    difference = row[0] - earlier[0]
    return -behind <= difference <= ahead and (not keyed or earlier[1] == row[1])


def graph_join(case: GraphCase, before: float = float("inf")) -> list[Result]:
    """All results of a join of any shape whose time is strictly before an instant, sorted."""
    timed = [[row for row in rows if row[0] is not None] for rows in case.streams]
    results = []
    for rows in _graph_combinations(case, timed):
        time = max(row[0] for row in rows if row[0] is not None)
        windows = zip(rows, case.rows, timed, strict=True)
        if time < before and all(_is_among_last(*one, time) for one in windows):
            results.append((time, *(row[ID] for row in rows)))
    return sorted(results)


def _graph_combinations(
    case: GraphCase, timed: Sequence[Sequence[GraphRow]]
) -> list[tuple[GraphRow, ...]]:
    combinations: list[tuple[GraphRow, ...]] = [()]
    for j, rows in enumerate(timed):
        usable = [row for row in rows if _may_join(case, j, row)]
        combinations = [
            (*chosen, row)
            for chosen, row in product(combinations, usable)
            if all(_belong_together(case, i, j, chosen[i], row) for i in range(j))
        ]
    return combinations


def _may_join(case: GraphCase, stream: int, row: GraphRow) -> bool:
    window = case.rows[stream]
    if window is not None and window.selected is not None and not row[CHOSEN]:
        return False
    return all(row[c] is not None for columns in case.keys[stream] for c in columns or ())


def _belong_together(case: GraphCase, i: int, j: int, mine: GraphRow, row: GraphRow) -> bool:
    assert mine[0] is not None
    assert row[0] is not None
    given = case.network.given
    if not -given[j][i] <= row[0] - mine[0] <= given[i][j]:
        return False
    both = zip(case.keys[i], case.keys[j], strict=True)
    return all(
        _order(mine, a) == _order(row, b) for a, b in both if a is not None and b is not None
    )


def _is_among_last(
    row: GraphRow, window: RowsWindow | None, rows: Sequence[GraphRow], time: int
) -> bool:
    """Whether fewer than n rows of the partition come later in the order, up to a time."""
    if window is None:
        return True
    place = (0, *window.order)
    partition = _order(row, window.partition)
    own = [other for other in rows if _order(other, window.partition) == partition]
    later = [
        other
        for other in own
        if other[0] is not None and other[0] <= time and _order(other, place) > _order(row, place)
    ]
    return len(later) < window.count


def _order(row: GraphRow, columns: Sequence[int]) -> tuple[tuple[bool, bool, float], ...]:
    """Values as keys that Python compares like Spark does: NULLs first, NaN last."""
    return tuple(_rank(row[c]) for c in columns)


def _rank(value: float | None) -> tuple[bool, bool, float]:
    if value is None:
        return (False, False, 0)
    return (True, True, 0) if isnan(value) else (True, False, value)
