"""What happens when readings come faster than they can be stored, or find no room."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import LogFullError
from nilometer.log.layout import TIMESTAMP
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, registrations
from nilometer.log.writer import LogWriter
from nilometer.sensors.log_options import StreamOptions
from nilometer.sensors.manager import sensor_keys
from nilometer.sensors.manager.log_store import LogStore
from nilometer.sensors.manager.received import Event, Received
from nilometer.sensors.manager.sensor_keys import SensorKeys
from nilometer.sensors.manager.sensor_record import SensorRecord
from nilometer.sensors.stream_type import NEW_VALUE, Reading
from tests.manager_streams import ONLY, QUICK, Site, stream, table
from tests.patience import wait_for

SMALL = {"segment": "4KB", "disk": "40KB", "linger": "0s"}
ROWS = 50
COUNT = 80


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path, replace(QUICK, pending_rows=5, append_rows=2))
    made.rows = {"S": [ONLY]}
    return made


def noise(first: int) -> pa.RecordBatch:
    """Rows that cannot be compressed away, numbered."""
    return pa.record_batch({"x": pa.array([first + at + 0.123456789 * at for at in range(ROWS)])})


def batches(count: int) -> Sequence[pa.RecordBatch]:
    return [noise(1000 * at) for at in range(count)]


def firsts(site: Site) -> list[int]:
    """Which batches are in the log."""
    return [int(row["x"]) // 1000 for row in site.stored("S")][::ROWS]


def test_a_sensor_that_can_wait_is_not_read_until_there_is_room(site: Site) -> None:
    line = site.lines["a0"]
    with site.manager(stream(options=SMALL)) as manager:
        site.read("S")
        line.say(*batches(COUNT))
        wait_for(lambda: manager.streams()[0].full and manager.streams()[0].error)
        assert line.reads < COUNT - 10
        seen: list[float] = []

        def read_on() -> bool:
            log = LogReader.open(site.locate("S"))
            start, end = registrations(site.locate("S"))[0].position, log.end
            seen.extend(x for frame in log.read(start, end) for x in frame.rows["x"].to_pylist())
            commit(site.locate("S"), "r", end, now=site.now())
            return len(seen) >= COUNT * ROWS

        wait_for(read_on)
        wait_for(lambda: not manager.streams()[0].full)
        assert (manager.streams()[0].dropped, manager.streams()[0].error) == (0, None)
    assert seen == [x for batch in batches(COUNT) for x in batch["x"].to_pylist()]


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "fail"])
def test_a_sensor_that_cannot_wait(site: Site, policy: str) -> None:
    line = site.lines["a0"]
    stored: list[int] = []
    readings = [
        Reading(NEW_VALUE, batch, stored=lambda at=at: stored.append(at))
        for at, batch in enumerate(batches(COUNT))
    ]
    with site.manager(stream("hasty", options={**SMALL, "when_full": policy})) as manager:
        site.read("S")
        for reading in readings:
            line.say(reading)
            wait_for(lambda: line.words.empty() or line.closed)
        if policy != "fail":
            wait_for(lambda: len(stored) == COUNT)
        else:
            wait_for(lambda: manager.status("S")[0].state == "failed")
        stream_status, sensor = manager.streams()[0], manager.status("S")[0]
        numbers = firsts(site)
    if policy == "drop_oldest":
        assert stream_status.dropped + len(numbers) * ROWS == COUNT * ROWS
        assert numbers[-1] == COUNT - 1
        assert numbers == sorted(set(numbers))
        assert numbers[0] > 0
    elif policy == "drop_newest":
        assert sensor.dropped == stream_status.dropped
        assert numbers[0] == 0
        assert len(numbers) < COUNT
        assert sensor.dropped + sensor.readings == COUNT * ROWS
    else:
        assert (line.closed, line.opened) == (1, 1)
        assert sensor.last_error is not None
        assert "full" in sensor.last_error or "faster" in sensor.last_error


def test_a_disk_that_fails_and_comes_back(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    good = LogWriter.append
    broken = [True]

    def append(self: LogWriter, rows: Any, **given: Any) -> Any:
        if broken and rows is not None:
            raise OSError(28, "No space left on device")
        return good(self, rows, **given)

    monkeypatch.setattr(LogWriter, "append", append)
    line = site.lines["a0"]
    with site.manager(stream()) as manager:
        site.read("S")
        line.say(*map(float, range(30)))
        wait_for(lambda: "No space left" in (manager.streams()[0].error or ""))
        assert line.reads < 20
        broken.clear()
        wait_for(lambda: len(site.stored("S")) == 30)
        wait_for(lambda: manager.streams()[0].error is None)
    assert [row["x"] for row in site.stored("S")] == list(range(30))


@pytest.mark.parametrize("broken", ["fdatasync", "pwrite", "pwritev"])
def test_a_log_whose_disk_failed_takes_readings_again(
    site: Site, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """Whatever fails, and however much was written by then: every reading is there once."""
    failing = [False]
    good = getattr(os, broken)

    def fail(*given: Any) -> Any:
        if failing[0]:
            raise OSError(errno.EIO, "Input/output error")
        return good(*given)

    monkeypatch.setattr(os, broken, fail)
    line = site.lines["a0"]
    with site.manager(stream()) as manager:
        site.read("S")
        line.say(1.0, "no number")
        wait_for(lambda: site.stored("S") and site.letters("S"))
        for word in (2.0, "none", 3.0, "none either"):
            failing[0] = True
            line.say(word)
            wait_for(lambda: manager.streams()[0].error)
            failing[0] = False
            wait_for(lambda: manager.streams()[0].error is None)
    assert [row["x"] for row in site.stored("S")] == [1, 2, 3]
    assert len(site.letters("S")) == 3


def test_keys_that_find_no_room_do_not_have_rows_stored_twice(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = LogWriter.append
    full = [True]

    def append(self: LogWriter, rows: Any, **given: Any) -> Any:
        if full and rows is None:
            raise LogFullError("the log is full")
        return good(self, rows, **given)

    monkeypatch.setattr(LogWriter, "append", append)
    monkeypatch.setattr(sensor_keys, "REPEAT_AFTER", 2)
    line = site.lines["a0"]
    with site.manager(stream()):
        site.read("S")
        for at in range(4):
            line.say(Reading(NEW_VALUE, float(at), key=bytes([at])))
            wait_for(lambda n=at: len(site.stored("S")) > n)
        full.clear()
        line.say(Reading(NEW_VALUE, 4.0, key=b"last"))
        wait_for(lambda: len(site.stored("S")) > 4)
    assert [row["x"] for row in site.stored("S")] == [0, 1, 2, 3, 4]
    with LogWriter.open(site.locate("S"), stream().layout) as writer:
        assert writer.recent_keys(2) == [SensorKeys.spell(0, b"last")] * 2


def test_a_slow_disk_makes_hasty_sensors_lose_readings_within_bounds(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = LogWriter.append

    def append(self: LogWriter, rows: Any, **given: Any) -> Any:
        if rows is not None:
            time.sleep(0.05)
        return good(self, rows, **given)

    monkeypatch.setattr(LogWriter, "append", append)
    with site.manager(stream("hasty")) as manager:
        site.read("S")
        site.lines["a0"].say(*map(float, range(200)))
        largest = 0

        def watched() -> bool:
            nonlocal largest
            status = manager.streams()[0]
            largest = max(largest, status.pending)
            return status.dropped + status.rows == 200

        wait_for(watched)
        assert manager.streams()[0].dropped > 0
        assert largest <= 5


def test_sensors_that_could_not_be_heard_were_not_silent(site: Site) -> None:
    readings = pa.schema([("x", pa.float64()), ("at", TIMESTAMP)])
    declared = table(readings=readings, time="at", idle=1_000_000)
    records = [SensorRecord("T", number, "", "") for number in (1, 2)]
    watermarks = []
    for deaf in (True, False):
        name = f"log {deaf}"
        store = LogStore(
            replace(declared, name=name), StreamOptions(), site.locate, QUICK, site.now
        )
        opened = [Received(Event.OPENED, one, 1, 0) for one in records]
        spoke = [Received(Event.READING, one, 1, 0, (1.0, 100 + one.number)) for one in records]
        late = Received(Event.READING, records[1], 1, 60_000_000, (1.0, 200))
        store.append(store.prepare([*opened, *spoke]), 0, False)
        store.append(store.prepare([late]), 60_000_000, deaf)
        watermarks.append(store.writer.watermark)
        store.close()
    assert watermarks == [101_000_000, 200_000_000]
