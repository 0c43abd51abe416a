"""Which readings are in time, and how far the time of a log has come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from nilometer.model.time import EARLIEST, LATEST
from nilometer.sensors.manager.sensor_clock import SensorClock

MAX_AHEAD = 50


@dataclass
class NaiveSensor:
    """All times that a sensor sent and that were accepted, and when it sent last."""

    times: list[int]
    spoke: int
    by_arrival: bool
    ended: bool = False


class NaiveClock:
    """Computes everything anew from all times ever sent."""

    def __init__(self, lateness: int, idle: int | None, ends: bool) -> None:
        self.lateness, self.idle, self.ends = lateness, idle, ends
        self.sensors: dict[int, NaiveSensor] = {}
        self.watermark: int | None = None
        self.arrival: int | None = None
        self.behind: list[tuple[int, int]] = []
        """Where the log was ahead of the clock, since it was so: its time, and the clock's."""

    def arrive(self, now: int) -> int:
        low = max((one for one in (self.arrival, self.watermark) if one is not None), default=now)
        if now >= low:
            self.behind, self.arrival = [], now
        else:
            self.behind.append((low, now))
            first, then = self.behind[0]
            self.arrival = max(low, first + (now - then) // 2)
        return self.arrival

    def admit(self, number: int, time: int, now: int) -> bool:
        sensor = self.sensors.get(number)
        if time > now + MAX_AHEAD or (self.watermark is not None and time < self.watermark):
            return False
        if sensor is None:
            return True
        if sensor.times and time < max(sensor.times) - self.lateness:
            return False
        sensor.times.append(time)
        sensor.spoke, sensor.by_arrival = now, False
        return True

    def advance(self, now: int) -> int | None:
        open_ones = [one for one in self.sensors.values() if not one.ended]
        counted = [
            one
            for one in open_ones
            if one.by_arrival or self.idle is None or now - one.spoke < self.idle
        ]
        bounds: list[int | None] = [
            max(one.times) - self.lateness if one.times else None
            for one in counted
            if not one.by_arrival
        ]
        if len(bounds) < len(counted) and None not in bounds:
            bounds.append(self.arrive(now))
        if self.sensors and not open_ones:
            bounds = [1 + max(one.times) for one in self.sensors.values() if one.times]
            bounds += [now - self.lateness] if self.ends else []
            bounds = [max(bounds)] if bounds else []
        if bounds and None not in bounds:
            lowest = min(bounds)
            self.watermark = lowest if self.watermark is None else max(lowest, self.watermark)
        return self.watermark


numbers = st.integers(0, 3)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), numbers, st.integers(-30, 60)),
        st.tuples(st.just("arrive"), numbers, st.just(0)),
        st.tuples(st.just("open"), numbers, st.integers(0, 1)),
        st.tuples(st.just("end"), numbers, st.just(0)),
        st.tuples(st.just("close"), numbers, st.just(0)),
        st.tuples(st.just("advance"), st.just(0), st.just(0)),
        st.tuples(st.just("wait"), st.just(0), st.integers(-5, 15)),
        st.tuples(st.just("wake"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@given(steps, st.integers(0, 10), st.none() | st.integers(1, 20), st.booleans())
def test_the_clock_is_the_naive_one(
    done: list[tuple[str, int, int]], lateness: int, idle: int | None, ends: bool
) -> None:
    clock = SensorClock(lateness, idle, MAX_AHEAD, ends=ends)
    naive = NaiveClock(lateness, idle, ends)
    now = 1000
    published: int | None = None
    for what, number, value in done:
        sensor = naive.sensors.get(number)
        if what == "admit":
            taken = clock.admit(number, now + value, now) is None
            assert taken == naive.admit(number, now + value, now)
            assert not taken or published is None or now + value >= published
        elif what == "arrive" and sensor is not None and sensor.by_arrival:
            time = clock.arrive(number, now)
            assert time == naive.arrive(now)
            assert published is None or time >= published
        elif what == "open":
            clock.open(number, now, by_arrival=bool(value))
            kept = naive.sensors.setdefault(number, NaiveSensor([], now, bool(value)))
            kept.ended, kept.spoke = False, now
        elif what == "end":
            clock.end(number)
            if sensor is not None:
                sensor.ended = True
        elif what == "close":
            clock.close(number)
            naive.sensors.pop(number, None)
        elif what == "wait":
            now += value
        elif what == "wake":
            clock.wake(now)
            for one in naive.sensors.values():
                one.spoke = max(one.spoke, now)
        elif what == "advance":
            watermark = clock.advance(now)
            assert watermark == naive.advance(now)
            assert published is None or (watermark is not None and watermark >= published)
            published = watermark


times = st.lists(st.integers(-40, 80) | st.sampled_from([EARLIEST - 2000, LATEST]), max_size=20)


@given(times, times, st.integers(0, 10), st.none() | st.integers(980, 1020))
@example([0], [0], 0, None)
def test_many_at_once_are_judged_like_one_after_the_other(
    before: list[int], later: list[int], lateness: int, watermark: int | None
) -> None:
    one, many = (SensorClock(lateness, None, MAX_AHEAD, watermark) for _ in range(2))
    for clock in (one, many):
        clock.open(7, 1000, by_arrival=False)
        for time in before:
            clock.admit(7, 1000 + time, 1000)
    reasons = [one.admit(7, 1000 + time, 1000) for time in later]
    array = np.array([1000 + time for time in later], np.int64)
    taken, refused = many.admit_many(7, array, 1000)
    assert taken.tolist() == [reason is None for reason in reasons]
    assert dict(refused) == {at: reason for at, reason in enumerate(reasons) if reason is not None}
    assert one.advance(1000) == many.advance(1000)


def test_reasons_say_how_far_off_a_time_is() -> None:
    clock = SensorClock(2_000_000, None, 3_600_000_000, watermark=100_000_000)
    clock.open(1, 0, by_arrival=False)
    now = 200_000_000
    assert clock.admit(1, 150_000_000, now) is None
    assert clock.admit(1, 148_000_000, now) is None
    assert clock.admit(1, 147_000_000, now) == "out of order by 3s"
    assert clock.admit(2, 99_500_000, now) == "late by 500ms"
    assert clock.admit(2, now + 7_200_000_000, now) == "ahead of the clock by 7200s"
    refusal = clock.admit(2, EARLIEST - 1, now)
    assert refusal is not None
    assert refusal.startswith("its time is before 1700 or after 9999")


def test_who_holds_the_watermark_back() -> None:
    clock = SensorClock(0, 50, MAX_AHEAD)
    clock.open(1, 0, by_arrival=False)
    clock.open(2, 0, by_arrival=False)
    clock.admit(1, 10, 10)
    assert (clock.advance(10), clock.held_by) == (None, 2)
    clock.admit(2, 5, 11)
    assert (clock.advance(11), clock.held_by) == (5, 2)
    clock.admit(1, 40, 40)
    assert (clock.advance(61), clock.held_by) == (40, 1)
