"""CREATE STREAM, SENSOR TABLE, TABLE, QUERY, VIEW, DELIVERY and ALERT."""

from __future__ import annotations

from typing import Final

from nilometer.errors import Place, SqlSyntaxError
from nilometer.sql.ddl.nodes import (
    CreateAlert,
    CreateDelivery,
    CreateQuery,
    CreateSensorTable,
    CreateStream,
    CreateTable,
    CreateView,
)
from nilometer.sql.ddl.parts import ColumnDef, StreamDef
from nilometer.sql.ddl.read_alert import read_alert
from nilometer.sql.ddl.read_columns import ColumnList, read_column
from nilometer.sql.ddl.read_delivery import read_delivery
from nilometer.sql.ddl.read_options import read_placed_options
from nilometer.sql.ddl.read_stream import read_stream
from nilometer.sql.ddl.statement_reader import StatementReader
from nilometer.sql.parse.places import placed_within
from nilometer.sql.parse.query_text import Statement, read_query_tokens, tokenize

Created = (
    CreateStream
    | CreateSensorTable
    | CreateTable
    | CreateQuery
    | CreateView
    | CreateDelivery
    | CreateAlert
)

_CREATE: Final = (
    "write CREATE STREAM, CREATE SENSOR TABLE, CREATE TABLE, CREATE VIEW, CREATE QUERY, "
    "CREATE DELIVERY or CREATE ALERT"
)
_STREAM: Final = "write CREATE STREAM s (v DOUBLE, …) FROM http WITH (…)"
_SENSORS: Final = "write CREATE SENSOR TABLE s (id INT, …, reading STREAM(v DOUBLE, …) FROM http)"
_TABLE: Final = "write CREATE TABLE t (id INT, name STRING)"
_QUERY: Final = "write CREATE QUERY q AS SELECT …"
_VIEW: Final = "write CREATE VIEW v AS SELECT …"
_LIMITS: Final = "write CREATE QUERY q WITH (results = '1GB') AS SELECT …"


def read_create(reader: StatementReader) -> Created:
    """CREATE and what follows."""
    reader.take("CREATE")
    or_replace = reader.take("OR", "REPLACE")
    if or_replace and not (reader.at("VIEW") or reader.at("QUERY")):
        reader.refuse(
            "CREATE OR REPLACE is only for views and queries",
            hint="use ALTER for streams and sensor tables; drop others first",
        )
    if reader.take("VIEW"):
        return _view(reader, or_replace)
    if reader.take("STREAM"):
        return _stream(reader)
    if reader.take("SENSOR"):
        reader.expect("TABLE", "TABLE after SENSOR", _SENSORS)
        return _sensor_table(reader)
    if reader.take("TABLE"):
        return _table(reader)
    if reader.take("DELIVERY"):
        return read_delivery(reader)
    if reader.take("ALERT"):
        return read_alert(reader)
    if not reader.take("QUERY"):
        reader.refuse("expected what to create", hint=_CREATE)
    return _query(reader, or_replace)


def _named(reader: StatementReader, what: str, hint: str) -> tuple[bool, str, Place]:
    """[IF NOT EXISTS] name."""
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    name, place = reader.name(f"the name of the {what}", hint)
    return if_not_exists, name, place


def _stream(reader: StatementReader) -> CreateStream:
    if_not_exists, name, place = _named(reader, "stream", _STREAM)
    stream = read_stream(reader, place, _STREAM)
    reader.finish(_STREAM)
    return CreateStream(name, stream, if_not_exists, place)


