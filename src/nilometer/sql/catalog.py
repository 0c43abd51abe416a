"""What a statement can name: streams, static tables, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, Protocol

import pyarrow as pa

from nilometer.errors import InputError, SqlError
from nilometer.kernels.read_texts import is_region
from nilometer.operators.watermarks import StreamClock

_UTC: Final = ("UTC", "ETC/UTC", "GMT", "Z", "+00:00")
UTC: Final = "UTC"
ARRIVAL = "current_timestamp()"
"""What stands for the time column of a stream without one: the arrival time."""


@dataclass(frozen=True)
class Statistics:
    """What is known about a stream: rows per second, and distinct values of columns."""

    rate: float | None = None
    distinct: Mapping[str, float] = field(default_factory=dict)
    """By the names of columns; those of fields have dots: reading.value."""
    is_measured: bool = False
    """Whether some of it was measured rather than declared."""


@dataclass(frozen=True)
class SensorColumns:
    """What makes a stream a sensor table: each row has static columns and a reading."""

    static: tuple[str, ...]
    column: str
    """The stream column: a struct with the fields of a reading."""


@dataclass(frozen=True)
class Relation:
    """A stream, or a static table, which has no time."""

    name: str
    columns: tuple[str, ...]
    types: tuple[pa.DataType | None, ...]
    """None: a type without an Arrow form; no query can use the column."""
    time: str | None = None
    """The column that holds the time; None in a stream: the arrival time."""
    clock: StreamClock = field(default_factory=StreamClock)
    is_table: bool = False
    end: tuple[str, ...] | None = None
    """The column, or a field of one, until which a row counts; it counts from its time on."""
    statistics: Statistics = field(default_factory=Statistics)
    has_implicit_time: bool = False
    """Whether the time column was not declared; a star does not include it."""
    waits: str = ""
    """How long silent sensors hold it up, where the log reports the watermark."""
    sensors: SensorColumns | None = None
    """Set for a sensor table; its static rows are the table `sensor_rows`."""
    rows_of: str | None = None
    """The sensor table whose static rows this table holds."""
    readings: tuple[str, ...] = ()
    """The fields of that table's readings, as queries name them, for queries that use less."""
    rows: pa.RecordBatch | None = field(default=None, compare=False)
    """The rows of a table that the statement itself contains: VALUES."""

    @property
    def time_column(self) -> str:
        return self.time or ARRIVAL

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """The columns that a star includes."""
        hidden = self.time if self.has_implicit_time else None
        return tuple(name for name in self.columns if name != hidden)

    @property
    def sensor_rows(self) -> Relation:
        """The static table that replaces a sensor table in queries that need no reading."""
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
    """The current name of the table of a sensor table's static rows.

    >>> rows_name("Sensors")
    'rows of Sensors'
    """
    return f"rows of {sensor_table}"


@dataclass(frozen=True)
class UserFunction:
    """A Python function that statements may call; it takes pandas Series or plain values."""

    name: str
    function: Callable[..., Any]
    returns: pa.DataType
    by_row: bool = False
    cost: float | None = None
    """What a call for one row costs, in comparisons of two rows; None if nobody said."""

    def __post_init__(self) -> None:
        if self.cost is not None and not (0 < self.cost < inf):
            raise InputError(f"the cost of function {self.name} is above 0, got {self.cost}")

    @property
    def assumed_cost(self) -> float:
        """The declared cost, or a common one: plain values are about ten times a comparison."""
        return self.cost or (10.0 if self.by_row else 1.0)


class NoEngineError(SqlError):
    """There is no engine that could be asked."""


class Engine(Protocol):
    """Knows what the dialect does not: the types of the engine's own functions."""

    def types_of(self, relation: str, expressions: Sequence[str]) -> list[pa.DataType]:
        """The types of expressions over one relation's columns; raises SqlError if refused."""

    @property
    def time_zone(self) -> str:
        """The time zone that decides where days and hours begin."""


@dataclass(frozen=True)
class Catalog:
    """Everything that statements may name."""

    relations: Mapping[str, Relation]
    functions: Mapping[str, UserFunction]
    engine: Engine
    queries: Mapping[str, str] = field(default_factory=dict)
    """The texts of views, and of named queries whose answers change, by their names."""

    @property
    def zone(self) -> str:
        """The time zone of days and hours: UTC or a region; empty if unknown here."""
        zone = self.engine.time_zone
        if zone.upper() in _UTC:
            return UTC
        return zone if is_region(zone) else ""
