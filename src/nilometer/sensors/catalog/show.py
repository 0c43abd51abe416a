"""SHOW and DESCRIBE, as far as the catalog can answer them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from nilometer.errors import InternalError
from nilometer.kernels.read_times import declared_type
from nilometer.model.names import count
from nilometer.model.secrets import shown_options
from nilometer.model.time import FOREVER, format_duration, format_instant
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.outcome import Outcome, placed
from nilometer.sensors.catalog.stored_queries import NamedQuery
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.find_types import known_types
from nilometer.sql.ddl.nodes import Describe, ObjectKind, Show, ShowKind


def show(catalog: SensorCatalog, statement: Show) -> Outcome:
    """SHOW STREAMS | TABLES | VIEWS | STREAM TYPES; the manager answers the others."""
    match statement.what:
        case ShowKind.STREAMS:
            return _show_streams(catalog)
        case ShowKind.TABLES:
            return _show_tables(catalog)
        case ShowKind.VIEWS:
            return _show_views(catalog)
        case ShowKind.STREAM_TYPES:
            return _show_types()
        case other:
            raise InternalError(f"the catalog cannot show {other}")


def describe(catalog: SensorCatalog, statement: Describe) -> Outcome:
    """The columns of a stream or table, the text of a view, the text and state of a query."""
    with placed(statement.place):
        entry = catalog.require(statement.name, *ObjectKind)
        if entry.kind is ObjectKind.TABLE:
            return _describe_table(entry.name, catalog.tables()[entry.name], catalog)
        if entry.kind is ObjectKind.VIEW:
            return _describe_view(entry.name, catalog)
        if (query := catalog.query(entry.name)) is not None:
            return _describe_query(query)
        declared = catalog.require_declaration(entry.name)
    if declared.is_sensor_table:
        return _describe_sensors(declared, catalog.count_sensors().get(declared.name, 0))
    return Outcome(_stream_sentence(declared), _columns(_reading_rows(declared, "")))


def _show_streams(catalog: SensorCatalog) -> Outcome:
    declared = catalog.declarations()
    rows = _text_table(
        name=[one.name for one in declared],
        kind=["sensor table" if one.is_sensor_table else "stream" for one in declared],
        stream_type=[one.stream_type for one in declared],
        time=[_time(one) for one in declared],
        lateness=[format_duration(one.lateness) for one in declared],
        idle=[one.shown_idle for one in declared],
        every=[None if one.every is None else format_duration(one.every) for one in declared],
        history=[_history(one.history) for one in declared],
    )
    return Outcome(count(len(declared), "stream"), rows)


def _show_tables(catalog: SensorCatalog) -> Outcome:
    entries = [
        one for one in catalog.names() if one.kind in (ObjectKind.TABLE, ObjectKind.SENSOR_TABLE)
    ]
    sensors = catalog.count_sensors()
    sizes = [
        catalog.count_rows(one.name) if one.kind is ObjectKind.TABLE else sensors.get(one.name, 0)
        for one in entries
    ]
    rows = _text_table(name=[one.name for one in entries], kind=[one.noun for one in entries])
    return Outcome(
        count(len(entries), "table"), rows.append_column("rows", pa.array(sizes, pa.int64()))
    )


def _show_views(catalog: SensorCatalog) -> Outcome:
    views = catalog.views()
    rows = _text_table(name=[one.name for one in views], text=[one.text for one in views])
    return Outcome(count(len(views), "view"), rows)


def _describe_view(name: str, catalog: SensorCatalog) -> Outcome:
    (view,) = (one for one in catalog.views() if one.name == name)
    rows = _text_table(
        property=["text", "created"], value=[view.text, format_instant(view.created)]
    )
    return Outcome(f"view {name}", rows)


def _show_types() -> Outcome:
    known = known_types()
    rows = _text_table(name=list(known), package=[known.package(name) for name in known])
    return Outcome(count(len(known), "stream type"), rows)


def _describe_table(name: str, schema: pa.Schema, catalog: SensorCatalog) -> Outcome:
    rows = _columns([(one.name, declared_type(one), "") for one in schema])
    return Outcome(f"table {name} with {count(catalog.count_rows(name), 'row')}", rows)


def _describe_query(query: NamedQuery) -> Outcome:
    properties = {
        "text": query.text,
        "emits": query.kind,
        "state": query.state.value,
        "created": format_instant(query.created),
        "error": query.error,
    }
    properties |= {name: _option(name, value) for name, value in query.options.items()}
    rows = _text_table(property=list(properties), value=list(properties.values()))
    return Outcome(f"query {query.name}", rows)


def _option(name: str, value: object) -> str:
    return format_duration(value) if name == "history" and isinstance(value, int) else str(value)


def _describe_sensors(declared: Declaration, sensors: int) -> Outcome:
    assert declared.static is not None
    rows = [(one.name, declared_type(one), "static") for one in declared.static]
    readings = _reading_rows(declared, f"{declared.column}.")
    rows[declared.place : declared.place] = readings
    return Outcome(f"{_stream_sentence(declared)}, {count(sensors, 'sensor')}", _columns(rows))


def _reading_rows(declared: Declaration, prefix: str) -> list[tuple[str, str, str]]:
    roles = {declared.time: "time", declared.end: "end"}
    return [
        (prefix + one.name, declared_type(one), roles.get(one.name, "reading"))
        for one in declared.readings
    ]


def _time(declared: Declaration) -> str:
    time = declared.time or "arrival"
    return time if declared.end is None else f"{time} to {declared.end}"


def _stream_sentence(declared: Declaration) -> str:
    kind = "sensor table" if declared.is_sensor_table else "stream"
    options = ", ".join(
        f"{name} = {value!r}" for name, value in shown_options(declared.options).items()
    )
    with_options = f" WITH ({options})" if options else ""
    lengths = "".join(f", {one}" for one in _lengths(declared))
    return f"{kind} {declared.name} FROM {declared.stream_type}{with_options}{lengths}"


def _lengths(declared: Declaration) -> list[str]:
    """The declared times, in the syntax of CREATE."""
    clauses = []
    if declared.lateness:
        clauses.append(f"LATENESS {format_duration(declared.lateness)}")
    if declared.shown_idle is not None:
        clauses.append(f"IDLE {declared.shown_idle}")
    if declared.every is not None:
        clauses.append(f"EVERY {format_duration(declared.every)}")
    if (history := _history(declared.history)) is not None:
        clauses.append(f"HISTORY {history}")
    return clauses


def _history(history: int) -> str | None:
    if not history:
        return None
    return "forever" if history >= FOREVER else format_duration(history)


def _columns(rows: Sequence[tuple[str, str, str]]) -> pa.Table:
    names, types, roles = zip(*rows, strict=True) if rows else ((), (), ())
    return _text_table(column=names, type=types, role=roles)


def _text_table(**columns: Sequence[str | None]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
