"""Values in sorted runs against plain lists."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nilometer.kernels import value_runs
from nilometer.kernels.value_runs import GroupRuns, make_run

counts = st.integers(1, 3)
entries = st.lists(st.tuples(st.integers(1, 3), st.integers(-4, 4), counts), max_size=20)


@pytest.fixture(autouse=True)
def _no_group_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_runs, "_FEW", 0)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(entries, entries, st.lists(st.integers(-2, 12), min_size=8, max_size=8))
def test_bands_hold_what_they_promise(
    first: list[tuple[int, int, int]],
    second: list[tuple[int, int, int]],
    targets: list[int],
) -> None:
    held: Counter[tuple[int, int]] = Counter()
    for group, value, count in first:
        held[group, value] += count
    taken = [(g, v, -min(n, held[g, v])) for g, v, n in dict.fromkeys(second)]
    later: Counter[tuple[int, int]] = Counter()
    for group, value, count in taken:
        later[group, value] = max(later[group, value] + count, -held[group, value])
    runs = [
        make_run(*np.array(rows, np.int64).reshape(-1, 3).T)[0]
        for rows in (first, [(g, v, n) for (g, v), n in later.items()])
    ]
    alive = held + Counter()
    alive.update(later)
    content = {g: sorted((+Counter(_of(alive, g))).elements()) for g in (3, 7, 1, 2)}
    numbers = np.array(list(content))
    mine = GroupRuns(runs, numbers)
    least = np.array(targets[:4])
    most = np.maximum(np.array(targets[4:]), least + 1)
    band = mine.band(least, most)
    below, not_above = mine.counts_below(band), mine.counts_not_above(band)
    inside: Counter[tuple[int, int]] = Counter()
    for group, value, count in zip(*(part.tolist() for part in mine.entries(band)), strict=True):
        inside[group, value] += count
    for place, values in enumerate(content.values()):
        assert below[place] <= max(least[place], 0)
        assert not_above[place] >= min(most[place], len(values))
        expected = Counter(values[int(below[place]) : int(not_above[place])])
        assert +Counter(_of(inside, place)) == expected
        for value in range(-5, 6):
            got = mine.count_at_most(np.array([place]), np.array([value]))
            assert got.tolist() == [sum(v <= value for v in values)]


def _of(counter: Counter[tuple[int, int]], group: int) -> dict[int, int]:
    return {value: count for (g, value), count in counter.items() if g == group}
