"""CREATE VIEW, and which views read a name."""

from __future__ import annotations

from nilometer.database.home import Home
from nilometer.database.running import RunningQueries
from nilometer.errors import InputError
from nilometer.sensors.catalog.outcome import Action, Change, Outcome, placed
from nilometer.sql.ddl.nodes import CreateView, ObjectKind
from nilometer.sql.parse.places import placed_within
from nilometer.sql.parse.query_text import names_read
from nilometer.sql.statements import read_query


def create_view(statement: CreateView, home: Home, queries: RunningQueries) -> Outcome:
    """Store the text of a query that can run; queries that read the view stay as they are."""
    name, catalog = statement.name, home.catalog
    with placed(statement.place):
        known = catalog.find(name)
        is_there = known is not None and known.kind is ObjectKind.VIEW
        if is_there and statement.if_not_exists:
            return Outcome(f"view {name} already exists")
        if is_there:
            _require_no_query(name, home, queries)
        _refuse_circle(statement, home)
        with placed_within(statement.text_place):
            queries.check(name, statement.query)
        catalog.create_view(name, statement.query.sql, or_replace=statement.or_replace)
    verb = "replaced" if is_there else "created"
    return Outcome(f"{verb} view {name}", change=Change(ObjectKind.VIEW, name, Action.CREATED))


def views_reading(name: str, home: Home) -> list[str]:
    """The views whose texts name something."""
    views = home.catalog.views()
    return [one.name for one in views if name.lower() in names_read(read_query(one.text))]


def _require_no_query(name: str, home: Home, queries: RunningQueries) -> None:
    """Refuse to replace a view that a named query reads: its state would no longer match."""
    todo, seen = [name], {name.lower()}
    while todo:
        one = todo.pop()
        for query in queries.reading(one):
            through = "" if one == name else f" through {one}"
            raise InputError(
                f"query {query} reads {name}{through}", hint=f"first DROP QUERY {query}"
            )
        todo += [view for view in views_reading(one, home) if view.lower() not in seen]
        seen.update(view.lower() for view in todo)


def _refuse_circle(statement: CreateView, home: Home) -> None:
    """Refuse a view that would read itself, directly or through others."""
    texts = {one.name.lower(): one.text for one in home.catalog.views()}
    todo, seen = sorted(names_read(statement.query)), set[str]()
    while todo:
        one = todo.pop()
        if one == statement.name.lower():
            raise InputError(
                f"the view {statement.name} would read itself", hint="choose another name"
            )
        if one in texts and one not in seen:
            seen.add(one)
            todo += names_read(read_query(texts[one]))
