"""What a statement can name: streams, static tables, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow as pa

from nilometer.kernels.read_texts import is_region
from nilometer.operators.watermarks import StreamClock

_UTC: Final = ("UTC", "ETC/UTC", "GMT", "Z", "+00:00")
UTC: Final = "UTC"
ARRIVAL = "current_timestamp()"
"""What stands for the time column of a stream without one: the time of arrival."""


@dataclass(frozen=True)
class Statistics:
    """What is known of a stream: rows per second, and distinct values of columns."""

    rate: float | None = None
    distinct: Mapping[str, float] = field(default_factory=dict)
    """By the names of columns; those of fields have dots: reading.value."""
    is_measured: bool = False
    """Whether some of it was measured, and not declared."""


@dataclass(frozen=True)
class SensorColumns:
    """What tells a sensor table from other streams: a row has static columns, and a reading."""

    static: tuple[str, ...]
    column: str
    """The stream column, a struct of what a reading holds."""


@dataclass(frozen=True)
class Relation:
    """A stream, or a static table, which has no time."""

    name: str
    columns: tuple[str, ...]
    types: tuple[pa.DataType | None, ...]
    """None: a type that has no Arrow form, which no query can use."""
    time: str | None = None
    """The column that holds the time; None in a stream: the time of arrival."""
    clock: StreamClock = field(default_factory=StreamClock)
    is_table: bool = False
    end: tuple[str, ...] | None = None
    """The column until which a row counts, which begins to count at its time; or a field of one."""
    statistics: Statistics = field(default_factory=Statistics)
    has_implicit_time: bool = False
    """Whether nobody declared the column of the time: a star does not stand for it."""
    waits: str = ""
    """For how long silent sensors hold it up, where the log says how far time has come."""
    sensors: SensorColumns | None = None
    """Of a sensor table; its static rows are the table `sensor_rows`."""
    rows_of: str | None = None
    """The sensor table of which this is the table of static rows."""
    readings: tuple[str, ...] = ()
    """What the readings of that table hold, as queries name it: for those who ask for less."""
    rows: pa.RecordBatch | None = field(default=None, compare=False)
    """Of a table that the statement itself brings along: VALUES."""

    @property
    def time_column(self) -> str:
        return self.time or ARRIVAL

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """The columns that a star stands for."""
        hidden = self.time if self.has_implicit_time else None
        return tuple(name for name in self.columns if name != hidden)

    @property
    def sensor_rows(self) -> Relation:
        """The static table that a sensor table is to queries which need no reading."""
        assert self.sensors is not None
        kinds = dict(zip(self.columns, self.types, strict=True))
        static = self.sensors.static
        return Relation(
            rows_name(self.name),
            static,
            tuple(kinds[name] for name in static),
            clock=StreamClock(ended=True),
            is_table=True,
            rows_of=self.name,
            readings=_fields_of(self.sensors.column, kinds.get(self.sensors.column)),
        )


def _fields_of(column: str, kind: pa.DataType | None) -> tuple[str, ...]:
    if kind is None or not pa.types.is_struct(kind):
        return (column,)
    return tuple(f"{column}.{kind.field(i).name}" for i in range(kind.num_fields))


def rows_name(sensor_table: str) -> str:
    """The name of the table of a sensor table's static rows, as it is now.

    >>> rows_name("Sensors")
    'rows of Sensors'
    """
    return f"rows of {sensor_table}"


@dataclass(frozen=True)
class Function:
    """A Python function that statements may call; it gets pandas Series, or plain values."""

    name: str
    function: Callable[..., Any]
    returns: pa.DataType
    by_row: bool = False


class Engine(Protocol):
    """Knows what the dialect does not: the types of the engine's own functions."""

    def types_of(self, relation: str, expressions: Sequence[str]) -> list[pa.DataType]:
        """The types of expressions over one relation's columns; a SqlError if refused."""

    @property
    def time_zone(self) -> str:
        """Where days and hours begin."""


@dataclass(frozen=True)
class Catalog:
    """All that statements may name."""

    relations: Mapping[str, Relation]
    functions: Mapping[str, Function]
    engine: Engine
    queries: Mapping[str, str] = field(default_factory=dict)
    """The texts of views, and of named queries whose answers change, by their names."""

    @property
    def zone(self) -> str:
        """Where days and hours begin: UTC or a region; empty if that is not understood here."""
        zone = self.engine.time_zone
        if zone.upper() in _UTC:
            return UTC
        return zone if is_region(zone) else ""
