"""The manager over sensors that a test holds in its hand: what they say, and what is stored."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import InputError, InternalError, LogError
from nilometer.log.layout import TIMESTAMP
from nilometer.log.reader import LogReader
from nilometer.model.events import event_of, fields_of
from nilometer.sensors.manager.log_store import LogStore
from nilometer.sensors.manager.sensor_keys import REPEAT_AFTER, SensorKeys
from nilometer.sensors.manager.sensor_record import SensorRecord
from nilometer.sensors.manager.status import SensorState, read_status
from nilometer.sensors.stream_type import END, NEW_VALUE, BadReadingError, Reading, TryLaterError
from tests.manager_streams import QUICK, Site, running, sensors, stream, table, values
from tests.patience import LONG, wait_for

TIMED = pa.schema([("x", pa.float64()), ("at", TIMESTAMP)])


def test_a_sensor_that_is_dropped_while_it_fails_is_not_waited_for(site: Site) -> None:
    line = site.lines["a1"]
    site.settings = replace(QUICK, first_wait=LONG, longest_wait=LONG)
    with running(site, table()) as manager:
        site.rows["T"] = sensors((1, "hall"))
        site.read("T")
        wait_for(lambda: line.opened)
        line.close_seconds = 0.5
        line.say(ConnectionError("gone"))
        wait_for(lambda: line.reads)
        manager.forget("T")  # or the test takes too long


def test_a_sensor_is_reached_again_and_again(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nilometer.sensors")
    site.lines["a0"].failures = 4
    with running(site, stream()) as manager:
        site.read("S")
        wait_for(lambda: site.lines["a0"].opened == 1)
        site.lines["a0"].say(ConnectionError("gone"), 1.0, TryLaterError("busy", 0.05), 2.0)
        wait_for(lambda: values(site) == [1.0, 2.0])
        status = wait_for(lambda: [one for one in manager.status("S") if one.readings == 2])[0]
        assert manager._watched["S"].stream._tasks[0]._wait == QUICK.first_wait
    assert status.errors == 6
    assert status.last_error == "TryLaterError: busy"
    assert status.state is SensorState.CONNECTED
    line = site.lines["a0"]
    assert (line.opened, line.closed, line.paused) == (3, 2, 1)
    events = [event_of(one) for one in caplog.records]  # four attempts in a row are reported once
    assert events == ["sensor_lost", "sensor_regained"] * 3


def test_a_sensor_that_is_asked_is_there_when_it_answers(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nilometer.sensors")
    line = site.lines["a0"]
    with running(site, stream("asked")) as manager:
        site.read("S")
        line.say(*(ConnectionError("nobody there") for _ in range(3)))
        wait_for(lambda: line.opened == 4)
        wait_for(lambda: manager.status("S")[0].errors == 3)
        wait_for(lambda: manager.status("S")[0].state is SensorState.OPENING)
        assert [event_of(one) for one in caplog.records] == ["sensor_lost"]
        line.say(1.0)
        wait_for(lambda: values(site) == [1.0])
        assert manager.status("S")[0].state is SensorState.CONNECTED
    assert [event_of(one) for one in caplog.records] == ["sensor_lost", "sensor_regained"]


@pytest.mark.parametrize("kind", ["pushed", "plain"])
def test_a_sensor_that_ends_is_not_reached_again(site: Site, kind: str) -> None:
    with running(site, stream(kind)) as manager:
        site.read("S")
        site.lines["a0"].say(1.0, END, 2.0)
        wait_for(lambda: manager.status("S") and manager.status("S")[0].state == "ended")
        manager.changed("S")
        wait_for(lambda: manager.streams()[0].watermark)
        wait_for(lambda: site.lines["a0"].closed)
    assert (values(site), site.lines["a0"].opened, site.lines["a0"].closed) == ([1.0], 1, 1)


def test_a_plain_sensor_that_hangs_holds_up_nobody(site: Site) -> None:
    site.settings = replace(QUICK, close_timeout=0.1)
    stuck = threading.Event()
    with running(site, table("plain")) as manager:
        site.read("T")
        site.lines["a1"].say(stuck.wait)
        site.lines["a2"].say(1.0, 2.0)
        wait_for(lambda: values(site, "T") == [1.0, 2.0])
        wait_for(lambda: len(manager.status("T")) == 3)
    stuck.set()


def test_what_was_read_is_stored_and_acknowledged_before_a_sensor_is_let_go(site: Site) -> None:
    site.settings = replace(QUICK, close_timeout=5)
    line = site.lines["a0"]
    seen = line.events
    with running(site, stream(options={"linger": "60s"})):
        site.read("S")
        wait_for(lambda: line.opened)
        line.say(*(Reading(NEW_VALUE, x, stored=lambda x=x: seen.append(str(x))) for x in range(5)))
        wait_for(lambda: line.reads == 5)
        assert seen == ["opened"]
    assert seen == ["opened", "0", "1", "2", "3", "4", "paused"]
    assert values(site) == [0, 1, 2, 3, 4]


def test_what_does_not_fit_goes_to_the_dead_letters(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    stored: list[int] = []
    with running(site, stream()) as manager:
        site.read("S")
        site.lines["a0"].say(
            1.0,
            Reading(NEW_VALUE, "two", stored=lambda: stored.append(2)),
            BadReadingError("malformed", b"{\xff", lambda: stored.append(3)),
            [Reading(NEW_VALUE, 4.0), BadReadingError("no reading", "x" * 9999)],
            pa.record_batch({"x": pa.array(["5", None, "6"])}),
            {"y": 7},
        )
        wait_for(lambda: len(site.stored("S")) == 3)
        wait_for(lambda: len(site.letters("S")) == 6)
        status = wait_for(lambda: [one for one in manager.status("S") if one.readings == 3])[0]
        assert (status.dead_letters, manager.streams()[0].dead_letters) == (6, 6)
    letters = [(one["reason"], one["payload"][:20]) for one in site.letters("S")]
    assert letters == [
        ("x: not a number: 'two'", "two"),
        ("malformed", "{\ufffd"),
        ("no reading", "x" * 20),
        ("x: not a number: '5'", '{"x": "5"}'),
        ("x: not a number: '6'", '{"x": "6"}'),
        ("has none of the columns", '{"y": 7}'),
    ]
    assert max(len(one["payload"]) for one in site.letters("S")) == 4096
    assert {one["sensor"] for one in site.letters("S")} == {"S"}
    assert stored == [2, 3]
    assert values(site) == [1.0, 4.0, None]
    counts = [fields_of(one)["count"] for one in caplog.records if event_of(one) == "dead_letters"]
    assert sum(counts) == 6
    assert len(counts) <= 2


def test_times_are_judged_per_sensor(site: Site) -> None:
    second, now = 1_000_000, site.now()
    base = now - 100 * second

    def at(seconds: float) -> dict[str, Any]:
        return {"x": seconds, "at": (base + seconds * second) / second}

    with running(site, table(readings=TIMED, time="at", lateness=5 * second)) as manager:
        site.read("T", where="id < 3")
        site.lines["a1"].say(at(20), at(16), at(14), at(99999), {"x": 1})
        site.lines["a2"].say(at(1), at(30))
        wait_for(lambda: len(site.letters("T")) == 3)
        wait_for(lambda: manager.streams()[0].rows == 4)
        wait_for(lambda: manager.streams()[0].watermark == base + 15 * second)
        assert manager.streams()[0].held_by is None  # both speak, and are not far apart
        site.lines["a1"].say(END)
        wait_for(lambda: manager.streams()[0].watermark == base + 25 * second)
    reasons = [one["reason"] for one in site.letters("T")]
    assert reasons[0] == "out of order by 6s"
    assert reasons[1].startswith("ahead of the clock by 998")
    assert reasons[2] == "has no time"


def test_time_passes_where_nothing_arrives(site: Site) -> None:
    with running(site, stream()) as manager:
        site.read("S")
        first = wait_for(lambda: manager.streams()[0].watermark)
        wait_for(lambda: manager.streams()[0].watermark > first + 100_000)
        site.leave("S")
        wait_for(lambda: manager.streams()[0].readers == 0)
        bytes_then = wait_for(lambda: manager.streams()[0].stored_bytes)
    log = LogReader.open(site.locate("S"))
    assert all(len(frame.rows) == 0 for frame in log.read(log.start))
    assert bytes_then < 100_000


def test_arrival_times_never_go_back_though_the_clock_does(site: Site) -> None:
    start = site.now()
    ticks = iter(range(10**9))
    site.now = lambda: start + 1000 * next(ticks)
    with running(site, stream()):
        site.read("S")
        site.lines["a0"].say(1.0)
        wait_for(lambda: values(site) == [1.0])
        site.now = lambda: start - 3_600_000_000
        site.lines["a0"].say(2.0)
        wait_for(lambda: values(site) == [1.0, 2.0])
    first, second = (row["_time"] for row in site.stored("S"))
    assert second >= first


def test_after_a_restart_sensors_are_told_what_was_stored(site: Site) -> None:
    site.settings = replace(QUICK, close_timeout=LONG)
    readings = [Reading(NEW_VALUE, float(x), key=bytes([x])) for x in range(3)]
    for _ in range(2):
        with running(site, table()):
            site.read("T")
            site.lines["a1"].say(*readings)
            site.lines["a2"].say(Reading(NEW_VALUE, 9.0, key=b"nine"))
            wait_for(lambda: site.lines["a1"].words.empty() and site.lines["a2"].words.empty())
    delivered = [one.delivered for one in site.lines["a1"].addresses]
    assert delivered == [frozenset(), frozenset([b"\0", b"\1", b"\2"])]
    assert site.lines["a2"].addresses[1].delivered == {b"nine"}
    assert site.lines["a3"].addresses[1].delivered == frozenset()


def test_the_key_of_a_quiet_sensor_stays_within_reach() -> None:
    keys = SensorKeys([SensorKeys.spell(7, b"old")], limit=100)
    log = [SensorKeys.spell(7, b"old")]
    for at in range(3 * REPEAT_AFTER):
        new = [SensorKeys.spell(1, str(at).encode())]
        keys.appended(new)
        log += new
        if repeats := keys.repeats():
            log += repeats
            keys.repeated()
    assert SensorKeys.spell(7, b"old") in log[-REPEAT_AFTER - 2 :]
    assert keys.delivered(7) == {b"old"}
    assert len(keys.delivered(1)) == 100
    assert SensorKeys(log[-10_000:], limit=20_000).delivered(7) == {b"old"}


def test_the_status_is_there_for_other_processes(site: Site) -> None:
    with running(site, stream()):
        site.read("S")
        site.lines["a0"].say({"x": 1.5})

        def read() -> Any:
            status = read_status(site.folder / "status.json")
            return (
                status
                if status and status["sensors"] and status["sensors"][0]["readings"]
                else None
            )

        status = wait_for(read)
    assert status["pid"] == os.getpid()
    assert status["streams"][0]["name"] == "S"
    assert status["sensors"][0]["last_value"] == "x = 1.5"
    assert status["sensors"][0]["state"] == "connected"


def test_counts_go_on_after_a_restart(site: Site) -> None:
    line = site.lines["a0"]
    with running(site, stream()) as manager:
        site.read("S")
        line.say(1.0, "two", ConnectionError("gone"), 3.0)
        wait_for(lambda: values(site) == [1.0, 3.0])
    with running(site, stream()) as manager:
        assert manager.streams()[0].dead_letters == 1
        sensor = wait_for(lambda: [one for one in manager.status("S") if line.opened == 3])[0]
        assert (sensor.readings, sensor.errors, sensor.dead_letters) == (2, 1, 1)
        assert (sensor.last_error, sensor.last_value) == ("ConnectionError: gone", "3.0")
        line.say(4.0)
        wait_for(lambda: manager.status("S")[0].readings == 3)
        site.leave("S")
        wait_for(lambda: not manager.status("S"))
        site.read("S")  # wanted again by somebody
        wait_for(lambda: manager.status("S"))
        assert manager.status("S")[0].readings == 3


def test_readings_are_counted_that_no_status_tells_of(site: Site) -> None:
    """As after a kill: the status is older than the log."""
    status = site.folder / "status.json"
    site.rows["T"] = sensors((1, "hall"), (2, "attic"))
    with running(site, table()) as manager:
        site.read("T")
        site.lines["a1"].say(1.0)
        wait_for(lambda: [one for one in manager.status("T") if one.readings == 1])
        wait_for(status.exists)
        old = wait_for(lambda: '"readings": 1' in (text := status.read_text()) and text)
        site.lines["a1"].say(2.0)
        site.lines["a2"].say(3.0, 4.0)
        wait_for(lambda: len(site.stored("T")) == 4)
    new = json.loads(status.read_text())
    status.write_text(old)
    with running(site, table()) as manager:
        wait_for(lambda: [one.readings for one in manager.status("T")] == [2, 2])
    new["kept"]["T"]["end"] |= {"segment": 9, "row": 99}  # rows that a power failure has taken
    status.write_text(json.dumps(new))
    with running(site, table()) as manager:
        wait_for(lambda: [one.readings for one in manager.status("T")] == [2, 2])


def test_a_stream_that_is_altered_counts_on(site: Site) -> None:
    with running(site, stream()) as manager:
        site.read("S")
        site.lines["a0"].say(1.0, 2.0)
        wait_for(lambda: manager.status("S") and manager.status("S")[0].readings == 2)
        manager.forget("S", pause=True)
        manager.watch(stream())
        site.lines["a0"].say(3.0)
        wait_for(lambda: manager.status("S") and manager.status("S")[0].readings == 3)


def test_a_stream_that_is_made_anew_counts_anew(site: Site) -> None:
    with running(site, stream()) as manager:
        site.read("S")
        site.lines["a0"].say(1.0, "two")
        wait_for(lambda: manager.streams()[0].dead_letters == 1)
    for name in ("S", "S.dead"):
        shutil.rmtree(site.folder / name)
    with running(site, stream()) as manager:
        site.read("S")
        sensor = wait_for(lambda: manager.status("S"))[0]
        assert (sensor.readings, sensor.dead_letters, manager.streams()[0].dead_letters) == (
            0,
            0,
            0,
        )


@pytest.mark.parametrize("kept", ["[]", '{"S": {}}', '{"S": {"log": "x", "end": 1}}', "3"])
def test_a_damaged_status_only_costs_counts(site: Site, kept: str) -> None:
    text = f'{{"time": 1, "pid": 1, "streams": [], "sensors": [], "kept": {kept}}}'
    (site.folder / "status.json").write_text(text)
    with running(site, stream()):
        site.read("S")
        site.lines["a0"].say(1.0)
        wait_for(lambda: values(site) == [1.0])


def test_what_a_stream_type_counts_is_not_lost_when_it_is_reached_again() -> None:
    record = SensorRecord("S", 0, "S", "a0")
    record.use(SimpleNamespace(duplicates=2, dropped=3))
    record.use(SimpleNamespace(duplicates=5, dropped=0))
    assert (record.status(0).duplicates, record.status(0).dropped) == (7, 3)


def test_without_draining_nothing_more_is_stored_or_acknowledged(site: Site) -> None:
    seen: list[int] = []
    line = site.lines["a0"]
    with running(site, stream(options={"linger": "60s"})) as manager:
        site.read("S")
        line.say(*(Reading(NEW_VALUE, x, stored=lambda x=x: seen.append(x)) for x in range(5)))
        wait_for(lambda: line.reads == 5)
        manager.stop(drain=False)
        assert (line.paused, line.closed) == (1, 0)
        with pytest.raises(InternalError, match="not running"):
            manager.forget("S")
    assert (seen, values(site)) == ([], [])


def test_streams_are_watched_once_and_forgotten(site: Site) -> None:
    with running(site, stream()) as manager:
        with pytest.raises(LogError):
            manager.watch(stream())
        with pytest.raises(InputError, match="option disk cannot be used"):
            manager.watch(stream(name="other", options={"disk": "x"}))
        site.read("S")
        wait_for(lambda: site.lines.opened)
        manager.forget("S")
        assert site.lines["a0"].closed == 1
        assert manager.streams() == []
        manager.watch(stream())
        wait_for(lambda: site.lines["a0"].opened == 2)


def test_a_sensor_that_failed_is_opened_only_when_what_it_brought_is_stored(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.settings = replace(QUICK, close_timeout=0.05)
    line, free = site.lines["a0"], threading.Event()
    append = LogStore.append

    def wait_first(store: LogStore, *given: Any) -> None:
        assert free.wait(LONG)
        append(store, *given)

    with running(site, stream()) as manager:
        site.read("S")
        wait_for(lambda: line.opened)
        monkeypatch.setattr(LogStore, "append", wait_first)
        try:
            line.say(Reading(NEW_VALUE, 1.0, key=b"one"), ConnectionError("gone"))
            wait_for(lambda: manager.status("S")[0].errors >= 2)  # the disk was not waited for
            wait_for(lambda: manager.status("S")[0].state is not SensorState.WAITING)
            opened = line.opened
        finally:
            free.set()
        wait_for(lambda: line.opened == 2)
    assert opened == 1
    assert line.addresses[-1].delivered == frozenset([b"one"])
