"""When sensors are to speak, who is silent, and what that holds up; the clock is set by hand."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.log.layout import TIMESTAMP
from nilometer.model.time import FOREVER
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.manager.arrivals import Arrivals, Gaps
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.manager.sensor_clock import SensorClock
from nilometer.sensors.manager.sensor_record import SensorRecord
from nilometer.sensors.manager.silence import SilenceWatch, StreamSilence
from nilometer.sensors.manager.status import SensorState, read_status
from tests.manager_streams import ONLY, Site, sensors, stream, table
from tests.patience import wait_for

SECOND = 1_000_000
MINUTE = 60 * SECOND
BEGAN = 1_700_000_000 * SECOND
TIMED_TABLE = {"readings": pa.schema([("x", pa.float64()), ("at", TIMESTAMP)])}


def learned(gaps: list[int]) -> int | None:
    """What is learned of a sensor that speaks after these gaps, in microseconds."""
    tracker, at = Gaps(), BEGAN
    tracker.hear(at)
    for gap in gaps:
        at += gap
        tracker.hear(at)
    return tracker.learned


def test_a_steady_sensor_is_learned_from_its_first_gap() -> None:
    assert learned([]) is None
    assert learned([7 * SECOND]) == 7 * SECOND
    assert learned([10 * SECOND] * 200) == 10 * SECOND


def test_an_outage_is_not_learned() -> None:
    assert learned([10 * SECOND] * 20 + [3600 * SECOND]) == 10 * SECOND
    assert learned([10 * SECOND] * 64 + [3600 * SECOND] * 2) == 10 * SECOND


def test_a_slower_rate_is_learned_in_the_end() -> None:
    assert learned([10 * SECOND] * 64 + [60 * SECOND] * 3) == 60 * SECOND


def test_readings_that_come_together_count_as_one() -> None:
    burst = [0, 1000, 20_000, 0] * 50 + [30 * SECOND]
    assert learned(burst * 5) == pytest.approx(30 * SECOND, abs=2 * SECOND)
    assert learned([1000] * 10_000) == SECOND  # a thousand in a second


@given(
    st.lists(st.integers(SECOND, 10_000 * SECOND), min_size=1, max_size=200),
)
def test_what_is_learned_is_one_of_the_longest_recent_gaps(gaps: list[int]) -> None:
    recent = sorted(gap // 1000 * 1000 for gap in gaps[-64:])
    assert learned(gaps) in recent[-3:]
    assert learned(gaps) == (
        recent[-1] if len(gaps) < 5 else recent[-1 - max(1, len(recent) // 32)]
    )


def test_random_arrivals_are_hardly_ever_called_silent() -> None:
    rng = random.Random(7)
    arrivals, at, alarms = Arrivals(stream()), BEGAN, 0
    gaps = arrivals.of(0)
    for _ in range(50_000):
        gap = int(rng.expovariate(1 / 20) * SECOND)
        alarms += gaps.learned is not None and gap > arrivals.limit(0)
        at += gap
        gaps.hear(at)
    assert alarms <= 3


def test_limits_are_those_of_the_documentation() -> None:
    every = Arrivals(stream(every=10 * SECOND))
    assert (every.expected(0), every.limit(0)) == (10 * SECOND, 30 * SECOND)
    unknown = Arrivals(table())
    assert (unknown.expected(1), unknown.limit(1), unknown.idle(1)) == (None, MINUTE, 5 * MINUTE)
    unknown.of(1).ask(600.0)
    assert unknown.limit(1) == 1800 * SECOND
    known = Arrivals(table())
    for number, gap in ((1, 1), (2, 20), (3, 900)):
        known.of(number).hear(BEGAN)
        known.of(number).hear(BEGAN + gap * SECOND)
    known.refresh()
    assert [known.limit(n) // SECOND for n in (1, 2, 3)] == [10, 100, 4500]
    assert [known.idle(n) // SECOND for n in (1, 2, 3)] == [60, 100, 4500]
    assert (known.expected(4), known.limit(4)) == (20 * SECOND, 100 * SECOND)  # as others do


def test_what_was_learned_survives_a_restart_and_damage_does_not_hurt() -> None:
    before = Arrivals(table())
    before.of(1).hear(BEGAN)
    before.of(1).hear(BEGAN + 20 * SECOND)
    stored = json.loads(json.dumps(before.to_json()))
    after = Arrivals(table(), stored)
    assert (after.expected(1), after.heard(1)) == (20 * SECOND, BEGAN + 20 * SECOND)
    after.of(1).hear(BEGAN + 9000 * SECOND)  # the process was away: that is not a gap
    assert after.expected(1) == 20 * SECOND
    wrong = {"1": 5, "x": {"heard": 1, "learned": 1}, "2": {"heard": "a", "learned": -1}, "3": {}}
    assert Arrivals(table(), wrong).to_json() == {}


class Watched:
    """A watch over some records, and a clock that the test sets."""

    def __init__(self, declared: Declaration, numbers: range, *, idle: int | None = None) -> None:
        self.now = BEGAN
        self.arrivals = Arrivals(declared)
        idle_of = self.arrivals.idle if declared.has_default_idle else None
        least = MINUTE if declared.has_default_idle else idle
        self.time = SensorClock(0, least, 3600 * SECOND, idle_of=idle_of)
        self.records = {n: self._record(declared, n) for n in numbers}
        self.watch = SilenceWatch(declared.name, self.arrivals, self.time)

    def _record(self, declared: Declaration, number: int) -> SensorRecord:
        self.time.open(number, self.now, by_arrival=declared.time is None)
        return SensorRecord(
            declared.name,
            number,
            f"s{number}",
            "",
            SensorState.CONNECTED,
            self.now,
            listened_since=self.now,
            gaps=self.arrivals.of(number),
        )

    def after(self, seconds: int, *speaking: int, deaf: bool = False) -> StreamSilence:
        """Let time pass, while these sensors speak every second."""
        for _ in range(seconds):
            self.now += SECOND
            for number in speaking:
                assert self.time.admit(number, self.now, self.now) is None
                self.records[number].seen(1.0, self.now, self.now)
            self.time.advance(self.now)
            silence = self.watch.look(self.records.values(), self.now, deaf=deaf)
        return silence


def test_a_stream_that_stops_is_silent_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nilometer.sensors")
    one = Watched(stream(time="at", every=10 * SECOND), range(1))
    assert one.after(5, 0) == StreamSilence()
    last = one.now
    assert one.after(30) == StreamSilence()
    assert one.after(40) == StreamSilence(1, last, "s0", last)
    assert one.records[0].status(one.now).state is SensorState.SILENT
    assert one.records[0].status(one.now).lag == 70 * SECOND
    assert one.after(1, 0) == StreamSilence()
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", "sensor s0 of S has been silent for 31s, expected every 10s"),
        ("INFO", "sensor s0 of S is sending again"),
    ]


def test_one_dead_sensor_of_a_hundred_is_named_and_then_passed_by() -> None:
    many = Watched(table(time="at"), range(100))
    alive = range(1, 100)
    silence = many.after(9, *alive)
    assert (silence.silent, silence.held_by, many.time.watermark) == (0, "s0", None)
    silence = many.after(6, *alive)
    assert (silence.silent, silence.held_by, silence.held_since) == (1, "s0", BEGAN)
    silence = many.after(60, *alive)
    assert (silence.silent, silence.held_by, silence.held_since) == (1, None, None)
    assert many.time.watermark == many.now


def test_idle_never_waits_for_ever() -> None:
    few = Watched(table(time="at", idle=FOREVER), range(2), idle=FOREVER)
    silence = few.after(1000, 1)
    assert (silence.held_by, silence.held_since, few.time.watermark) == ("s0", BEGAN, None)


def test_an_explicit_idle_comes_before_the_usual_one() -> None:
    few = Watched(table(time="at", idle=3 * SECOND), range(2), idle=3 * SECOND)
    few.after(2, 0, 1)
    few.after(5, 1)
    assert few.time.watermark == few.now


def test_when_all_are_silent_the_stream_holds_whatever_is_idle() -> None:
    few = Watched(table(time="at"), range(3))
    few.after(4, 0, 1, 2)
    last = few.now
    silence = few.after(200)
    assert silence == StreamSilence(3, last, None, last)


def test_times_of_arrival_are_not_held_by_silence() -> None:
    one = Watched(stream(), range(1))
    for _ in range(4):
        one.now += SECOND
        one.records[0].seen(1.0, one.now, one.now)
    last = one.now
    silence = one.after(30)
    assert (silence.silent_since, silence.held_by, silence.held_since) == (last, None, None)


def test_a_clock_that_is_behind_holds_without_being_silent() -> None:
    few = Watched(table(time="at"), range(2))
    few.after(3, 0, 1)
    for _ in range(30):
        few.now += SECOND
        for number, time in ((0, BEGAN + 3 * SECOND), (1, few.now)):
            few.time.admit(number, time, few.now)
            few.records[number].seen(1.0, time, few.now)
        few.time.advance(few.now)
        silence = few.watch.look(few.records.values(), few.now, deaf=False)
    assert (silence.silent, silence.held_by, silence.held_since) == (0, "s0", None)


def test_nobody_is_silent_who_could_not_be_heard(caplog: pytest.LogCaptureFixture) -> None:
    one = Watched(stream(time="at", every=SECOND), range(1))
    one.after(3, 0)
    assert one.after(60, deaf=True).silent == 0
    one.now += 3600 * SECOND  # the machine was asleep
    assert one.watch.look(one.records.values(), one.now, deaf=False).silent == 0
    assert one.after(5).silent == 1
    one.now += 3600 * SECOND
    assert one.watch.look(one.records.values(), one.now, deaf=False).silent == 1
    assert len(caplog.records) == 1


def test_many_that_fall_silent_together_are_not_all_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    many = Watched(table(every=SECOND), range(50))
    many.after(4)
    assert len(caplog.records) == 21
    assert caplog.records[-1].getMessage() == "and 30 other sensors of T are silent"
    assert caplog.records[0].getMessage() == (
        "sensor s0 of T has sent nothing for 4s, expected every 1s"
    )


class Plant:
    """A real manager whose clock is set by hand."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(folder)
        self.time = BEGAN
        self.site.now = lambda: self.time

    @contextmanager
    def manager(self, declared: Declaration) -> Iterator[StreamManager]:
        with self.site.manager(declared) as made:
            self.site.read(declared.name)
            yield made

    def after(self, seconds: int) -> None:
        """Let time pass; the manager looks every five seconds."""
        for _ in range(0, seconds, 5):
            self.time += 5 * SECOND
            wait_for(self._has_looked)

    def _has_looked(self) -> bool:
        status = read_status(self.site.folder / "status.json")
        return status is not None and status["time"] >= self.time


