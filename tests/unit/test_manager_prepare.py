"""What sensors brought, made ready for one append."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from nilometer.log.layout import TIMESTAMP
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.manager.build_rows import RowBuilder
from nilometer.sensors.manager.prepare import Preparation
from nilometer.sensors.manager.received import Event, Received
from nilometer.sensors.manager.sensor_clock import SensorClock
from nilometer.sensors.manager.sensor_record import SensorRecord

READINGS = pa.schema([("x", pa.int64()), ("at", TIMESTAMP)])
SECOND = 1_000_000
NOW = 1000 * SECOND


def preparation() -> Preparation:
    declared = Declaration("S", READINGS, "any", time="at")
    return Preparation(RowBuilder(declared), SensorClock(0, None, SECOND))


def received(value: Any, time: int | None = None, *, can_wait: bool = True) -> Received:
    record = SensorRecord("S", int(can_wait), "S", "", can_wait=can_wait)
    return Received(Event.READING, record, 0, NOW, value, time)


def batch(numbers: list[int], times: list[int | None]) -> pa.RecordBatch:
    at = pa.array([None if one is None else one * SECOND for one in times], TIMESTAMP)
    return pa.record_batch({"x": pa.array(numbers), "at": at})


def test_a_time_given_with_a_reading_stands_in_where_the_column_has_none() -> None:
    prepared = preparation().prepare(
        [received({"x": 1}, 5 * SECOND), received(batch([2, 3, 4], [6, None, 8]), 7 * SECOND)]
    )
    assert prepared.rows is not None
    assert prepared.rows["x"].to_pylist() == [1, 2, 3, 4]
    seconds = [datetime.fromtimestamp(one, UTC) for one in (5, 6, 7, 8)]
    assert prepared.rows["at"].to_pylist() == seconds
    assert prepared.owners.tolist() == [0, 1, 1, 1]
    assert not prepared.letters


def test_rows_of_some_can_be_left_out() -> None:
    items = [
        received((1, 5), can_wait=False),
        received(batch([2, 3], [5, 6])),
        received((4, 9), can_wait=False),
        received((5, 7)),
    ]
    prepared = preparation().prepare(items).keep(lambda one: one.sensor.can_wait)
    prepared.count()
    assert prepared.rows is not None
    assert prepared.rows["x"].to_pylist() == [2, 3, 5]
    assert [one.rows for one in items] == [0, 2, 0, 1]


def test_all_can_be_refused() -> None:
    items = [received((1, 5)), received((2, 6))]
    prepared = preparation().refuse_all(items, "broken")
    assert (prepared.rows, len(prepared.owners)) == (None, 0)
    assert [(one.reason, one.payload) for one in prepared.letters] == [
        ("broken", "[1, 5]"),
        ("broken", "[2, 6]"),
    ]
    assert [one.sensor.dead_letters for one in items] == [1, 1]
