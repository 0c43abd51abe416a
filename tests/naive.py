"""Slow and obvious versions of what the kernels do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from nilometer.model.network import TimeNetwork
from tests.cases import Row

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
    found: list[tuple[Row, ...]] = [()]
    for j, rows in enumerate(streams):
        found = [
            (*chosen, row)
            for chosen, row in product(found, rows)
            if all(_fits(chosen[i], row, bounds[i][j], bounds[j][i], keyed) for i in range(j))
        ]
    return found


def _fits(earlier: Row, row: Row, ahead: int, behind: int, keyed: bool) -> bool:
    assert earlier[0] is not None
    assert row[0] is not None
    difference = row[0] - earlier[0]
    return -behind <= difference <= ahead and (not keyed or earlier[1] == row[1])