def _sensor_table(reader: StatementReader) -> CreateSensorTable:
    if_not_exists, name, place = _named(reader, "sensor table", _SENSORS)
    columns = ColumnList()
    streams: list[tuple[ColumnDef, int, StreamDef]] = []
    reader.expect("(", "( and the columns", _SENSORS)
    while True:
        column = _stream_column(reader)
        if column is None:
            columns.add(read_column(reader, _SENSORS, in_stream=True))
        else:
            _require_first(column[0], streams)
            columns.require_new(column[0])
            streams.append((column[0], len(columns.definitions), column[1]))
        if not reader.take(","):
            break
    reader.expect(")", ", or ) after the column", _SENSORS)
    reader.finish(_SENSORS)
    if not streams:
        raise SqlSyntaxError(
            f"the sensor table {name} has no stream column",
            place=place,
            hint="add reading STREAM(v DOUBLE, …) FROM http, or write CREATE TABLE without SENSOR",
        )
    own, number, stream = streams[0]
    static = tuple(columns.definitions)
    return CreateSensorTable(name, static, own.name, number, stream, if_not_exists, place)


def _stream_column(reader: StatementReader) -> tuple[ColumnDef, StreamDef] | None:
    """name STREAM(…) FROM type [WITH (…)], if that comes next."""
    following = reader.rest[:2]
    if len(following) < 2 or following[1].text.upper() != "STREAM":
        return None
    name, place = reader.name("the name of a column", _SENSORS)
    reader.take("STREAM")
    stream = read_stream(reader, place, _SENSORS)
    return ColumnDef(name, stream.kind, place), stream


def _require_first(column: ColumnDef, before: list[tuple[ColumnDef, int, StreamDef]]) -> None:
    if before:
        raise SqlSyntaxError(
            "a sensor table can have only one stream column",
            place=column.place,
            detail=f"{before[0][0].name} is already one",
            hint="declare several fields in one STREAM(…), or several tables",
        )


def _table(reader: StatementReader) -> CreateTable:
    if_not_exists, name, place = _named(reader, "table", _TABLE)
    columns = ColumnList()
    reader.expect("(", "( and the columns", _TABLE)
    while True:
        columns.add(read_column(reader, _TABLE))
        if not reader.take(","):
            break
    reader.expect(")", ", or ) after the column", _TABLE)
    reader.finish(_TABLE)
    return CreateTable(name, tuple(columns.definitions), if_not_exists, place)


def _query(reader: StatementReader, or_replace: bool) -> CreateQuery:
    if_not_exists, name, place = _named(reader, "query", _QUERY)
    _require_one_way(if_not_exists, or_replace, place, _QUERY)
    options = read_placed_options(reader, "WITH", _LIMITS) if reader.take("WITH") else {}
    query, text_place = _as_query(reader, _QUERY)
    return CreateQuery(name, query, text_place, if_not_exists, place, options, or_replace)


def _view(reader: StatementReader, or_replace: bool) -> CreateView:
    if_not_exists, name, place = _named(reader, "view", _VIEW)
    _require_one_way(if_not_exists, or_replace, place, _VIEW)
    query, text_place = _as_query(reader, _VIEW)
    if query.from_start:
        raise SqlSyntaxError(
            "FROM START is not allowed in a view",
            place=place,
            hint="write FROM START at the end of the query that reads it",
        )
    return CreateView(name, query, text_place, or_replace, if_not_exists, place)


def _require_one_way(if_not_exists: bool, or_replace: bool, place: Place, hint: str) -> None:
    if if_not_exists and or_replace:
        raise SqlSyntaxError(
            "OR REPLACE and IF NOT EXISTS do not go together", place=place, hint=hint
        )


def _require_no_parameters(reader: StatementReader) -> None:
    """Refuse parameters in a text that is kept as written."""
    if reader.parameters.values:
        reader.refuse(
            "CREATE QUERY and CREATE VIEW cannot have parameters",
            hint="write the values in its text",
        )


def _as_query(reader: StatementReader, hint: str) -> tuple[Statement, Place]:
    """AS SELECT …: the query, and where its text is."""
    reader.expect("AS", "AS and a query", hint)
    tokens = reader.rest
    if not tokens or tokens[0].text.upper() == "EXPLAIN":
        reader.refuse("expected a query", hint=hint)
    _require_no_parameters(reader)
    place = Place(reader.sql, tokens[0].start, tokens[-1].end + 1)
    text = reader.sql[place.start : place.end]
    with placed_within(place):
        return read_query_tokens(text, tokenize(text)), place
