"""Many readers of one stream: one connection to its sensor, one copy of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit
from nilometer.sensors.declaration import Sensor
from nilometer.sensors.find_types import stream_class
from nilometer.sensors.stream_type import NEW_VALUE, Reading
from tests.manager_streams import ONLY, Site, stream, table
from tests.patience import wait_for
from tests.sensors_at_work import HttpSensors

ROWS = 40_000
SMALL: dict[str, Any] = {"options": {"segment": "64KB", "linger": "0s"}}


def fill(site: Site, readers: int) -> int:
    """The bytes that a log of given rows takes on the disk, with all that belongs to it."""
    site.rows = {"S": [ONLY]}
    with site.manager(stream(**SMALL)) as manager:
        for one in range(readers):
            site.read("S", f"query {one}")
        wait_for(lambda: manager.status("S"))
        site.lines["a0"].say(*readings())
        wait_for(lambda: manager.streams()[0].rows == ROWS)
        assert manager.streams()[0].readers == readers
    assert site.lines.opened == {"a0": 1}
    return sum(one.stat().st_size for one in Path(site.locate("S")).rglob("*") if one.is_file())


def readings() -> Iterator[list[Reading]]:
    """Values that cannot be compressed, so that it does not matter how they are gathered."""
    values = Random(6)
    for _ in range(ROWS // 1000):
        yield [Reading(NEW_VALUE, {"x": values.random()}) for _ in range(1000)]


def test_ten_readers_take_the_room_of_one(tmp_path: Path) -> None:
    one, ten = (fill(Site(tmp_path / str(count)), count) for count in (1, 10))
    assert ten <= 1.05 * one


def test_segments_go_when_the_slowest_of_ten_readers_commits(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.rows = {"S": [ONLY]}
    log = Path(site.locate("S"))
    with site.manager(stream(**SMALL)) as manager:
        for one in range(10):
            site.read("S", f"query {one}")
        wait_for(lambda: manager.status("S"))
        line = site.lines["a0"]
        for number, some in enumerate(readings(), 1):
            line.say(some)
            wait_for(lambda rows=number * 1000: manager.streams()[0].rows == rows)
        before = len(list(log.glob("*.seg")))
        assert before > 2
        end = LogReader.open(str(log)).end
        for one in range(9):
            commit(str(log), f"query {one}", end, now=site.now())
        line.say({"x": 1.0})  # a log is looked after while it is written to
        wait_for(lambda: manager.streams()[0].rows == ROWS + 1)
        assert len(list(log.glob("*.seg"))) >= before
        assert LogReader.open(str(log)).start.row == 0
        commit(str(log), "query 9", end, now=site.now())
        line.say({"x": 2.0})
        wait_for(lambda: len(list(log.glob("*.seg"))) <= 2)


@pytest.mark.parametrize("readers", [1, 10])
def test_a_sensor_has_one_connection_for_all_its_readers(tmp_path: Path, readers: int) -> None:
    site = Site(tmp_path)
    with HttpSensors() as http:
        site.rows = {"T": [Sensor(1, 1, {"id": 1, "room": "hall"}, http.url(1))]}
        readings = pa.schema([("reading", pa.int64())])
        declared = table("http", readings=readings, options={"interval": "20ms"})
        with site.manager(declared, find_type=stream_class) as manager:
            for one in range(readers):
                site.read("T", f"query {one}")
            wait_for(lambda: any(one.readings > 20 for one in manager.status("T")))
        assert http.connections() == 1
        stored = LogReader.open(site.locate("T"))
        asked = http.counts()["/sensor/1"]
        assert stored.end.row in (asked, asked - 1), "every answer is stored once"
        assert stored.start.row == 0
