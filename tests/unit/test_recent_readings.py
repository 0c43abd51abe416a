"""The newest readings of a stream, for its chart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.errors import LogError
from nilometer.log.layout import SENSOR, TIME, TIMESTAMP, LogLayout, SensorLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.registrations import registrations
from nilometer.log.static_rows import add_static_rows
from nilometer.log.writer import LogWriter
from nilometer.server.results.recent_readings import RecentReadings
from tests.unit.log_samples import LAYOUT, OPTIONS_TO_PACK, rows_from


def numbers(rows: pa.Table) -> list[int]:
    values: list[int] = rows["k"].to_pylist()
    return values


def test_the_newest_come_first_and_then_what_is_new(tmp_path: Path) -> None:
    log = tmp_path / "S"
    with pytest.raises(LogError):
        RecentReadings(str(log))
    with LogWriter.open(log, LAYOUT, OPTIONS_TO_PACK) as writer:
        readings = RecentReadings(str(log))
        assert readings.schema.names == [TIME, "k", "v"]
        assert numbers(readings.take(10)) == []
        writer.append(rows_from(0, 25))
        assert numbers(readings.take(10)) == list(range(15, 25))
        assert numbers(readings.take(10)) == []
        writer.append(rows_from(25, 3))
        assert numbers(readings.take(10)) == [25, 26, 27]
        writer.append(rows_from(28, 30))  # too many for it: the newest are what counts
        assert numbers(readings.take(10)) == list(range(48, 58))
        readings.begin_anew()
        assert numbers(readings.take(4)) == [54, 55, 56, 57]
    assert registrations(log) == []  # nothing is kept for a chart


def test_rows_may_be_deleted_before_they_are_looked_at(tmp_path: Path) -> None:
    options = LogOptions(fsync=Fsync.NEVER, segment=1000, memory=0, history=0)
    with LogWriter.open(tmp_path / "S", LAYOUT, options) as writer:
        writer.append(rows_from(0, 10))
        readings = RecentReadings(str(tmp_path / "S"))
        assert numbers(readings.take(10_000)) == list(range(10))
        for first in range(10, 5_000, 100):
            writer.append(rows_from(first, 100))
        assert writer.trim() > 0
        values = numbers(readings.take(10_000))
        assert values[0] > 10
        assert values == list(range(values[0], 5_010))


def test_a_declared_time_is_the_time_of_the_chart(tmp_path: Path) -> None:
    schema = pa.schema([("at", TIMESTAMP), ("v", pa.float64())])
    with LogWriter.open(tmp_path / "S", LogLayout(schema, "at"), OPTIONS_TO_PACK) as writer:
        writer.append(pa.record_batch({"at": pa.array([5], TIMESTAMP), "v": [1.5]}, schema))
        readings = RecentReadings(str(tmp_path / "S"))
        assert readings.schema.names == [TIME, "v"]
        assert readings.take(10)["v"].to_pylist() == [1.5]


def test_readings_of_a_table_bear_what_is_known_of_their_sensors(tmp_path: Path) -> None:
    static = pa.schema([("room", pa.string())])
    own = SensorLayout(static, 1, "reading", pa.schema([("c", pa.float64())]), None)
    stored = pa.schema([(SENSOR, pa.int32()), (TIME, TIMESTAMP), ("c", pa.float64())])
    with LogWriter.open(tmp_path / "T", LogLayout(stored, TIME, own), OPTIONS_TO_PACK) as writer:
        add_static_rows(
            tmp_path / "T", pa.table({SENSOR: [1, 2], "room": ["hall", "roof"]}, own.versions)
        )
        times = pa.array([10, 20], TIMESTAMP)
        writer.append(pa.record_batch({SENSOR: [2, 1], TIME: times, "c": [4.0, 21.0]}, stored))
        readings = RecentReadings(str(tmp_path / "T"))
        assert readings.schema.names == ["room", "reading.c", TIME]
        rows = readings.take(10)
    assert rows["room"].to_pylist() == ["roof", "hall"]
    assert rows["reading.c"].to_pylist() == [4.0, 21.0]
