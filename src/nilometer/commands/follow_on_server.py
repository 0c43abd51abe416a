"""`nilometer sql --follow --server`: a query of a server is followed until Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pyarrow as pa

from nilometer.client import Client, Query
from nilometer.commands.answers import is_changelog
from nilometer.commands.arrow_answer import ArrowAnswer
from nilometer.commands.follow_results import (
    Followed,
    Results,
    Screen,
    follow_batches,
    open_sink,
)
from nilometer.commands.following import stop_signals
from nilometer.commands.listening import Listening
from nilometer.commands.options import Format
from nilometer.commands.server_access import Server
from nilometer.commands.statements import OneStatement
from nilometer.errors import InputError, NilometerError
from nilometer.model.names import count
from nilometer.operators.change_operator import DIFF, TIME
from nilometer.sql.parse.with_constants import with_constants
from nilometer.sql.questions import require_changing

_NEWEST: Final = 10
"""How many stored rows of a named query are shown before new ones."""
_MOST_ANSWER: Final = 10_000


def follow_select(server: Server, client: Client, one: OneStatement, screen: Screen) -> Followed:
    """Follow a SELECT over streams as a temporary query of the server, dropped at the end."""
    if screen.follow.catch_up:
        raise InputError(
            "a SELECT over streams has no end to catch up with",
            hint="--catch-up NAME writes all stored results of a query that the server runs",
        )
    text = with_constants(one.sql, one.parameters) if one.parameters else one.sql
    with _dropped(client.query(text, temporary=True)) as query:
        schema = query.page("start", limit=1).table.schema
        results = Results(query.name, one.sql, schema)
        return follow_batches(results, Listening(server, query.name, "start"), (), screen)


def follow_named(server: Server, client: Client, name: str, screen: Screen) -> Followed:
    """Follow a query that the server runs: new results; in tables, after the newest rows."""
    query = client.query(name)
    newest = query.page("latest", limit=_NEWEST)
    results = Results(query.name, query.statement, newest.table.schema)
    if screen.follow.catch_up:
        return _write_stored(query, results, screen)
    start = newest.next
    first = (newest.table,) if screen.output.form is Format.TABLE else ()
    if screen.follow.answer:
        require_changing(is_changelog(results.schema.names), "--answer")
        table, start = _current(query, results.schema)
        first = (table,)
    return follow_batches(results, Listening(server, query.name, start), first, screen)


def _write_stored(query: Query, results: Results, screen: Screen) -> Followed:
    """Write all stored results, one page at a time."""
    followed, start, batches = Followed(), "start", 0
    with open_sink(results, screen) as sink, stop_signals() as stops:
        while not stops[0].is_set():
            page = query.page(start, limit=_MOST_ANSWER)
            sink.write(ArrowAnswer(page.table), batches)
            followed.rows, batches, start = followed.rows + len(page), batches + 1, page.next
            screen.progress.say(f"{count(followed.rows, 'row')} – Ctrl-C ends")
            if page.at_end:
                break
    return followed


def _current(query: Query, schema: pa.Schema) -> tuple[pa.Table, str]:
    """The current answer as emitted rows, and the offset from which it changes."""
    answer = query.answer(limit=_MOST_ANSWER)
    if answer.is_cut:
        raise InputError(
            f"the answer of {query.name} has more than {_MOST_ANSWER:,} rows",
            hint="leave --answer out to see its changes",
        )
    table = answer.table
    instant = pa.scalar(answer.instant, schema.field(TIME).type)
    times = pa.chunked_array([pa.repeat(instant, len(table))])
    ones = pa.chunked_array([pa.repeat(pa.scalar(1, schema.field(DIFF).type), len(table))])
    return table.append_column(TIME, times).append_column(DIFF, ones), answer.offset


@contextmanager
def _dropped(query: Query) -> Iterator[Query]:
    """A temporary query, dropped afterwards."""
    try:
        yield query
    finally:
        with suppress(NilometerError):  # the server drops it once nobody follows it
            query.drop()
