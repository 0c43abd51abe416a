"""SensorCatalog: what the database knows, kept in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, Engine

from nilometer.model.dashboard import Dashboard
from nilometer.sensors.catalog import (
    stored_alerts,
    stored_dashboards,
    stored_deliveries,
    stored_queries,
    stored_sensors,
    stored_streams,
    stored_tables,
    stored_tokens,
    stored_views,
)
from nilometer.sensors.catalog.altered_catalog import AlteredCatalog
from nilometer.sensors.catalog.stored_alerts import StoredAlert
from nilometer.sensors.catalog.stored_deliveries import KeptState, StoredDelivery
from nilometer.sensors.catalog.stored_names import NamedEntry, all_names, find_name, require_name
from nilometer.sensors.catalog.stored_queries import NamedQuery, QueryState
from nilometer.sensors.catalog.stored_sensors import SensorChoice, SensorRow, SensorUpdate
from nilometer.sensors.catalog.stored_tokens import StoredToken
from nilometer.sensors.catalog.stored_views import StoredView
from nilometer.sensors.catalog.transactions import count_changes
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sql.ddl.nodes import ObjectKind


class SensorCatalog(AlteredCatalog):
    """Streams, sensor tables, tables and queries; names match in any case.

    Every method is one transaction, so that any number of threads and processes may share a
    catalog. Changes are serialized: a function passed to a method runs while all others wait, and
    must not use the catalog.
    """

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock)
        self._queries: tuple[int, tuple[NamedQuery, ...]] | None = None
        """All queries after this many changes, cached: there may be a thousand."""

    # Streams and sensor tables

    def create(self, declaration: Declaration, *, if_not_exists: bool = False) -> bool:
        """Add a stream or a sensor table; False if it already exists and that is allowed."""
        kind = ObjectKind.SENSOR_TABLE if declaration.is_sensor_table else ObjectKind.STREAM
        with self._creating(declaration.name, kind, if_not_exists) as (connection, owner):
            if owner is None:
                return False
            stored_streams.store_declaration(connection, owner, declaration)
            return True

    def declaration(self, name: str) -> Declaration | None:
        """The stream or sensor table with this name, or None."""
        with self._reading() as connection:
            return stored_streams.read_declaration(connection, name)

    def require_declaration(self, name: str) -> Declaration:
        """The stream or sensor table with this name; raises if there is none."""
        with self._reading() as connection:
            entry = require_name(connection, name, ObjectKind.STREAM, ObjectKind.SENSOR_TABLE)
            return _declared(connection, entry)

    def declarations(self) -> list[Declaration]:
        """All streams and sensor tables, by name."""
        with self._reading() as connection:
            return stored_streams.read_declarations(connection)

    def insert_sensors(self, name: str, rows: Sequence[SensorRow]) -> list[Sensor]:
        """Add sensors, and return them in the same order; missing values are NULL."""
        with self._changing_sensors(name) as (connection, owner, declared):
            assert declared.static is not None
            now = self._clock()
            return stored_sensors.insert_sensors(connection, owner, declared.static, rows, now)

    def update_sensors(self, name: str, change: SensorUpdate) -> list[Sensor]:
        """Replace rows as the function says; return those that differ, with a new version."""
        with self._changing_sensors(name) as (connection, owner, declared):
            now = self._clock()
            return stored_sensors.update_sensors(connection, owner, declared, change, now)

    def delete_sensors(self, name: str, choose: SensorChoice) -> list[Sensor]:
        """Delete the sensors whose versions the function chooses, and return them."""
        with self._changing_sensors(name) as (connection, owner, declared):
            now = self._clock()
            return stored_sensors.delete_sensors(connection, owner, declared, choose, now)

    def sensors(self, name: str) -> list[Sensor]:
        """The sensors of a sensor table, in the order in which they were inserted."""
        with self._reading() as connection:
            return [one.shown for one in _stored_sensors(connection, name)[1]]

    def count_sensors(self) -> dict[str, int]:
        """The number of sensors of each sensor table that has any."""
        with self._reading() as connection:
            return stored_sensors.count_sensors(connection)

    def sensor_rows(self, name: str) -> pa.Table:
        """The rows of a sensor table: its columns, the stream column as text, and SENSOR."""
        with self._reading() as connection:
            return stored_sensors.sensor_table(*_stored_sensors(connection, name))

    # Tables

    def create_table(self, name: str, schema: pa.Schema, *, if_not_exists: bool = False) -> bool:
        """Add an empty table; False if it already exists and that is allowed."""
        with self._creating(name, ObjectKind.TABLE, if_not_exists) as (connection, owner):
            if owner is None:
                return False
            stored_tables.store_table(connection, owner, schema)
            return True

    def table(self, name: str) -> pa.Table | None:
        """The rows of the table with this name."""
        with self._reading() as connection:
            entry = find_name(connection, name)
            if entry is None or entry.kind is not ObjectKind.TABLE:
                return None
            return stored_tables.read_rows(connection, entry.id)

    def tables(self) -> dict[str, pa.Schema]:
        """The columns of all tables, by name."""
        with self._reading() as connection:
            entries = [one for one in all_names(connection) if one.kind is ObjectKind.TABLE]
            return {one.name: stored_tables.read_columns(connection, one.id) for one in entries}

    def count_rows(self, name: str) -> int:
        """How many rows a table has."""
        with self._reading() as connection:
            owner = require_name(connection, name, ObjectKind.TABLE).id
            return stored_tables.count_rows(connection, owner)

    def insert_rows(self, name: str, rows: pa.Table) -> None:
        """Add rows to a table, matching columns by name."""
        with self._changing_name(name, ObjectKind.TABLE) as (connection, entry):
            stored_tables.add_rows(connection, entry.id, rows)

    def change_rows(self, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
        """Replace all rows of a table by the function's result for them."""
        with self._changing_name(name, ObjectKind.TABLE) as (connection, entry):
            rows = change(stored_tables.read_rows(connection, entry.id))
            stored_tables.replace_rows(connection, entry.id, rows)

    # Queries

    def create_query(
        self,
        name: str,
        text: str,
        kind: str,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a query that should be running."""
        with self._creating(name, ObjectKind.QUERY, if_not_exists=False) as (connection, owner):
            assert owner is not None
            state, now = QueryState.RUNNING, self._clock()
            query = NamedQuery(name, text, kind, state, now, None, options or {})
            stored_queries.store_query(connection, owner, query)

    def query(self, name: str) -> NamedQuery | None:
        """The query with this name, or None."""
        with self._reading() as connection:
            return stored_queries.read_query(connection, name)

    def queries(self) -> list[NamedQuery]:
        """All queries, by name."""
        with self._reading() as connection:
            change = count_changes(connection)
            cached = self._queries
            if cached is None or cached[0] != change:
                cached = change, tuple(stored_queries.read_queries(connection))
                self._queries = cached
        return list(cached[1])

    def set_query_state(
        self, name: str, state: QueryState, *, error: str | None = None, failures: int = 0
    ) -> None:
        """Set the state of a query, its error if it failed, and its failures in a row."""
        with self._changing_name(name, ObjectKind.QUERY) as (connection, entry):
            stored_queries.set_state(connection, entry.id, state, error, failures)

    def set_query_options(self, name: str, options: Mapping[str, Any]) -> None:
        """Replace the other options of a query."""
        with self._changing_name(name, ObjectKind.QUERY) as (connection, entry):
            stored_queries.set_options(connection, entry.id, options)

    # Views

    def create_view(self, name: str, text: str, *, or_replace: bool = False) -> None:
        """Add a view, or replace its text."""
        with self._creating(name, ObjectKind.VIEW, or_replace) as (connection, owner):
            if owner is not None:
                stored_views.store_view(connection, owner, text, self._clock())
            else:
                entry = require_name(connection, name, ObjectKind.VIEW)
                stored_views.replace_view(connection, entry.id, text)

    def views(self) -> list[StoredView]:
        """All views, by name."""
        with self._reading() as connection:
            return stored_views.read_views(connection)

    # Deliveries

    def create_delivery(
        self,
        name: str,
        query: str,
        unit: str,
        options: Mapping[str, str],
        *,
        if_not_exists: bool = False,
    ) -> bool:
        """Add a delivery; False if it already exists and that is allowed."""
        with self._creating(name, ObjectKind.DELIVERY, if_not_exists) as (connection, owner):
            if owner is None:
                return False
            source = require_name(connection, query, ObjectKind.QUERY, ObjectKind.ALERT).name
            state, now = KeptState.RUNNING, self._clock()
            delivery = StoredDelivery(name, source, unit, options, state, now, None)
            stored_deliveries.store_delivery(connection, owner, delivery)
            return True

    def delivery(self, name: str) -> StoredDelivery | None:
        """The delivery with this name, or None."""
        with self._reading() as connection:
            return stored_deliveries.read_delivery(connection, name)

    def deliveries(self) -> list[StoredDelivery]:
        """All deliveries, by name."""
        with self._reading() as connection:
            return stored_deliveries.read_deliveries(connection)

    def set_delivery_state(self, name: str, state: KeptState, *, error: str | None = None) -> None:
        """Set whether a delivery runs, is stopped, or has failed and why."""
        with self._changing_name(name, ObjectKind.DELIVERY) as (connection, entry):
            stored_deliveries.set_state(connection, entry.id, state, error)

    # Alerts

    def create_alert(
        self,
        name: str,
        source: str,
        definition: Mapping[str, Any],
        *,
        if_not_exists: bool = False,
    ) -> bool:
        """Add an alert; False if it already exists and that is allowed."""
        with self._creating(name, ObjectKind.ALERT, if_not_exists) as (connection, owner):
            if owner is None:
                return False
            kinds = (ObjectKind.STREAM, ObjectKind.SENSOR_TABLE, ObjectKind.QUERY)
            source = require_name(connection, source, *kinds).name
            alert = StoredAlert(name, source, definition, self._clock())
            stored_alerts.store_alert(connection, owner, alert)
            return True

    def alert(self, name: str) -> StoredAlert | None:
        """The alert with this name, or None."""
        with self._reading() as connection:
            return stored_alerts.read_alert(connection, name)

    def alerts(self) -> list[StoredAlert]:
        """All alerts, by name."""
        with self._reading() as connection:
            return stored_alerts.read_alerts(connection)

    def change_alert(self, alert: StoredAlert) -> None:
        """Replace the mutable parts of an alert: its limits, its silence, its delivery."""
        with self._changing_name(alert.name, ObjectKind.ALERT) as (connection, entry):
            stored_alerts.change_alert(connection, entry.id, alert)

    # Tokens of the server; they do not count as changes that statements can see.

    def create_token(self, token: StoredToken) -> None:
        """Store a token; its name must be new."""
        with self._changing(by=0) as (connection, _):
            stored_tokens.store_token(connection, token)

    def create_first_token(self, token: StoredToken) -> bool:
        """Store a token if there is none at all; False otherwise."""
        with self._changing(by=0) as (connection, _):
            if stored_tokens.read_tokens(connection):
                return False
            stored_tokens.store_token(connection, token)
            return True

    def tokens(self) -> list[StoredToken]:
        """All tokens, by name."""
        with self._reading() as connection:
            return stored_tokens.read_tokens(connection)

    def revoke_token(self, name: str) -> bool:
        """Delete a token; False if there is none with this name."""
        with self._changing(by=0) as (connection, _):
            return stored_tokens.remove_token(connection, name)

    # Dashboards of the console; like tokens, they do not count as changes.

    def put_dashboard(self, dashboard: Dashboard, *, expected: int | None = None) -> Dashboard:
        """Store a dashboard, replacing one of the same name if it has the expected version."""
        with self._changing(by=0) as (connection, _):
            now = self._clock()
            return stored_dashboards.store_dashboard(connection, dashboard, now, expected)

    def dashboard(self, name: str) -> Dashboard:
        """The dashboard with this name; raises if there is none."""
        with self._reading() as connection:
            return stored_dashboards.require_dashboard(connection, name)

    def dashboards(self) -> list[Dashboard]:
        """All dashboards, by name."""
        with self._reading() as connection:
            return stored_dashboards.read_dashboards(connection)

    def remove_dashboard(self, name: str) -> None:
        """Delete a dashboard."""
        with self._changing(by=0) as (connection, _):
            stored_dashboards.remove_dashboard(connection, name)

    @contextmanager
    def _changing_sensors(self, name: str) -> Iterator[tuple[Connection, int, Declaration]]:
        with self._changing_name(name, ObjectKind.SENSOR_TABLE) as (connection, entry):
            yield connection, entry.id, _declared(connection, entry)


def _declared(connection: Connection, entry: NamedEntry) -> Declaration:
    declared = stored_streams.read_declaration(connection, entry.name)
    assert declared is not None
    return declared


def _stored_sensors(
    connection: Connection, name: str
) -> tuple[Declaration, list[stored_sensors.StoredSensor]]:
    entry = require_name(connection, name, ObjectKind.SENSOR_TABLE)
    declared = _declared(connection, entry)
    assert declared.static is not None
    return declared, stored_sensors.read_sensors(connection, entry.id, declared.static)
