"""What CREATE STREAM and CREATE SENSOR TABLE declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from nilometer.kernels.read_times import without_forms
from nilometer.log.layout import SENSOR, TIME, TIMESTAMP, LogLayout, SensorLayout
from nilometer.sensors.types.address import ADDRESS


@dataclass(frozen=True)
class Declaration:
    """A stream (one sensor, no static columns) or a table of sensors."""

    name: str
    readings: pa.Schema
    """The columns of a reading; those that hold times may say in which form these come."""
    stream_type: str
    options: Mapping[str, str] = field(default_factory=dict)
    """WITH (…): those of the stream type, and those of the log and the manager."""
    time: str | None = None
    """The column of a reading that holds the time; None: the time of arrival."""
    end: str | None = field(default=None, kw_only=True)
    """The column of a reading until which it counts, where one is declared."""
    lateness: int = 0
    idle: int | None = None
    history: int = 0
    static: pa.Schema | None = None
    """The static columns of a sensor table; None: a stream."""
    place: int = 0
    """Before which static column the stream column stands."""
    column: str | None = None
    """The name of the stream column of a sensor table."""

    @property
    def is_sensor_table(self) -> bool:
        return self.static is not None

    @property
    def only_sensor(self) -> Sensor:
        """The sensor of a stream, whose address is one of its options."""
        return Sensor(0, 0, {}, self.options.get(ADDRESS, ""))

    @property
    def layout(self) -> LogLayout:
        """How its log looks."""
        readings = without_forms(self.readings)
        if self.static is None or self.column is None:
            if self.time is not None:
                return LogLayout(readings, self.time)
            return LogLayout(readings.append(pa.field(TIME, TIMESTAMP)), TIME)
        others = [one for one in readings if one.name != self.time]
        stored = pa.schema([pa.field(SENSOR, pa.int32()), pa.field(TIME, TIMESTAMP), *others])
        sensors = SensorLayout(
            without_forms(self.static), self.place, self.column, readings, self.time
        )
        return LogLayout(stored, TIME, sensors)


@dataclass(frozen=True)
class Sensor:
    """One row of a sensor table, or the only sensor of a stream."""

    number: int
    """The sensor's number, which stays when its values are updated; 0 in a stream."""
    version: int
    """The number of these static values, never used again; 0 in a stream."""
    values: Mapping[str, object]
    """The static values by column."""
    address: str
    """The value of the stream column: an address, or a JSON object with options."""

    @property
    def name(self) -> str:
        """What tells it from others in messages: its first static value; of a stream, nothing."""
        first = next(iter(self.values.values()), "")
        return "NULL" if first is None else str(first)
