"""The states of groups against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels.group_instants import group_instants

events = st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3), st.integers(-5, 5)), max_size=20)


@settings(max_examples=200, deadline=None)
@given(events, st.lists(st.integers(-9, 9), min_size=4, max_size=4))
def test_totals_in_every_state(given_events: list[tuple[int, int, int]], firsts: list[int]) -> None:
    present = sorted({group for group, _, _ in given_events})
    numbers = {group: number for number, group in enumerate(present)}
    rows = [(numbers[group], time, change) for group, time, change in given_events]
    groups, times, changes = np.array(rows, np.int64).reshape(-1, 3).T
    instants = group_instants(groups, times)
    expected: list[tuple[int, int | None, int]] = []
    for number in range(len(present)):
        expected.append((number, None, firsts[number]))
        for time in sorted({t for g, t, _ in rows if g == number}):
            added = sum(c for g, t, c in rows if g == number and t <= time)
            expected.append((number, time, firsts[number] + added))
    initial = np.array(firsts[: len(present)], np.int64)
    totals = instants.running(instants.add_up(instants.states, changes), initial)
    assert instants.groups.tolist() == [number for number, _, _ in expected]
    assert totals.tolist() == [total for _, _, total in expected]
    assert instants.firsts.tolist() == [i for i, row in enumerate(expected) if row[1] is None]
    assert all(instants.times[i] == t for i, (_, t, _) in enumerate(expected) if t is not None)
    assert (np.diff(instants.states[instants.order]) >= 0).all()
    for (group, time, _), state in zip(rows, instants.states.tolist(), strict=True):
        assert expected[state][:2] == (group, time)
