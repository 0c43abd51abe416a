"""Changes to things that have a name and keep their identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, update

from nilometer.sensors.catalog import (
    stored_alerts,
    stored_dashboards,
    stored_queries,
    stored_sensors,
    stored_streams,
    stored_views,
)
from nilometer.sensors.catalog.named_catalog import NamedCatalog
from nilometer.sensors.catalog.schema import deliveries
from nilometer.sensors.catalog.stored_names import (
    drop_name,
    mark_changed,
    rename,
    require_name,
)
from nilometer.sensors.catalog.stored_queries import KNOWN, READER, REPLACES
from nilometer.sensors.declaration import Declaration
from nilometer.sql.ddl.nodes import ObjectKind
from nilometer.sql.parse.query_text import names_read
from nilometer.sql.statements import read_query

StreamChange = Callable[[Declaration, int], Declaration]
"""A stream's new declaration, given the old one and a unique number for the change."""


class AlteredCatalog(NamedCatalog):
    """Streams, sensor tables and queries that change; each change is one transaction."""

    alterations: int = 0
    """How many changes of columns were made here; counted before others see each of them."""

    def alter(
        self, kind: ObjectKind, name: str, change: StreamChange
    ) -> tuple[Declaration, Declaration]:
        """Change a stream or sensor table; return what it was, and what it is now.

        Queries that read it continue with the columns that they know.
        """
        with self._changing() as (connection, number):
            entry = require_name(connection, name, kind)
            before = stored_streams.read_declaration(connection, entry.name)
            assert before is not None
            after = change(before, number)
            stored_streams.change_declaration(connection, entry.id, after)
            if before.static is not None:
                stored_sensors.fit_sensors(connection, entry.id, before.static, after)
            if after.in_files - before.in_files:
                _keep_known(connection, entry.name, entry.key, before)
            self.alterations += 1
            mark_changed(connection, entry, number)
        return before, after

    def rename(self, kind: ObjectKind, name: str, to: str) -> str:
        """Rename something; return its old name."""
        with self._changing() as (connection, number):
            entry = require_name(connection, name, kind)
            rename(connection, entry, to, number)
            if kind is ObjectKind.QUERY:
                _keep_reader(connection, to, entry.name)
            if kind in (ObjectKind.QUERY, ObjectKind.ALERT):
                moved = update(deliveries).where(deliveries.c.query == entry.name)
                connection.execute(moved.values(query=to))
            stored_alerts.move_alerts(connection, entry.name, to)
            stored_dashboards.move_panels(connection, entry.name, to, self._clock())
        self._forget_keys()
        return entry.name

    def replace_query(self, name: str, by: str) -> None:
        """Drop a query, and give its name to another one."""
        with self._changing() as (connection, number):
            old = require_name(connection, name, ObjectKind.QUERY)
            new = require_name(connection, by, ObjectKind.QUERY)
            drop_name(connection, old)
            rename(connection, new, old.name, number)
            _keep_reader(connection, old.name, new.name)
            _set_option(connection, old.name, REPLACES, None)
        self._forget_keys()


def readers_of(name: str, texts: Mapping[str, str]) -> set[str]:
    """What reads a name, directly or through others; `texts` are by name."""
    read = {one: names_read(read_query(text)) for one, text in texts.items()}
    readers, todo = set[str](), {name.lower()}
    while todo:
        wanted = todo.pop()
        for one, names in read.items():
            if wanted in names and one not in readers:
                readers.add(one)
                todo.add(one.lower())
    return readers


def _keep_known(connection: Connection, name: str, key: str, before: Declaration) -> None:
    """Let queries see the columns that a stream had, and no others."""
    queries = stored_queries.read_queries(connection)
    texts = {one.name: one.text for one in queries}
    texts |= {one.name: one.text for one in stored_views.read_views(connection)}
    reading = readers_of(name, texts)
    for one in queries:
        columns = dict(one.options.get(KNOWN, {}))
        if one.name in reading and key not in columns:
            columns[key] = sorted(before.in_files)
            _set_option(connection, one.name, KNOWN, columns)


def _keep_reader(connection: Connection, name: str, before: str) -> None:
    """Keep the name by which logs have known a query so far."""
    query = stored_queries.read_query(connection, name)
    assert query is not None
    if READER not in query.options:
        _set_option(connection, name, READER, before)


def _set_option(connection: Connection, name: str, option: str, value: object) -> None:
    query = stored_queries.read_query(connection, name)
    entry = require_name(connection, name, ObjectKind.QUERY)
    assert query is not None
    options = {**query.options, option: value}
    stored = {one: setting for one, setting in options.items() if setting is not None}
    stored_queries.set_options(connection, entry.id, stored)
