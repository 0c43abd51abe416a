"""SHOW: the status of sensors, readers and queries, and the dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from nilometer.database.home import Home
from nilometer.database.limits import shown_limits
from nilometer.database.running import RunningQueries
from nilometer.log.dead_letters import dead_letter_log, read_dead_letters
from nilometer.log.layout import TIMESTAMP
from nilometer.log.registrations import QUERY, WHERE, Registration, registrations
from nilometer.model.names import count
from nilometer.model.secrets import shown_address
from nilometer.model.time import format_duration
from nilometer.sensors.catalog.outcome import Outcome, placed
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.manager.status import SensorStatus
from nilometer.sql.ddl.nodes import ObjectKind, Show

_LOGS: Final = (ObjectKind.STREAM, ObjectKind.SENSOR_TABLE, ObjectKind.QUERY, ObjectKind.ALERT)

_QUERIES: Final = pa.schema(
    {
        "name": pa.string(),
        "state": pa.string(),
        "emits": pa.string(),
        "created": TIMESTAMP,
        "error": pa.string(),
        "query": pa.string(),
        "limits": pa.string(),
        "rows": pa.int64(),
        "dead_letters": pa.int64(),
        "watermark": TIMESTAMP,
        "lag": pa.duration("us"),
        "rows_behind": pa.int64(),
        "stalled_by": pa.string(),
        "stalled_since": TIMESTAMP,
        "bottleneck": pa.string(),
        "buckets": pa.int64(),
        "spread": pa.string(),
        "shares_with": pa.string(),
    }
)
_SENSORS: Final = pa.schema(
    {
        "stream": pa.string(),
        "sensor": pa.string(),
        "address": pa.string(),
        "state": pa.string(),
        "readings": pa.int64(),
        "rate": pa.float64(),
        "last_reading": pa.string(),
        "last_time": TIMESTAMP,
        "silent_since": TIMESTAMP,
        "expected": pa.string(),
        "errors": pa.int64(),
        "dead_letters": pa.int64(),
        "dropped": pa.int64(),
        "behind": pa.int64(),
        "last_error": pa.string(),
    }
)
_READERS: Final = pa.schema(
    {
        "log": pa.string(),
        "reader": pa.string(),
        "sensors": pa.string(),
        "row": pa.int64(),
        "active": pa.bool_(),
        "seen": TIMESTAMP,
    }
)


def show_queries(queries: RunningQueries) -> Outcome:
    """All named queries, and whether they run."""
    queries.look()
    statuses = queries.statuses()
    rows = [
        (
            one.name,
            str(one.phase),
            one.emits,
            one.created,
            one.error,
            " ".join(one.text.split()),
            shown_limits(one.limits),
            one.result_rows,
            one.dead_letters,
            one.watermark,
            one.lag,
            one.rows_behind,
            None if one.stalled is None else one.stalled.cause,
            None if one.stalled is None else one.stalled.since,
            one.bottleneck_text,
            one.buckets,
            one.spread_text,
            one.shares_text,
        )
        for one in statuses
    ]
    message = f"{len(statuses)} {'query' if len(statuses) == 1 else 'queries'}"
    return Outcome(message, _table(_QUERIES, rows))


def show_sensors(statement: Show, home: Home) -> Outcome:
    """All sensors, and the status of those that a reader needs."""
    rows = [row for one in _chosen(statement, home) for row in _sensors_of(one, home)]
    return Outcome(count(len(rows), "sensor"), _table(_SENSORS, rows))


def _sensors_of(declared: Declaration, home: Home) -> Iterator[tuple[Any, ...]]:
    statuses = {one.number: one for one in home.manager.status(declared.name)}
    for sensor in home.sensors(declared.name):
        name = sensor.name or declared.name
        known = statuses.get(sensor.number)
        yield declared.name, name, shown_address(sensor.address), *_doing(known)


def _doing(one: SensorStatus | None) -> tuple[Any, ...]:
    if one is None:
        return ("not needed", *(None,) * 11)
    return (
        str(one.state),
        one.readings,
        round(one.rate, 1),
        one.last_value,
        one.last_time,
        one.silent_since,
        None if one.expected is None else f"every {format_duration(one.expected)}",
        one.errors,
        one.dead_letters,
        one.dropped,
        one.behind,
        one.last_error,
    )


def show_readers(statement: Show, home: Home) -> Outcome:
    """The readers of logs, and their offsets."""
    with placed(statement.place):
        of = None if statement.of is None else home.catalog.require(statement.of, *_LOGS).name
    logs = [one.name for one in home.catalog.names() if one.kind in _LOGS]
    queries = {one.reader: one.name for one in home.catalog.queries()}
    rows = [row for name in logs if of in (None, name) for row in _readers(name, home, queries)]
    return Outcome(count(len(rows), "reader"), _table(_READERS, rows))


def _readers(name: str, home: Home, queries: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """The readers of a log; `queries`: query names by reader names."""
    return [
        (
            name,
            _reader_name(one, queries),
            one.about.get(WHERE),
            one.position.row,
            one.active,
            one.seen,
        )
        for one in registrations(home.log_of(name))
    ]


def _reader_name(one: Registration, queries: Mapping[str, str]) -> str:
    """The name of a reader; for a query its current name, and the reader's number if any."""
    known = one.about.get(QUERY)
    if known is None or known not in queries:
        return one.reader
    return queries[known] + one.reader.removeprefix(known)


def show_dead_letters(statement: Show, home: Home) -> Outcome:
    """The dead letters of sensors and queries, with the reasons."""
    if statement.of is None:
        names = [one.name for one in home.catalog.names() if one.kind in _LOGS]
    else:
        with placed(statement.place):
            names = [home.catalog.require(statement.of, *_LOGS).name]
    if not names:
        return Outcome("no dead letters")
    rows = pa.concat_tables([dead_letters(name, home) for name in names])
    return Outcome(count(len(rows), "dead letter"), rows)


def dead_letters(name: str, home: Home) -> pa.Table:
    """The dead letters of one stream or query, with its name as the first column."""
    rows = read_dead_letters(home.log_of(dead_letter_log(name)))
    return rows.add_column(0, "stream", pa.array([name] * len(rows), pa.string()))


def _chosen(statement: Show, home: Home) -> list[Declaration]:
    """The streams and sensor tables that a statement selects."""
    if statement.of is None:
        return home.catalog.declarations()
    with placed(statement.place):
        return [home.catalog.require_declaration(statement.of)]


def _table(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
