"""What statements consist of: columns, streams, options, and what ALTER changes of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from nilometer.errors import Place, SqlError
from nilometer.kernels.read_times import time_field, with_distinct
from nilometer.model.time_forms import TimeForm


@dataclass(frozen=True)
class ColumnDef:
    """A column and its type."""

    name: str
    kind: pa.DataType
    place: Place
    form: TimeForm | None = None
    """How times are given, if declared."""
    distinct: int | None = None
    """The number of distinct values, if declared."""

    @property
    def field(self) -> pa.Field:
        """The column as a field of a schema."""
        return with_distinct(time_field(self.name, self.kind, self.form), self.distinct)


@dataclass(frozen=True)
class StreamDef:
    """(columns, TIME c, LATENESS d, IDLE d, EVERY d, HISTORY d) FROM type WITH (a = value, …)."""

    columns: tuple[ColumnDef, ...]
    stream_type: str
    options: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case; values as text."""
    time: str | None = None
    end: str | None = None
    """The column with the time until which a row counts: TIME (time, end)."""
    lateness: int = 0
    idle: int | None = None
    """FOREVER: IDLE NEVER; None: not declared."""
    every: int | None = None
    history: int = 0

    @property
    def kind(self) -> pa.DataType:
        """The type of a reading: a struct of its columns."""
        return pa.struct([(column.name, column.kind) for column in self.columns])


@dataclass(frozen=True)
class GivenOption:
    """name = value, as written in a statement."""

    value: str
    place: Place

    def refusal(
        self, message: str, *, detail: str | None = None, hint: str | None = None
    ) -> SqlError:
        """The error about an option that cannot be used."""
        return SqlError(message, place=self.place, detail=detail, hint=hint)


@dataclass(frozen=True)
class SetOptions:
    """SET (name = value, …)."""

    options: Mapping[str, GivenOption]


@dataclass(frozen=True)
class ColumnName:
    """A column, or a field of the stream column of a sensor table: reading.v."""

    name: str
    place: Place
    inside: str | None = None
    """The stream column."""


@dataclass(frozen=True)
class AddColumn:
    """ADD COLUMN [reading.]name TYPE."""

    column: ColumnDef
    name: ColumnName


@dataclass(frozen=True)
class DropColumn:
    """DROP COLUMN [reading.]name."""

    name: ColumnName


@dataclass(frozen=True)
class RenameColumn:
    """RENAME COLUMN [reading.]name TO name."""

    name: ColumnName
    to: ColumnName
