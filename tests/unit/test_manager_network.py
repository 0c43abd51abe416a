"""The manager over real connections: many sensors at once, and sensors that misbehave."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from nilometer.log.layout import SENSOR, TIMESTAMP
from nilometer.log.reader import LogReader
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.find_types import stream_class
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.manager.status import SensorStatus
from tests.manager_streams import QUICK, Site
from tests.mosquitto import Mosquitto
from tests.mqtt_publisher import MqttSensors
from tests.patience import wait_for
from tests.sensors_at_work import HttpSensors, TcpSensors

READINGS = pa.schema([("reading", pa.int64()), ("temperature", pa.float64())])
STATIC = pa.schema([("id", pa.int32())])


def table(name: str, kind: str, **given: Any) -> Declaration:
    fields = {"readings": READINGS, "static": STATIC, "place": 1, "column": "r", **given}
    return Declaration(name=name, stream_type=kind, **fields)


def rows(addresses: Iterable[str]) -> list[Sensor]:
    return [Sensor(at, at, {"id": at}, address) for at, address in enumerate(addresses)]


def readings(site: Site, name: str) -> dict[int, list[int]]:
    """The numbers of the stored readings of each sensor, in the order of the log."""
    readings: dict[int, list[int]] = {}
    log = LogReader.open(site.locate(name))
    for frame in log.read(log.start):
        pairs = zip(frame.rows[SENSOR].to_pylist(), frame.rows["reading"].to_pylist(), strict=True)
        for sensor, reading in pairs:
            readings.setdefault(sensor, []).append(reading)
    return readings


def run_many(site: Site, broker: Mosquitto, each: int, seconds: float) -> float:
    """Half of the sensors over HTTP, half over MQTT; the share of one core that it took."""
    topics = (f"{broker.url}/sensors/{at}" for at in range(each))
    with HttpSensors() as http:
        site.rows = {"H": rows(http.url(at) for at in range(each)), "M": rows(topics)}
        started, used = time.monotonic(), _cpu()
        declared = table("H", "http", options={"interval": "1s"}), table("M", "mqtt")
        with site.manager(*declared, find_type=stream_class) as manager:
            _listen(site, manager, each)
            with MqttSensors(broker.port, sensors=each, qos=1, rate=2.0 * each) as publisher:
                time.sleep(seconds)
                wait_for(lambda: all(one.readings for n in "HM" for one in manager.status(n)))
                published = publisher.stop()
            wait_for(lambda: sum(one.readings for one in manager.status("M")) == published)
        share = (_cpu() - used) / (time.monotonic() - started)
        _check_http(readings(site, "H"), http.counts(), each)
    _check_mqtt(readings(site, "M"), published, each)
    return share


def _cpu() -> float:
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


def _listen(site: Site, manager: StreamManager, each: int) -> None:
    for name in ("H", "M"):
        site.read(name)
    wait_for(lambda: sum(one.connected for one in manager.streams()) == 2 * each)


def _check_http(readings: dict[int, list[int]], asked: Counter[str], each: int) -> None:
    """Every answer is stored once, but for one that was on its way when the manager stopped."""
    assert sorted(readings) == list(range(each))
    for sensor, stored in readings.items():
        assert stored == list(range(len(stored)))
        assert len(stored) in (asked[f"/sensor/{sensor}"], asked[f"/sensor/{sensor}"] - 1)


def _check_mqtt(readings: dict[int, list[int]], published: int, each: int) -> None:
    """Every message that the broker took is stored once."""
    assert sorted(readings) == list(range(each))
    assert sum(len(stored) for stored in readings.values()) == published
    for stored in readings.values():
        assert stored == list(range(len(stored)))


def ask_ten(site: Site, broker: Mosquitto, each: int) -> None:
    """A query over ten sensors contacts those ten."""
    topics = (f"{broker.url}/sensors/{at}" for at in range(each))
    wanted = set(range(3, 13))
    with HttpSensors() as http:
        site.rows = {"h": rows(http.url(at) for at in range(each)), "m": rows(topics)}
        declared = table("h", "http", options={"interval": "0.2s"}), table("m", "mqtt")
        with site.manager(*declared, find_type=stream_class) as manager:
            site.read("h", where="3 <= id < 13")
            site.read("m", where="3 <= id < 13")
            wait_for(lambda: sum(one.connected for one in manager.streams()) == 20)
            with MqttSensors(broker.port, sensors=each, qos=1, rate=10.0 * each) as publisher:
                wait_for(lambda: set(readings(site, "h")) == set(readings(site, "m")) == wanted)
                publisher.stop()
        assert set(http.counts()) == {f"/sensor/{at}" for at in wanted}


def test_many_sensors_at_once(tmp_path: Path, mosquitto: Mosquitto) -> None:
    run_many(Site(tmp_path), mosquitto, 30, 3.0)


def test_a_query_over_ten_of_many_sensors_contacts_those_ten(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    ask_ten(Site(tmp_path), mosquitto, 40)


@pytest.mark.soak
def test_a_thousand_sensors_for_two_minutes(tmp_path: Path, mosquitto: Mosquitto) -> None:
    share = run_many(Site(tmp_path / "a"), mosquitto, 500, 120.0)
    ask_ten(Site(tmp_path / "b"), mosquitto, 500)
    print(f"{share:.0%} of a core")  # noqa: T201


TIMED = pa.schema([*READINGS, pa.field("at", TIMESTAMP)])


def test_sensors_that_misbehave_stop_nobody_and_are_all_seen(tmp_path: Path) -> None:
    site = Site(tmp_path, replace(QUICK, longest_wait=0.2))
    paths = ["fails", "hangs", "malformed", "wrong", "huge", "nowhere", "back", "sensor/1"]
    with HttpSensors() as http:
        nobody = "http://127.0.0.1:9/x"
        site.rows = {"T": rows([*(http.url(path) for path in paths), nobody, "no address"])}
        options = {"interval": "0.05s", "timeout": "0.3s", "max_bytes": "100KB"}
        declared = table("T", "http", options=options)
        timed = table("B", "http", options=options, readings=TIMED, time="at")
        site.rows["B"] = rows([http.url("back")])
        with site.manager(declared, timed, find_type=stream_class) as manager:
            site.read("T")
            site.read("B")

            def seen() -> dict[str, SensorStatus]:
                names = [*paths, "nobody", "no address"]
                return dict(zip(names, manager.status("T"), strict=True))

            wait_for(lambda: len(manager.status("T")) == len(paths) + 2)
            wait_for(
                lambda: all(
                    one.errors + one.dead_letters > 1 or one.readings > 20
                    for one in seen().values()
                )
            )
            wait_for(lambda: manager.status("B")[0].dead_letters > 0)
            statuses = seen()
            letters = Counter((one["sensor"], one["reason"]) for one in site.letters("T"))
            stream = manager.streams()[1]  # later: what misbehaves goes on doing so
            back = {one["reason"] for one in site.letters("B")}
    assert "500" in (statuses["fails"].last_error or "")
    assert "no answer within 0.3 s" in (statuses["hangs"].last_error or "")
    assert "404" in (statuses["nowhere"].last_error or "")
    assert statuses["nobody"].last_error is not None
    assert statuses["no address"].last_error is not None
    assert statuses["sensor/1"].errors == statuses["sensor/1"].dead_letters == 0
    assert statuses["malformed"].dead_letters > 1
    assert statuses["huge"].dead_letters > 1
    assert {name for name, _ in letters} == {"2", "3", "4"}
    assert any(reason.startswith("malformed JSON") for _, reason in letters)
    assert letters[("3", "reading: not a whole number: 'many'")] > 1
    assert stream.dead_letters >= sum(letters.values())
    assert all(reason.startswith("out of order by ") for reason in back)


def test_lines_over_tcp_go_to_the_log_and_the_others_to_the_dead_letters(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with TcpSensors("1,20.5\nx,2\n2\n3,\n", stay=True) as server:
        site.rows = {"T": rows([server.url])}
        with site.manager(
            table("T", "tcp", options={"format": "csv"}), find_type=stream_class
        ) as made:
            site.read("T")
            wait_for(lambda: made.status("T") and made.status("T")[0].readings == 2)
            wait_for(lambda: made.status("T")[0].dead_letters == 2)
    assert [row["r"] for row in site.stored("T")] == [
        {"reading": 1, "temperature": 20.5},
        {"reading": 3, "temperature": None},
    ]
