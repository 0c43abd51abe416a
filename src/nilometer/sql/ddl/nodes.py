"""The database's own statements as written, each checked on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from sqlglot import exp

from nilometer.errors import Place
from nilometer.sql.ddl.parts import (
    AddColumn,
    ColumnDef,
    DropColumn,
    GivenOption,
    RenameColumn,
    SetOptions,
    StreamDef,
)
from nilometer.sql.parse.query_text import Statement


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


class ObjectKind(StrEnum):
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

    kind: ObjectKind
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
class AlterStream:
    """ALTER STREAM | SENSOR TABLE name, and the change."""

    kind: ObjectKind
    name: str
    change: SetOptions | AddColumn | DropColumn | RenameColumn
    place: Place


@dataclass(frozen=True)
class Rename:
    """ALTER STREAM | SENSOR TABLE | TABLE | VIEW | QUERY | ALERT name RENAME TO name."""

    kind: ObjectKind
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


class ShowKind(StrEnum):
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

    what: ShowKind
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
