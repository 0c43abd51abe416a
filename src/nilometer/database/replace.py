"""CREATE OR REPLACE QUERY: a new text for an existing query.

The new text runs beside the old one, from the oldest rows that streams keep. Once it has caught
up, it replaces the old one in a single transaction of the catalog; until then the old results
are served, whatever happens in between.
"""

from __future__ import annotations

import time
from typing import Final

from sqlglot.tokenizer_core import TokenType

from nilometer.database.bucket_options import read_requested
from nilometer.database.home import Home
from nilometer.database.limits import (
    is_temporary,
    limits_of,
    owner_of,
    read_limits,
    replacement_of,
)
from nilometer.database.new_queries import NewQuery
from nilometer.database.running import RunningQueries
from nilometer.errors import InputError
from nilometer.sensors.catalog.outcome import Outcome, placed
from nilometer.sensors.catalog.stored_queries import NamedQuery
from nilometer.sql.ddl.nodes import CreateQuery
from nilometer.sql.parse.places import placed_within
from nilometer.sql.parse.query_text import tokenize

_WAIT: Final = 10.0
"""How long (seconds) a caller waits for a replacement."""
_MOMENT: Final = 0.1
_SPELLED: Final = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.VAR)


def replace_query(
    statement: CreateQuery, home: Home, queries: RunningQueries, owner: str | None
) -> Outcome:
    """Give an existing query a new text."""
    with placed(statement.place), placed_within(statement.text_place):
        query = home.catalog.query(statement.name)
        assert query is not None
        name, new = query.name, replacement_of(query.name)
        if _words(query.text) == _words(statement.query.sql):
            return _go_on(statement, query, queries)
        _refuse_if_used(name, home, queries)
        if home.catalog.query(new) is not None:
            queries.drop(new)
        queries.create(
            NewQuery(
                new,
                statement.query,
                limits=lambda _: read_limits(statement.options, limits_of(query)),
                requested=read_requested(statement.options),
                temporary=is_temporary(query),
                owner=owner_of(query) or owner,
                in_place_of=name,
            )
        )
    until = time.monotonic() + _WAIT
    while time.monotonic() < until and home.catalog.query(new) is not None:
        if queries.replace(name, new):
            return Outcome(f"query {name} replaced")
        time.sleep(_MOMENT)
    if home.catalog.query(new) is None:
        return Outcome(f"query {name} replaced")
    return Outcome(
        f"query {name} keeps its old text until the new one, {new}, has caught up: SHOW QUERIES "
        "shows its progress"
    )


def _go_on(statement: CreateQuery, query: NamedQuery, queries: RunningQueries) -> Outcome:
    """Keep running a query whose text is the same, with its state, under other limits."""
    if statement.options:
        queries.alter(
            query.name,
            lambda limits: read_limits(statement.options, limits),
            read_requested(statement.options),
        )
    queries.start(query.name)
    return Outcome(f"query {query.name} already has this text, and keeps running")


def _words(text: str) -> list[str]:
    """The words of a text without comments, ignoring the case of words that are not names."""
    return [
        f"{one.token_type} {one.text if one.token_type in _SPELLED else one.text.upper()}"
        for one in tokenize(text)
    ]


def _refuse_if_used(name: str, home: Home, queries: RunningQueries) -> None:
    """Refuse if others read the results: they cannot take back what they have read."""
    using = [f"query {one} reads it" for one in queries.reading(name)]
    using += [f"delivery {one} delivers its results" for one in home.deliveries.of_query(name)]
    using += [f"alert {one} watches it" for one in home.alerts.on(name)]
    if using:
        raise InputError(
            f"query {name} cannot be replaced: {', '.join(using)}",
            detail="its results will be those of the new text, from the start",
            hint="drop what uses it first, or create a query of another name",
        )
