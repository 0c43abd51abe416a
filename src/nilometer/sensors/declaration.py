"""What CREATE STREAM and CREATE SENSOR TABLE declare."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from nilometer.kernels.read_times import declared_distinct, without_forms
from nilometer.log.layout import SENSOR, TIME, TIMESTAMP, LogLayout, Names, SensorLayout
from nilometer.model.time import FOREVER, format_duration
from nilometer.sensors.types.address import ADDRESS
from nilometer.sql.catalog import Statistics

DEFAULT_IDLE: Final = 60_000_000
"""The minimum IDLE of the sensors of a table that was declared without IDLE."""
_FILE_NAME: Final = b"nilometer.name_in_files"


def file_name(column: pa.Field) -> str:
    """The name of a column in files, which no other column of its stream has ever had."""
    stored = (column.metadata or {}).get(_FILE_NAME)
    return str(column.name) if stored is None else stored.decode()


def with_file_name(column: pa.Field, name: str) -> pa.Field:
    """A copy of a column that has this name in files."""
    return column.with_metadata({**(column.metadata or {}), _FILE_NAME: name.encode()})


def file_names(columns: pa.Schema) -> Names:
    """The columns whose names in files differ, with these names."""
    names = ((one.name, file_name(one)) for one in columns)
    return tuple((name, other) for name, other in names if name != other)


@dataclass(frozen=True)
class Declaration:
    """A stream (one sensor, no static columns) or a table of sensors."""

    name: str
    readings: pa.Schema
    """The columns of a reading; those that hold times may specify their form."""
    stream_type: str
    options: Mapping[str, str] = field(default_factory=dict)
    """WITH (…): the options of the stream type, of the log and of the manager."""
    time: str | None = None
    """The column that holds the time of a reading; None: the arrival time."""
    end: str | None = field(default=None, kw_only=True)
    """The column that says until when a reading counts, if one is declared."""
    lateness: int = 0
    idle: int | None = None
    """How long a silent sensor is waited for; FOREVER: always; None: the default, which is always
    for a stream, and `DEFAULT_IDLE` or longer for a sensor table."""
    every: int | None = field(default=None, kw_only=True)
    """The expected interval of each sensor; None: it is learned."""
    history: int = 0
    static: pa.Schema | None = None
    """The static columns of a sensor table; None for a stream."""
    place: int = 0
    """The static column before which the stream column stands."""
    column: str | None = None
    """The name of the stream column of a sensor table."""

    @property
    def is_sensor_table(self) -> bool:
        return self.static is not None

    @property
    def has_default_idle(self) -> bool:
        """Whether its sensors have the default IDLE of a sensor table."""
        return self.is_sensor_table and self.idle is None

    @property
    def shown_idle(self) -> str | None:
        """How long a silent sensor is waited for, as text; None: always.

        >>> Declaration("Wind", pa.schema([]), "mqtt", idle=5_000_000).shown_idle
        '5s'
        """
        if self.has_default_idle:
            return f"{format_duration(DEFAULT_IDLE)} by default"
        if self.idle is None:
            return None
        return "never" if self.idle >= FOREVER else format_duration(self.idle)

    def statistics(self, measured: Statistics, sensors: int) -> Statistics:
        """The known statistics of its rows: distinct values as declared, else as measured; the rate
        of rows as measured, else as EVERY declares for this many sensors."""
        inside = "" if self.column is None else f"{self.column}."
        readings = {f"{inside}{one.name}": declared_distinct(one) for one in self.readings}
        static = {one.name: declared_distinct(one) for one in self.static or ()}
        declared = {name: float(one) for name, one in (readings | static).items() if one}
        rate = measured.rate
        if rate is None and self.every is not None:
            rate = sensors * 1e6 / self.every
        distinct = {f"{inside}{name}": one for name, one in measured.distinct.items()}
        known = {name: one for name, one in distinct.items() if name in readings}
        is_measured = measured.rate is not None or bool(known.keys() - declared.keys())
        return Statistics(rate or None, {**known, **declared}, is_measured)

    @property
    def only_sensor(self) -> Sensor:
        """The sensor of a stream, whose address is one of its options."""
        return Sensor(0, 0, {}, self.options.get(ADDRESS, ""))

    @property
    def in_files(self) -> frozenset[str]:
        """All columns by their names in files, with a dot before those of readings."""
        readings = {f".{file_name(one)}" for one in self.readings}
        return frozenset(readings | {file_name(one) for one in self.static or ()})

    def only(self, known: Collection[str]) -> Declaration:
        """A copy with only these columns, by their names in files: an earlier state."""
        readings = [one for one in self.readings if f".{file_name(one)}" in known]
        static = [one for one in self.static or () if file_name(one) in known]
        before = list(self.static or ())[: self.place]
        return replace(
            self,
            readings=pa.schema(readings),
            static=None if self.static is None else pa.schema(static),
            place=sum(file_name(one) in known for one in before),
        )

    @property
    def layout(self) -> LogLayout:
        """The layout of its log."""
        readings, names = without_forms(self.readings), file_names(self.readings)
        if self.static is None or self.column is None:
            if self.time is not None:
                return LogLayout(readings, self.time, names=names)
            stored = readings.append(pa.field(TIME, TIMESTAMP))
            return LogLayout(stored, TIME, names=names)
        others = [one for one in readings if one.name != self.time]
        stored = pa.schema([pa.field(SENSOR, pa.int32()), pa.field(TIME, TIMESTAMP), *others])
        sensors = SensorLayout(
            without_forms(self.static),
            self.place,
            self.column,
            readings,
            self.time,
            file_names(self.static),
        )
        names = tuple(one for one in names if one[0] != self.time)
        return LogLayout(stored, TIME, sensors, names=names)


@dataclass(frozen=True)
class Sensor:
    """One row of a sensor table, or the only sensor of a stream."""

    number: int
    """The sensor's number, which stays when its values are updated; 0 for a stream."""
    version: int
    """The number of these static values, never used again; 0 for a stream."""
    values: Mapping[str, object]
    """The static values by column."""
    address: str
    """The value of the stream column: an address, or a JSON object with options."""

    @property
    def name(self) -> str:
        """The sensor's name in messages: its first static value; empty for a stream."""
        first = next(iter(self.values.values()), "")
        return "NULL" if first is None else str(first)
