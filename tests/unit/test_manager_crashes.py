"""A manager killed at any moment: nothing acknowledged is lost, nothing is stored twice."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nilometer.log.layout import SENSOR
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import register
from nilometer.log.writer import LogWriter
from nilometer.sensors.declaration import Sensor
from nilometer.sensors.manager import manager as manager_module
from nilometer.sensors.manager.kept_counts import read_counts
from nilometer.sensors.manager.log_store import LogStore
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.sensors.manager.status import read_status
from tests.manager_process import COUNTER, TOPICS, Counter
from tests.mosquitto import Mosquitto
from tests.mqtt_publisher import MqttSensors
from tests.patience import wait_for

ROOT = Path(__file__).parents[2]
SENSORS = 5


@contextmanager
def running(folder: Path, broker: Mosquitto) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a manager, which ends in order unless it was killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.manager_process", str(folder), broker.url, str(SENSORS)],
        stdin=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        yield process
    except BaseException:
        process.kill()
        raise
    finally:
        process.communicate(input=b"")


def run(folder: Path, broker: Mosquitto, kills: int, seed: int) -> None:
    """Kill a manager so many times while sensors speak, and look at what it has stored."""
    chance = random.Random(seed)
    for declaration in (COUNTER, TOPICS):
        place = folder / declaration.name
        LogWriter.open(place, declaration.layout).close()
        now = time.time_ns() // 1000
        register(place, "r", Position(0, 0), {}, now=now, named=True)
    with running(folder, broker):  # the broker keeps messages for whoever was there once
        wait_for(lambda: _connected(folder) == SENSORS)
    with MqttSensors(broker.port, sensors=SENSORS, qos=1, rate=1500, inflight=200) as publisher:
        for _ in range(kills):
            before = LogReader.open(folder / "C").end
            with running(folder, broker) as process:
                wait_for(lambda end=before: LogReader.open(folder / "C").end > end)
                time.sleep(chance.uniform(0.0, 1.0))
                process.kill()
        published = publisher.stop()
    with running(folder, broker):
        wait_for(lambda: sum(map(len, _readings(folder).values())) >= published)
    _check(folder, published)
    _check_counts(folder)


def _check_counts(folder: Path) -> None:
    """However often it was killed, every row is counted for its sensor."""
    counts = read_counts(folder / "status.json")
    for number, rows in _readings(folder).items():
        assert counts["M"].sensors[number].readings == len(rows)
    assert counts["C"].sensors[0].readings == LogReader.open(folder / "C").end.row


def _check(folder: Path, published: int) -> None:
    readings = _readings(folder)
    assert sorted(readings) == list(range(SENSORS))
    twice = {sensor: len(stored) - len(set(stored)) for sensor, stored in readings.items()}
    assert not any(twice.values()), twice
    assert sum(map(len, readings.values())) == published
    log = LogReader.open(folder / "C")
    counted = [one for frame in log.read(log.start) for one in frame.rows["reading"].to_pylist()]
    acknowledged = [int(line) for line in (folder / "acknowledged").read_text().splitlines()]
    assert counted == list(range(len(counted)))
    assert set(acknowledged) <= set(counted)
    assert len(acknowledged) > 10


def _connected(folder: Path) -> int:
    status = read_status(folder / "status.json") or {"streams": []}
    return sum(one["connected"] for one in status["streams"] if one["name"] == "M")


def _readings(folder: Path) -> dict[int, list[int]]:
    readings: dict[int, list[int]] = {}
    log = LogReader.open(folder / "M")
    for frame in log.read(log.start):
        numbers, values = (frame.rows[name].to_pylist() for name in (SENSOR, "reading"))
        for sensor, reading in zip(numbers, values, strict=True):
            readings.setdefault(sensor, []).append(reading)
    return readings


def test_a_few_kills(tmp_path: Path, mosquitto: Mosquitto) -> None:
    run(tmp_path / "db", mosquitto, 3, seed=1)


@pytest.mark.soak
def test_fifty_kills(tmp_path: Path, mosquitto: Mosquitto) -> None:
    run(tmp_path / "db", mosquitto, 50, seed=2)


def test_what_is_stored_while_a_stream_is_let_go_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = LogStore.append

    def slowly(store: LogStore, *given: Any) -> Any:
        time.sleep(0.8)  # longer than sensors are waited for, shorter than twice that
        return append(store, *given)

    monkeypatch.setattr(LogStore, "append", slowly)
    place = tmp_path / "C"
    LogWriter.open(place, COUNTER.layout).close()
    register(place, "r", Position(0, 0), {}, now=time.time_ns() // 1000, named=True)
    with (tmp_path / "acknowledged").open("ab", buffering=0) as acknowledged:
        for _ in range(3):
            manager = StreamManager(
                lambda name: str(tmp_path / name),
                lambda name: [Sensor(0, 0, {}, "")],
                lambda declaration, where: {0},
                find_type=lambda name: partial(Counter, acknowledged),
                settings=ManagerSettings(close_timeout=0.5),
                status_file=tmp_path / "status.json",
            )
            before = LogReader.open(place).end
            manager.start()
            manager.watch(COUNTER)
            wait_for(lambda end=before: LogReader.open(place).end > end)  # type: ignore[misc]
            manager.stop()
            counts = read_counts(tmp_path / "status.json")["C"]
            assert counts.sensors[0].readings == counts.end["row"] > before.row


def test_counts_are_kept_while_a_stream_is_about_to_be_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status file is written every second, and a process may be killed at any moment."""
    place = tmp_path / "C"
    LogWriter.open(place, COUNTER.layout).close()
    register(place, "r", Position(0, 0), {}, now=time.time_ns() // 1000, named=True)
    counts = []
    count_on = manager_module.count_on

    def while_others_write(*given: Any) -> Any:
        manager._call(manager._tell())
        counts.append(read_counts(tmp_path / "status.json")["C"].sensors[0].readings)
        return count_on(*given)

    monkeypatch.setattr(manager_module, "count_on", while_others_write)
    with (tmp_path / "acknowledged").open("ab", buffering=0) as acknowledged:
        for _ in range(2):
            manager = StreamManager(
                lambda name: str(tmp_path / name),
                lambda name: [Sensor(0, 0, {}, "")],
                lambda declaration, where: {0},
                find_type=lambda name: partial(Counter, acknowledged),
                status_file=tmp_path / "status.json",
            )
            manager.start()
            before = LogReader.open(place).end
            manager.watch(COUNTER)
            wait_for(lambda end=before: LogReader.open(place).end > end)  # type: ignore[misc]
            manager.stop()
    assert counts == [before.row]
