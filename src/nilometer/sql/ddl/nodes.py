"""The database's own statements as written, each checked on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.kernels.read_times import time_field, with_distinct
from nilometer.model.time_forms import TimeForm
from nilometer.sql.parse.query_text import Statement


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
class CreateStream:
    """CREATE STREAM name (…) FROM type WITH (…)."""

    name: str
    stream: StreamDef
    if_not_exists: bool
    place: Place
    """Where the name is in the text; likewise in all statements."""


@dataclass(frozen=True)
class CreateSensorTable:
    """CREATE SENSOR TABLE name (static columns, column STREAM(…) FROM type WITH (…))."""

    name: str
    static: tuple[ColumnDef, ...]
    column: str
    stream_place: int
    """The index of the static column that follows the stream column."""
    stream: StreamDef
    if_not_exists: bool
    place: Place


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE name (columns)."""

    name: str
    columns: tuple[ColumnDef, ...]
    if_not_exists: bool
    place: Place


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
class CreateQuery:
    """CREATE [OR REPLACE] QUERY name [WITH (name = value, …)] AS SELECT …"""

    name: str
    query: Statement
    """Read by itself, as it will be when it starts again."""
    text_place: Place
    """Where its text is in the statement."""
    if_not_exists: bool
    place: Place
    options: Mapping[str, GivenOption] = field(default_factory=dict)
    or_replace: bool = False


@dataclass(frozen=True)
class CreateView:
    """CREATE [OR REPLACE] VIEW name AS SELECT …"""

    name: str
    query: Statement
    """Read by itself."""
    text_place: Place
    """Where its text is in the statement."""
    or_replace: bool
    if_not_exists: bool
    place: Place


@dataclass(frozen=True)
class CreateDelivery:
    """CREATE DELIVERY name FROM query TO unit WITH (…)."""

    name: str
    query: str
    unit: str
    """In lower case."""
    options: Mapping[str, GivenOption]
    if_not_exists: bool
    place: Place
    query_place: Place
    unit_place: Place


@dataclass(frozen=True)
class DeliverTo:
    """DELIVER TO unit WITH (…)."""

    unit: str
    """In lower case."""
    options: Mapping[str, GivenOption]
    place: Place
    """Where the unit is in the text."""


@dataclass(frozen=True)
class CreateAlert:
    """CREATE ALERT name ON source [WHEN condition [FOR d] [CLEAR WHEN condition]] …"""

    name: str
    source: str
    condition: str | None
    """The text of the condition alone; None: the alert reports silence only."""
    if_not_exists: bool
    place: Place
    source_place: Place
    condition_place: Place | None = None
    hold: int = 0
    clear: str | None = None
    clear_place: Place | None = None
    per: tuple[tuple[str, Place], ...] = ()
    no_data: int | None = None
    options: Mapping[str, GivenOption] = field(default_factory=dict)
    deliver: DeliverTo | None = None


@dataclass(frozen=True)
class Insert:
    """INSERT INTO table [(columns)] VALUES (…), …; the values are constants."""

    table: str
    columns: tuple[str, ...] | None
    rows: tuple[tuple[object, ...], ...]
    """Python values: None, bool, int, float, Decimal, str, bytes, date, datetime."""
    sql: str
    place: Place
    row_places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Update:
    """UPDATE table SET column = expression, … [WHERE condition]."""

    table: str
    assignments: Mapping[str, exp.Expr]
    condition: exp.Expr | None
    sql: str
    place: Place


@dataclass(frozen=True)
class Delete:
    """DELETE FROM table [WHERE condition]."""

    table: str
    condition: exp.Expr | None
    sql: str
    place: Place


class Kind(StrEnum):
    """The kinds of objects that have names."""

    STREAM = "STREAM"
    SENSOR_TABLE = "SENSOR TABLE"
    TABLE = "TABLE"
    QUERY = "QUERY"
    DELIVERY = "DELIVERY"
    VIEW = "VIEW"
    ALERT = "ALERT"


@dataclass(frozen=True)
class Drop:
    """DROP STREAM | SENSOR TABLE | TABLE | QUERY | DELIVERY | VIEW | ALERT [IF EXISTS] name."""

    kind: Kind
    name: str
    if_exists: bool
    place: Place


@dataclass(frozen=True)
class StartQuery:
    """START QUERY name."""

    name: str
    place: Place


@dataclass(frozen=True)
class StopQuery:
    """STOP QUERY name."""

    name: str
    place: Place


@dataclass(frozen=True)
class AlterQuery:
    """ALTER QUERY name SET (name = value, …)."""

    name: str
    options: Mapping[str, GivenOption]
    place: Place


@dataclass(frozen=True)
class AlterAlert:
    """ALTER ALERT name SET (name = value, …)."""

    name: str
    options: Mapping[str, GivenOption]
    place: Place


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


@dataclass(frozen=True)
class AlterStream:
    """ALTER STREAM | SENSOR TABLE name, and the change."""

    kind: Kind
    name: str
    change: SetOptions | AddColumn | DropColumn | RenameColumn
    place: Place


@dataclass(frozen=True)
class Rename:
    """ALTER STREAM | SENSOR TABLE | TABLE | VIEW | QUERY | ALERT name RENAME TO name."""

    kind: Kind
    name: str
    to: str
    place: Place
    to_place: Place


@dataclass(frozen=True)
class StartDelivery:
    """START DELIVERY name."""

    name: str
    place: Place


@dataclass(frozen=True)
class StopDelivery:
    """STOP DELIVERY name."""

    name: str
    place: Place


class Shown(StrEnum):
    """The kinds of objects that SHOW lists."""

    STREAMS = "STREAMS"
    TABLES = "TABLES"
    SENSORS = "SENSORS"
    QUERIES = "QUERIES"
    VIEWS = "VIEWS"
    DELIVERIES = "DELIVERIES"
    ALERTS = "ALERTS"
    READERS = "READERS"
    DEAD_LETTERS = "DEAD LETTERS"
    STREAM_TYPES = "STREAM TYPES"
    STORAGE = "STORAGE"


@dataclass(frozen=True)
class Show:
    """SHOW STREAMS | TABLES | SENSORS | …; some of them FROM a stream or table."""

    what: Shown
    of: str | None
    place: Place


@dataclass(frozen=True)
class Describe:
    """DESCRIBE name: a stream, table, sensor table, view, query, delivery or alert."""

    name: str
    place: Place


@dataclass(frozen=True)
class ExplainQuery:
    """EXPLAIN QUERY name: the plan of a query as it runs, and how its rows are spread."""

    name: str
    place: Place


DatabaseStatement: TypeAlias = (
    CreateStream
    | CreateSensorTable
    | CreateTable
    | CreateQuery
    | CreateView
    | CreateDelivery
    | CreateAlert
    | Insert
    | Update
    | Delete
    | Drop
    | StartQuery
    | StopQuery
    | AlterQuery
    | AlterAlert
    | AlterStream
    | Rename
    | StartDelivery
    | StopDelivery
    | Show
    | Describe
    | ExplainQuery
)
