"""Watermarks: what is late, who holds up whom."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nilometer.kernels.admit import Punctuation
from nilometer.local.memory_store import MemoryStore
from nilometer.model.network import TimeNetwork
from nilometer.model.time import FOREVER
from nilometer.model.windows import read_windows
from nilometer.operators.stage import BucketRun, MicroBatch
from nilometer.operators.watermarks import NEVER, StreamClock, Watermarks
from tests.cases import JoinCase, to_batch


def test_a_watermark_follows_the_largest_time_and_never_goes_back() -> None:
    marks = Watermarks([StreamClock(lateness=3), StreamClock()])
    assert marks.marks == [NEVER, NEVER]
    marks.advance([10, None])
    assert marks.marks == [7, NEVER]
    marks.advance([8, 4])
    assert marks.marks == [7, 4]


def test_a_stream_that_has_ended_holds_up_nobody() -> None:
    marks = Watermarks([StreamClock(ended=True), StreamClock()])
    marks.advance([None, 5])
    assert marks.marks == [FOREVER, 5]


def test_a_silent_stream_follows_the_slowest_of_those_that_speak() -> None:
    """
    now      0    5    10   11
    A        1    20   30   31     speaks
    B        1    15   18   19     speaks, slower
    C        2                     idle after 10: follows B from 10 on
    """
    marks = Watermarks([StreamClock(), StreamClock(), StreamClock(idle=10)])
    marks.advance([1, 1, 2], now=0)
    marks.advance([20, 15, None], now=5)
    assert marks.marks == [20, 15, 2]
    marks.advance([30, 18, None], now=10)
    assert marks.marks == [30, 18, 18]
    marks.advance([31, 19, None], now=11)
    assert marks.marks == [31, 19, 19]
    marks.advance([32, 20, 3], now=12)  # it speaks again; what it says is late
    assert marks.marks == [32, 20, 19]


def test_a_stream_that_never_spoke_becomes_idle_too() -> None:
    marks = Watermarks([StreamClock(), StreamClock(idle=10)])
    marks.advance([5, None], now=0)
    assert marks.marks == [5, NEVER]
    marks.advance([6, None], now=10)
    assert marks.marks == [6, 6]


def test_when_all_are_silent_nothing_moves() -> None:
    marks = Watermarks([StreamClock(idle=1), StreamClock(idle=1)])
    marks.advance([5, 9], now=0)
    marks.advance([None, None], now=100)
    assert marks.marks == [5, 9]


def test_a_restored_clock_goes_on() -> None:
    clocks = [StreamClock(), StreamClock(idle=10)]
    first, second = Watermarks(clocks), Watermarks(clocks)
    first.advance([5, 1], now=0)
    second.restore(json.loads(json.dumps(first.snapshot())))
    for marks in (first, second):
        marks.advance([9, None], now=12)
    assert first.marks == second.marks == [9, 9]


MARKS = st.none() | st.integers(0, 30)


@given(st.lists(st.tuples(MARKS, MARKS, MARKS)))
def test_a_stated_watermark_is_the_largest_that_was_stated(steps) -> None:
    """Largest timestamps, lateness and silence do not matter then."""
    marks = Watermarks([StreamClock(lateness=2, idle=1, stated=True), StreamClock()])
    stated_before: list[int] = []
    for now, (largest, stated, other) in enumerate(steps):
        marks.advance([largest, other], now, None, [stated, None])
        stated_before += [] if stated is None else [stated]
        assert marks.marks[0] == max(stated_before, default=NEVER)


def test_stated_watermarks_need_no_clock() -> None:
    assert not StreamClock(idle=5, stated=True).needs_now
    assert StreamClock(idle=5).needs_now


def test_a_silent_stream_follows_one_whose_watermark_is_stated() -> None:
    marks = Watermarks([StreamClock(stated=True), StreamClock(idle=10)])
    marks.advance([None, 1], 0, None, [5, None])
    marks.advance([None, None], 20, None, [7, None])
    assert marks.marks == [7, 7]


@given(st.lists(st.tuples(st.lists(st.integers(0, 30), max_size=4), MARKS), max_size=6))
def test_late_is_what_is_older_than_the_watermark_stated_before_the_batch(batches) -> None:
    stage = JoinCase(TimeNetwork(("A", "B"), read_windows("5us")), ((), ()), (0, 0)).stage()
    stage = replace(stage, clocks=(StreamClock(stated=True), StreamClock(ended=True)))
    run, late, known = BucketRun(stage, MemoryStore()), 0, NEVER
    for times, stated in batches:
        rows = to_batch([(time, 1, 0, 0) for time in times])
        admitted, punctuation = stage.operator.admit(0, rows)
        batch = MicroBatch.empty(2)
        batch.add(0, [admitted], punctuation + Punctuation(watermark=stated))
        list(run.process(batch))
        late += sum(time < known for time in times)
        known = max(known, NEVER if stated is None else stated)
        assert run.operator.late[0] == late
        assert run.watermarks.marks[0] == known