def test_a_manager_tells_who_is_silent_and_how_far_behind_streams_are(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.site.rows["T"] = sensors((1, "hall"), (2, "roof"))
    lines = plant.site.lines
    with plant.manager(table(time="at", every=5 * SECOND, **TIMED_TABLE)) as manager:
        for _ in range(3):
            plant.after(5)
            for address in ("a1", "a2"):
                lines[address].say({"x": 1.0, "at": plant.time / SECOND})
            wait_for(lambda: {one.last_time for one in manager.status("T")} == {plant.time})
        wait_for(lambda: manager.streams()[0].watermark == plant.time)
        last = plant.time
        (status,) = manager.streams()
        assert (status.lag, status.held_by, status.silent, status.last_arrival) == (
            0,
            None,
            0,
            last,
        )
        for _ in range(4):
            plant.after(5)
            lines["a2"].say({"x": 1.0, "at": plant.time / SECOND})
            wait_for(lambda: manager.status("T")[1].last_time == plant.time)
        plant.after(5)
        (status,) = manager.streams()
        assert (status.lag, status.held_by, status.held_since) == (plant.time - last, "1", last)
        dead, alive = manager.status("T")
        assert (dead.state, dead.silent_since, dead.expected) == ("silent", last, 5 * SECOND)
        assert (dead.lag, alive.state, status.connected) == (plant.time - last, "connected", 2)
        plant.time += 5 * SECOND  # nobody has to look: lag is computed when it is asked for
        assert manager.streams()[0].lag == plant.time - last


def test_a_manager_knows_after_a_restart_what_was_learned(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.site.rows["S"] = [ONLY]
    with plant.manager(stream()) as manager:
        for n in range(3):
            plant.after(20)
            plant.site.lines["a0"].say(float(n))
            wait_for(lambda n=n: manager.streams()[0].rows == n + 1)
        last = plant.time
    plant.time += 3600 * SECOND
    with plant.manager(stream()) as manager:
        wait_for(lambda: manager.status("S"))
        plant.after(90)
        assert manager.streams()[0].silent == 0
        plant.after(20)
        (sensor,) = manager.status("S")
        assert (sensor.state, sensor.silent_since, sensor.expected) == ("silent", last, 20 * SECOND)
