"""Watermarks: what is late, who holds up whom."""

from __future__ import annotations

import json

from nilometer.model.time import FOREVER
from nilometer.operators.watermarks import NEVER, StreamClock, Watermarks


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
