"""ACCUMULATE against adding up the rows of every window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.mining.accumulate import FUNCTION
from nilometer.mining.registry import find_function
from nilometer.mining.running_total import RunningTotal
from nilometer.mining.saved_state import decode, encode
from nilometer.mining.table_function import CheckedCall, Follower, Saved

WINDOW = 10
LISTS = pa.list_(pa.float64())

whole = st.integers(-(2**40), 2**40).map(float)
broken = st.sampled_from([0.1, 1e300, -1e300, 1e-300, 1 / 3, -0.0, 1e16, 1.0])
vectors = st.one_of(
    st.none(),
    st.lists(whole, min_size=0, max_size=3),
    st.lists(st.one_of(whole, st.none(), st.just(math.nan)), min_size=2, max_size=2),
    st.lists(whole, min_size=2, max_size=2),
)
lives = st.one_of(st.none(), st.integers(0, 8).map(lambda eighths: eighths / 8))
gaps = st.sampled_from([0, 0, 1, 3, 10, 11, 25])


def follower(saved: Saved | None = None) -> Follower:
    return FUNCTION.follower(CheckedCall({"value": LISTS}, {}, WINDOW), {}, saved)


def follow(
    one: Follower, rows: list[tuple[int, Any, Any]], first: int = 0
) -> list[tuple[Any, ...]]:
    times = np.array([time for time, _, _ in rows], np.int64)
    value = pa.array([vector for _, vector, _ in rows], LISTS)
    live = pa.array([live for _, _, live in rows], pa.float64())
    result = one.follow(times, {"value": value, "live": live})
    columns = [column.to_pylist() for column in result.columns[:3]]
    since = result.columns[3].cast(pa.int64()).to_pylist()
    numbers = [first + row for row in result.rows.tolist()]
    return list(zip(numbers, *columns, since, strict=True))


def brute_force(rows: list[tuple[int, Any, Any]]) -> list[tuple[Any, ...]]:
    history: list[tuple[int, Any, Any]] = []
    results: list[tuple[Any, ...]] = []
    for number, (time, vector, live) in enumerate(rows):
        if not vector or live is None or any(x is None or math.isnan(x) for x in vector):
            continue
        window = [one for one in history if time - WINDOW <= one[0]]
        if window and len(window[0][1]) != len(vector):
            continue
        history.append((time, vector, live))
        window.append(history[-1])
        total = [math.fsum(column) for column in zip(*(one[1] for one in window), strict=True)]
        added = math.fsum(one[2] for one in window)
        results.append((number, total, added, len(window), window[0][0]))
    return results


@st.composite
def stories(draw: st.DrawFn, vector: Any = vectors) -> list[tuple[int, Any, Any]]:
    rows: list[tuple[int, Any, Any]] = []
    time = 0
    for gap, value, live in draw(st.lists(st.tuples(gaps, vector, lives), max_size=30)):
        time += gap
        rows.append((time, value, live))
    return rows


@settings(max_examples=100, deadline=None)
@given(stories(), st.lists(st.integers(0, 30), max_size=4))
def test_sums_of_whole_numbers_are_exact_for_any_split(
    rows: list[tuple[int, Any, Any]], cuts: list[int]
) -> None:
    expected = brute_force(rows)
    assert follow(follower(), rows) == expected
    ends = sorted({*(cut for cut in cuts if cut < len(rows)), len(rows)})
    got: list[tuple[Any, ...]] = []
    saved: bytes | None = None
    begin = 0
    for end in ends:
        one = follower(None if saved is None else decode(saved))
        got += follow(one, rows[begin:end], begin)
        saved = None if one.dead_after() is None else encode(one.save())
        begin = end
    assert got == expected


@settings(max_examples=80, deadline=None)
@given(stories(st.lists(broken, min_size=2, max_size=2)), st.integers(0, 30))
def test_other_numbers_are_the_same_to_the_last_bit_for_any_split(
    rows: list[tuple[int, Any, Any]], cut: int
) -> None:
    at_once = follow(follower(), rows)
    one = follower()
    before = follow(one, rows[:cut])
    other = follower(decode(encode(one.save())))
    assert repr(before + follow(other, rows[cut:], cut)) == repr(at_once)


def test_what_leaves_takes_its_rounding_along() -> None:
    running = RunningTotal(WINDOW)
    rng = np.random.default_rng(1)
    for time in range(5_000):
        total = running.add(time, [1e18 if time == 100 else rng.random()])
    assert total is not None
    rng = np.random.default_rng(1)
    last = [rng.random() for _ in range(4_999)][-11:]
    assert total.total[0] == pytest.approx(math.fsum(last), rel=1e-14)


def test_the_state_is_the_window_and_small_for_counts() -> None:
    running = RunningTotal(WINDOW)
    counts = np.arange(1024) % 100
    for time in range(1_000):
        running.add(time, counts, 0.25)
    size = len(encode(running.save()))
    for time in range(1_000, 9_000):
        running.add(time, counts, 0.25)
    assert len(encode(running.save())) <= size + 20 * 1024
    assert size < 12 * 1024 * 2 + 2_000


def test_a_state_is_worth_nothing_once_its_rows_have_left() -> None:
    one = follower()
    assert one.dead_after() is None
    assert follow(one, [(5, [1.0], 1.0), (7, None, 1.0)]) == [(0, [1.0], 1.0, 1, 5)]
    assert one.dead_after() == 15
    assert follow(one, [(15, [2.0], 1.0)]) == [(0, [3.0], 2.0, 2, 5)]
    assert follow(one, [(26, [7.0, 7.0], 1.0)]) == [(0, [7.0, 7.0], 1.0, 1, 26)]


def test_without_live_times_their_total_is_null() -> None:
    result = follower().follow(np.array([1]), {"value": pa.array([[1, 2]], pa.list_(pa.int32()))})
    assert [column.to_pylist() for column in result.columns[:3]] == [[[1.0, 2.0]], [None], [1]]


def test_the_columns_are_those_that_were_announced() -> None:
    function = find_function("ACCUMULATE")
    announced = function.results(CheckedCall({"value": LISTS}, {}, WINDOW))
    result = follower().follow(np.zeros(0, np.int64), {"value": pa.array([], LISTS)})
    assert [one.name for one in announced] == ["total", "live_total", "rows", "since"]
    assert [column.type for column in result.columns] == [one.kind for one in announced]
