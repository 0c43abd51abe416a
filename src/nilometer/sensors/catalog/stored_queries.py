"""Named queries: their texts, and whether they should be running."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, Row, insert, select, update

from nilometer.sensors.catalog.schema import queries
from nilometer.sensors.catalog.stored_names import require_text, rows_of_kind

HOSTED: Final = "hosted"
"""The option that holds the id of a query in the shared engine."""
KNOWN: Final = "known columns"
"""The option with the columns that a query knows of streams that were altered since: the columns'
names in files, by the keys of the streams."""
READER: Final = "reader"
"""The option with the name by which logs know a query, if it differs from its own."""
REPLACES: Final = "replaces"
"""The option of a query that will replace another once it has caught up."""
_FAILURES: Final = "failures"


class QueryState(StrEnum):
    """Whether a query should be running; one that failed for good is stopped and has an error."""

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
    """The message of its last failure."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its other options: its limits, and whether it is temporary."""

    @property
    def reader(self) -> str:
        """The name by which logs know it, which stays when its own name changes."""
        return str(self.options.get(READER, self.name))

    @property
    def failures(self) -> int:
        """How many times in a row it has failed."""
        return int(self.options.get(_FAILURES, 0))


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
    return next((_query(row) for row in rows_of_kind(connection, queries, name)), None)


def read_queries(connection: Connection) -> list[NamedQuery]:
    """All queries, by name."""
    return [_query(row) for row in rows_of_kind(connection, queries)]


def set_state(
    connection: Connection, owner: int, state: QueryState, error: str | None, failures: int
) -> None:
    """Set the state of a query; its number of failures in a row is one of its options."""
    stored = None if error is None else error.replace("\0", "")
    of_this = queries.c.owner == owner
    options = json.loads(connection.execute(select(queries.c.options).where(of_this)).scalar_one())
    options = {name: value for name, value in options.items() if name != _FAILURES}
    if failures:
        options[_FAILURES] = failures
    values = {"state": state.value, "error": stored, "options": json.dumps(options)}
    connection.execute(update(queries).where(of_this).values(values))


def set_options(connection: Connection, owner: int, options: Mapping[str, Any]) -> None:
    changed = update(queries).where(queries.c.owner == owner)
    connection.execute(changed.values(options=json.dumps(dict(options))))


def _query(row: Row[Any]) -> NamedQuery:
    state = QueryState(row.state)
    options = json.loads(row.options)
    return NamedQuery(row.name, row.text, row.kind, state, row.created, row.error, options)
