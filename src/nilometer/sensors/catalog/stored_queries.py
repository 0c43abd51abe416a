"""Named queries: what they ask, and whether they should be running."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, update

from nilometer.sensors.catalog.schema import names, queries
from nilometer.sensors.catalog.stored_names import require_text


class QueryState(StrEnum):
    """Whether a query should be running; one that failed for good is not, and has an error."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class NamedQuery:
    """CREATE QUERY name AS text."""

    name: str
    text: str
    kind: str
    """What it emits: append, or changelog."""
    state: QueryState
    created: int
    error: str | None
    """What its last failure said."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else was said of it: its limits, and whether it is temporary."""


def store_query(connection: Connection, owner: int, query: NamedQuery) -> None:
    require_text(query.text, "a query")
    row = {
        "owner": owner,
        "text": query.text,
        "kind": query.kind,
        "state": query.state.value,
        "created": query.created,
        "error": query.error,
        "options": json.dumps(dict(query.options)),
    }
    connection.execute(insert(queries).values(row))


def read_query(connection: Connection, name: str) -> NamedQuery | None:
    wanted = _stored().where(names.c.folded == name.lower())
    found = connection.execute(wanted).one_or_none()
    return None if found is None else _query(found)


def read_queries(connection: Connection) -> list[NamedQuery]:
    """All of them, by name."""
    return [_query(row) for row in connection.execute(_stored().order_by(names.c.folded))]


def set_state(connection: Connection, owner: int, state: QueryState, error: str | None) -> None:
    stored = None if error is None else error.replace("\0", "")
    changed = update(queries).where(queries.c.owner == owner)
    connection.execute(changed.values(state=state.value, error=stored))


def set_options(connection: Connection, owner: int, options: Mapping[str, Any]) -> None:
    changed = update(queries).where(queries.c.owner == owner)
    connection.execute(changed.values(options=json.dumps(dict(options))))


def _stored() -> Select[Any]:
    wanted = select(names.c.name, queries)
    return wanted.join_from(queries, names, queries.c.owner == names.c.id)


def _query(row: Row[Any]) -> NamedQuery:
    state = QueryState(row.state)
    options = json.loads(row.options)
    return NamedQuery(row.name, row.text, row.kind, state, row.created, row.error, options)
