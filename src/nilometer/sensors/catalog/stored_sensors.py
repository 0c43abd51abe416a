"""The sensors of sensor tables: a change of one is a new version, while its number stays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from sqlalchemy import Connection, func, insert, select, update

from nilometer.log.layout import SENSOR, fit_columns, in_files
from nilometer.sensors.catalog.arrow_values import pack_row, rows_of, unpack_row, values_of
from nilometer.sensors.catalog.schema import VERSIONS, counters, names, sensors
from nilometer.sensors.catalog.stored_names import require_text
from nilometer.sensors.declaration import Declaration, Sensor, file_names

SensorRow: TypeAlias = tuple[Mapping[str, object], str]
"""Static values by column, and the address."""
SensorUpdate: TypeAlias = Callable[[pa.Table], Mapping[int, SensorRow]]
"""Given the rows of a sensor table, returns new rows by the versions that they replace."""
SensorChoice: TypeAlias = Callable[[pa.Table], Collection[int]]
"""Given the rows of a sensor table, returns some of their versions."""

_AT_A_TIME = 500
"""The number of versions in one statement."""


@dataclass(frozen=True)
class StoredSensor:
    """A sensor as stored."""

    number: int
    version: int
    row: pa.RecordBatch
    address: str

    @property
    def shown(self) -> Sensor:
        return Sensor(self.number, self.version, values_of(self.row), self.address)


def read_sensors(connection: Connection, owner: int, static: pa.Schema) -> list[StoredSensor]:
    """The sensors that are not deleted, in the order in which they were inserted."""
    alive = (sensors.c.owner == owner) & sensors.c.deleted.is_(None)
    rows = connection.execute(select(sensors).where(alive).order_by(sensors.c.number))
    return [
        StoredSensor(one.number, one.version, unpack_row(one.content, static), one.address)
        for one in rows
    ]


def count_sensors(connection: Connection) -> dict[str, int]:
    """The number of sensors that are not deleted, by the names of their tables."""
    alive = select(names.c.name, func.count()).join_from(
        sensors, names, sensors.c.owner == names.c.id
    )
    rows = connection.execute(alive.where(sensors.c.deleted.is_(None)).group_by(names.c.name))
    return {name: int(count) for name, count in rows}


def sensor_table(declared: Declaration, stored: Sequence[StoredSensor]) -> pa.Table:
    """The columns as declared, the stream column as text, and SENSOR."""
    assert declared.static is not None
    static = pa.Table.from_batches([one.row for one in stored], declared.static)
    fields, columns = list(declared.static), list(static.columns)
    fields.insert(declared.place, pa.field(declared.column, pa.string()))
    columns.insert(declared.place, pa.array([one.address for one in stored], pa.string()))
    fields.append(pa.field(SENSOR, pa.int32()))
    columns.append(pa.array([one.version for one in stored], pa.int32()))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields)).combine_chunks()


def insert_sensors(
    connection: Connection, owner: int, static: pa.Schema, rows: Sequence[SensorRow], now: int
) -> list[Sensor]:
    """Store new sensors, each with a number that no sensor has ever had."""
    batches = rows_of([values for values, _ in rows], static)
    first = _take_versions(connection, len(rows))
    made = [
        StoredSensor(first + place, first + place, batch, address)
        for place, (batch, (_, address)) in enumerate(zip(batches, rows, strict=True))
    ]
    _store(connection, owner, made, now)
    return [one.shown for one in made]


def update_sensors(
    connection: Connection, owner: int, declared: Declaration, change: SensorUpdate, now: int
) -> list[Sensor]:
    """Replace rows as the function says, and return the new ones; equal rows stay unchanged."""
    assert declared.static is not None
    stored = read_sensors(connection, owner, declared.static)
    wanted = change(sensor_table(declared, stored))
    old = [one for one in stored if one.version in wanted]
    rows = rows_of([wanted[one.version][0] for one in old], declared.static)
    pairs = [
        (one, StoredSensor(one.number, 0, row, wanted[one.version][1]))
        for one, row in zip(old, rows, strict=True)
    ]
    pairs = [(one, new) for one, new in pairs if not _is_same(one, new)]
    first = _take_versions(connection, len(pairs))
    made = [
        StoredSensor(new.number, first + place, new.row, new.address)
        for place, (_, new) in enumerate(pairs)
    ]
    _end(connection, [one.version for one, _ in pairs], now)
    _store(connection, owner, made, now)
    return [one.shown for one in made]


def delete_sensors(
    connection: Connection, owner: int, declared: Declaration, choose: SensorChoice, now: int
) -> list[Sensor]:
    """Delete the sensors that the function chooses, and return them."""
    assert declared.static is not None
    stored = read_sensors(connection, owner, declared.static)
    chosen = frozenset(choose(sensor_table(declared, stored)))
    deleted = [one for one in stored if one.version in chosen]
    _end(connection, [one.version for one in deleted], now)
    return [one.shown for one in deleted]


def fit_sensors(connection: Connection, owner: int, before: pa.Schema, after: Declaration) -> None:
    """Give all sensors, including deleted ones, the static columns of a declaration."""
    assert after.static is not None
    fit = fit_columns(in_files(before, file_names(before)), after.static, file_names(after.static))
    if fit is None:
        return
    stored = connection.execute(select(sensors).where(sensors.c.owner == owner)).all()
    for one in stored:
        row = unpack_row(one.content, before)
        fitted = fit(row) if row.num_columns else _nulls(after.static)
        changed = update(sensors).where(sensors.c.version == one.version)
        connection.execute(changed.values(content=pack_row(fitted)))


def _nulls(static: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(1, one.type) for one in static], schema=static)


def _is_same(one: StoredSensor, other: StoredSensor) -> bool:
    # Bytes distinguish NaN from other values, and -0.0 from 0.0.
    return one.address == other.address and pack_row(one.row) == pack_row(other.row)


def _take_versions(connection: Connection, number: int) -> int:
    """Reserve this many unused versions, and return the first."""
    statement = update(counters).where(counters.c.name == VERSIONS)
    statement = statement.values(value=counters.c.value + number)
    last = connection.execute(statement.returning(counters.c.value)).scalar_one()
    return int(last) - number + 1


def _store(connection: Connection, owner: int, made: Sequence[StoredSensor], now: int) -> None:
    for one in made:
        require_text(one.address, "the address of a sensor")
    rows = [
        {
            "version": one.version,
            "owner": owner,
            "number": one.number,
            "content": pack_row(one.row),
            "address": one.address,
            "created": now,
        }
        for one in made
    ]
    if rows:
        connection.execute(insert(sensors), rows)


def _end(connection: Connection, versions: Sequence[int], now: int) -> None:
    for start in range(0, len(versions), _AT_A_TIME):
        condition = sensors.c.version.in_(versions[start : start + _AT_A_TIME])
        connection.execute(update(sensors).where(condition).values(deleted=now))
