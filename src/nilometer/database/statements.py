"""Runs the statements of a database on its catalog, sensor manager and running queries."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from nilometer.database.alert_statements import create_alert, drop_alert
from nilometer.database.alter import alter_stream, rename
from nilometer.database.bucket_options import read_requested
from nilometer.database.home import Home
from nilometer.database.limits import is_temporary, read_limits
from nilometer.database.new_queries import NewQuery
from nilometer.database.replace import replace_query
from nilometer.database.running import RunningQueries
from nilometer.database.show import show_dead_letters, show_queries, show_readers, show_sensors
from nilometer.database.show_streams import show_streams
from nilometer.database.views import create_view, views_reading
from nilometer.errors import InputError
from nilometer.sensors.catalog.execute import execute
from nilometer.sensors.catalog.outcome import Action, Change, Outcome, placed
from nilometer.sql.ddl.nodes import (
    AlterAlert,
    AlterQuery,
    AlterStream,
    CreateAlert,
    CreateDelivery,
    CreateQuery,
    CreateSensorTable,
    CreateStream,
    CreateView,
    DatabaseStatement,
    Describe,
    Drop,
    ExplainQuery,
    ObjectKind,
    Rename,
    Show,
    ShowKind,
    StartDelivery,
    StartQuery,
    StopDelivery,
    StopQuery,
)
from nilometer.sql.parse.places import placed_within

_STREAMS: Final = (ObjectKind.STREAM, ObjectKind.SENSOR_TABLE)


def run_statement(
    statement: DatabaseStatement, home: Home, queries: RunningQueries, owner: str | None = None
) -> Outcome:
    """Run a statement, wholly or not at all; `owner` owns what it creates."""
    match statement:
        case CreateQuery():
            if statement.or_replace and home.catalog.query(statement.name) is not None:
                return replace_query(statement, home, queries, owner)
            return _create_query(statement, queries, owner)
        case StartQuery():
            with placed(statement.place):
                started = queries.start(statement.name)
            return Outcome(
                f"query {statement.name} {'started' if started else 'is already running'}"
            )
        case StopQuery():
            with placed(statement.place):
                stopped = queries.stop(statement.name)
            return Outcome(f"query {statement.name} {'stopped' if stopped else 'was not running'}")
        case AlterQuery():
            with placed(statement.place):
                queries.alter(
                    statement.name,
                    lambda limits: read_limits(statement.options, limits),
                    read_requested(statement.options),
                )
            return Outcome(f"query {statement.name} altered")
        case CreateView():
            return create_view(statement, home, queries)
        case CreateStream() | CreateSensorTable():
            _require_unit(statement, home)
            return _notify_manager(execute(home.catalog, statement), home)
        case CreateDelivery():
            return _create_delivery(statement, home)
        case CreateAlert():
            return create_alert(statement, home)
        case AlterAlert():
            return home.alerts.alter(statement)
        case Drop(kind=ObjectKind.ALERT):
            return drop_alert(statement, home)
        case StartDelivery() | StopDelivery() | Drop(kind=ObjectKind.DELIVERY):
            return _change_delivery(statement, home)
        case Drop(kind=ObjectKind.QUERY):
            return _drop_query(statement, home, queries)
        case AlterStream():
            return alter_stream(statement, home, queries)
        case Rename():
            return rename(statement, home, queries)
        case Drop():
            with placed(statement.place):
                _refuse_if_read(statement.name, statement.kind, home, queries)
            return _dropped(statement, home)
        case ExplainQuery():
            with placed(statement.place):
                plan = queries.explain(statement.name)
            return Outcome(f"plan of query {statement.name}", pa.table({"plan": plan.splitlines()}))
        case Show(what=ShowKind.QUERIES):
            return show_queries(queries)
        case Show(what=ShowKind.STORAGE):
            return home.storage.show()
        case Show(what=ShowKind.DELIVERIES):
            return home.deliveries.show()
        case Show(what=ShowKind.ALERTS):
            return home.alerts.show()
        case Describe() if _is_a(ObjectKind.DELIVERY, statement.name, home):
            return home.deliveries.describe(statement.name)
        case Describe() if _is_a(ObjectKind.ALERT, statement.name, home):
            return home.alerts.describe(statement.name)
        case Show(what=ShowKind.STREAMS):
            return show_streams(statement, home)
        case Show(what=ShowKind.SENSORS):
            return show_sensors(statement, home)
        case Show(what=ShowKind.READERS):
            return show_readers(statement, home)
        case Show(what=ShowKind.DEAD_LETTERS):
            return show_dead_letters(statement, home)
        case _:
            return _notify_manager(execute(home.catalog, statement), home)


def _notify_manager(outcome: Outcome, home: Home) -> Outcome:
    """Notify the manager of what has changed."""
    match outcome.change:
        case Change(kind, name, action) if kind in _STREAMS:
            if action is Action.CREATED:
                declared = home.catalog.require_declaration(name)
                try:
                    home.add_stream(declared)
                except BaseException:
                    home.catalog.drop(kind, name)
                    raise
            elif action is Action.ROWS_CHANGED:
                home.manager.changed(name)
        case _:
            pass
    return outcome


def _dropped(statement: Drop, home: Home) -> Outcome:
    """Drop something, and delete what it has stored."""
    files = home.files_of(statement.name)
    outcome = execute(home.catalog, statement)
    if outcome.change is not None and outcome.change.kind in _STREAMS:
        home.remove_stream(outcome.change.name, files)
    return outcome


def _require_unit(statement: CreateStream | CreateSensorTable, home: Home) -> None:
    """Refuse a pre-processing unit that is not registered."""
    if (unit := statement.stream.options.get("unit")) is not None:
        with placed(statement.place):
            home.units.find(unit.strip())


def _create_delivery(statement: CreateDelivery, home: Home) -> Outcome:
    with placed(statement.query_place):
        query = home.catalog.query(statement.query)
        if query is not None and is_temporary(query):
            raise InputError(
                f"query {query.name} is temporary: its results are not kept",
                hint="store it under a name: CREATE QUERY q AS …",
            )
    return home.deliveries.create(statement)


def _change_delivery(statement: StartDelivery | StopDelivery | Drop, home: Home) -> Outcome:
    name, deliveries = statement.name, home.deliveries
    with placed(statement.place):
        match statement:
            case StartDelivery():
                did = "started" if deliveries.start(name) else "is already running"
            case StopDelivery():
                did = "stopped" if deliveries.stop(name) else "was not running"
            case Drop():
                if statement.if_exists and home.catalog.find(name) is None:
                    return Outcome(f"there is no delivery {name}")
                home.catalog.require(name, ObjectKind.DELIVERY)
                deliveries.drop(name)
                change = Change(ObjectKind.DELIVERY, name, Action.DROPPED)
                return Outcome(f"delivery {name} dropped", change=change)
    return Outcome(f"delivery {name} {did}")


def _is_a(kind: ObjectKind, name: str, home: Home) -> bool:
    entry = home.catalog.find(name)
    return entry is not None and entry.kind is kind


def _create_query(statement: CreateQuery, queries: RunningQueries, owner: str | None) -> Outcome:
    with placed(statement.place), placed_within(statement.text_place):
        made = queries.create(
            NewQuery(
                statement.name,
                statement.query,
                if_not_exists=statement.if_not_exists,
                limits=lambda usual: read_limits(statement.options, usual),
                requested=read_requested(statement.options),
                owner=owner,
            )
        )
    if not made:
        return Outcome(f"query {statement.name} already exists")
    change = Change(ObjectKind.QUERY, statement.name, Action.CREATED)
    return Outcome(f"query {statement.name} created and started", change=change)


def _drop_query(statement: Drop, home: Home, queries: RunningQueries) -> Outcome:
    with placed(statement.place):
        query = home.catalog.query(statement.name)
        if query is None:
            if statement.if_exists:
                return Outcome(f"there is no query {statement.name}")
            home.catalog.require(statement.name, ObjectKind.QUERY)
            raise AssertionError("a query that is required is there")
        drop_query(query.name, home, queries)
    return Outcome(
        f"query {query.name} dropped", change=Change(ObjectKind.QUERY, query.name, Action.DROPPED)
    )


def drop_query(name: str, home: Home, queries: RunningQueries) -> None:
    """Drop a query that no other one reads."""
    _refuse_if_read(name, ObjectKind.QUERY, home, queries)
    queries.drop(name)


def _refuse_if_read(name: str, kind: ObjectKind, home: Home, queries: RunningQueries) -> None:
    """Refuse to drop what queries or views read."""
    entry = home.catalog.find(name)
    if entry is None or entry.kind is not kind:
        return
    for query in queries.reading(entry.name):
        raise InputError(f"query {query} reads {entry.name}", hint=f"first DROP QUERY {query}")
    for view in views_reading(entry.name, home):
        raise InputError(f"view {view} reads {entry.name}", hint=f"first DROP VIEW {view}")
    for delivery in home.deliveries.of_query(entry.name):
        raise InputError(
            f"delivery {delivery} delivers the results of {entry.name}",
            hint=f"first DROP DELIVERY {delivery}",
        )
    for alert in home.alerts.on(entry.name):
        raise InputError(f"alert {alert} watches {entry.name}", hint=f"first DROP ALERT {alert}")
