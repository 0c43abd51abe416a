"""ALTER STREAM, ALTER SENSOR TABLE, and renaming."""

from __future__ import annotations

from nilometer.database.home import Home
from nilometer.database.running import RunningQueries
from nilometer.database.views import views_reading
from nilometer.errors import InputError, NilometerError, SqlError
from nilometer.model.secrets import note_plain, plain_secrets
from nilometer.sensors.alter import altered
from nilometer.sensors.catalog.altered_catalog import readers_of
from nilometer.sensors.catalog.outcome import Outcome, placed
from nilometer.sensors.catalog.run_create import check_type
from nilometer.sensors.catalog.stored_names import NOUNS
from nilometer.sensors.declaration import Declaration
from nilometer.sql.ddl.nodes import AlterStream, ObjectKind, Rename
from nilometer.sql.ddl.parts import DropColumn, RenameColumn, SetOptions
from nilometer.sql.statements import read_query


def alter_stream(statement: AlterStream, home: Home, queries: RunningQueries) -> Outcome:
    """Alter a stream or sensor table; its readers keep running."""
    kind, change = statement.kind, statement.change
    with placed(statement.place):
        name = home.catalog.require(statement.name, kind).name
        if isinstance(change, SetOptions) and (unit := change.options.get("unit")) is not None:
            home.units.find(unit.value.strip())
        if isinstance(change, DropColumn | RenameColumn):
            after = altered(home.catalog.require_declaration(name), change, 0)
            _refuse_if_needed(change.name.name, after, home, queries)

        def changed(declared: Declaration, number: int) -> Declaration:
            after = altered(declared, change, number)
            check_type(after)
            home.require_durability(after)
            return after

        before, after = home.catalog.alter(kind, name, changed)
        home.change_stream(name, before)
    noted = note_plain(plain_secrets(after.options)) if isinstance(change, SetOptions) else ""
    return Outcome(f"{NOUNS[kind]} {name} altered{noted}")


def rename(statement: Rename, home: Home, queries: RunningQueries) -> Outcome:
    """Rename a stream, table, view, query or alert."""
    kind, to = statement.kind, statement.to
    with placed(statement.place):
        name = home.catalog.require(statement.name, kind).name
        _refuse_if_read(name, home, queries)
        with placed(statement.to_place):
            if kind is ObjectKind.QUERY:
                queries.rename(name, to)
            elif kind in (ObjectKind.TABLE, ObjectKind.VIEW):
                home.catalog.rename(kind, name, to)
            elif kind is ObjectKind.ALERT:
                home.alerts.rename(name, to)
                home.deliveries.query_renamed(to)
            else:
                before = home.catalog.require_declaration(name)
                home.catalog.rename(kind, name, to)
                home.change_stream(to, before)
    return Outcome(f"{NOUNS[kind]} {name} is now {to}")


def _refuse_if_read(name: str, home: Home, queries: RunningQueries) -> None:
    """Refuse if the text of a query or view names it."""
    reading = [f"query {one}" for one in queries.reading(name)]
    reading += [f"view {one}" for one in views_reading(name, home)]
    if reading:
        raise InputError(
            f"{name} is read under this name by {', '.join(reading)}",
            hint="drop them first, and recreate them with the new name",
        )


def _refuse_if_needed(column: str, after: Declaration, home: Home, queries: RunningQueries) -> None:
    """Refuse to drop a column that queries or views read."""
    named, views = home.catalog.queries(), home.catalog.views()
    texts = {one.name: one.text for one in named} | {one.name: one.text for one in views}
    reading = readers_of(after.name, texts)
    needing = [
        f"query {one.name}"
        for one in named
        if one.name in reading and queries.would_change(one, after)
    ]
    needing += [
        f"view {one.name}"
        for one in views
        if one.name in reading and _would_fail(one.text, after, queries)
    ]
    needing += [f"alert {one}" for one in home.alerts.needing(after.name, column)]
    if needing:
        raise InputError(
            f"column {column} of {after.name} is read by {', '.join(needing)}",
            hint="drop them first, or let them read other columns: CREATE OR REPLACE",
        )


def _would_fail(text: str, after: Declaration, queries: RunningQueries) -> bool:
    try:
        queries.check_with(read_query(text), None)
    except NilometerError:
        return False  # it already fails without the change
    try:
        queries.check_with(read_query(text), after)
    except SqlError:
        return True
    return False
