"""Runs statements of clients, within the limits of the configuration and of the caller."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    Sized,
)
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from nilometer.database import Database
from nilometer.database.limits import beyond, read_limits, shown_limits
from nilometer.database.query_status import QueryLimits
from nilometer.errors import (
    GoesOnError,
    LimitError,
    SqlSyntaxError,
    TooLargeError,
)
from nilometer.server.scopes import SERVER, Asker, Scope, require_scope
from nilometer.server.settings import ServerSettings
from nilometer.spark.failures import too_large_answer
from nilometer.spark.time_limit import time_limited
from nilometer.sql.ddl.nodes import (
    AlterQuery,
    CreateAlert,
    CreateQuery,
    DatabaseStatement,
    Delete,
    Insert,
    Update,
)
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.statements import (
    AnyStatement,
    ReadStatement,
    Statement,
    read_each,
    read_one,
    read_query,
    require_last_query,
)


@dataclass(frozen=True)
class Executed:
    """The result of a statement: a sentence, and rows if it returns some."""

    message: str | None
    rows: pa.Table | None
    is_cut: bool = False
    """Whether there were more rows."""


Values: TypeAlias = Mapping[str, object]
"""The values of a statement's parameters, by name."""


class StatementRunner:
    """Parses and runs statements; every method is slow, and is called in a thread."""

    def __init__(self, database: Database, settings: ServerSettings) -> None:
        self._database = database
        self._settings = settings
        self._makers: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def read_all(self, text: str, values: Values) -> list[ReadStatement]:
        """The statements of a text, each with its own text and values."""
        self.require_short(text)
        statements = read_each(text, Parameters(values))
        if not statements:
            raise SqlSyntaxError("expected a statement, got none", hint="write SELECT … FROM …")
        require_last_query([one.statement for one in statements])
        return statements

    def read(self, text: str, values: Values | None = None) -> AnyStatement:
        """Parse one statement, without checking what it names."""
        self.require_short(text)
        return read_one(text, Parameters(values or {}))

    def require_short(self, text: str) -> None:
        """Refuse texts that are too long to be parsed."""
        limit = self._settings.max_statement_characters
        if len(text) > limit:
            raise TooLargeError(
                "the statement is too long",
                detail=f"it has {len(text)} characters, at most {limit} are read",
            )

    def read_query(self, text: str) -> Statement:
        """Parse one query, without checking what it names."""
        self.require_short(text)
        return read_query(text)

    def execute(self, statement: DatabaseStatement, asker: Asker) -> Executed:
        """Run a statement that is not a query, within what the asker may do."""
        match statement:
            case Insert() | Update() | Delete():
                self.require_for_rows(statement.table, asker)
            case CreateQuery():
                self.require_within(read_limits(statement.options, self._database.limits), asker)
                with self.room_for(asker):
                    return self.run(statement, asker)
            case CreateAlert():
                self.require_room("alerts", self._settings.max_alerts, self._database.alerts, asker)
            case AlterQuery():
                self.require_within(read_limits(statement.options, self._database.limits), asker)
        return self.run(statement, asker)

    def require_within(self, limits: QueryLimits, asker: Asker) -> None:
        """Only admin may give a query more than the configuration allows."""
        allowed = self._database.limits
        if asker.may(Scope.ADMIN) or (exceeded := beyond(limits, allowed)) is None:
            return
        require_scope(
            asker.scopes,
            Scope.ADMIN,
            detail=f"the limits of a query may be at most {shown_limits(allowed)}; "
            f"its {exceeded} would be more",
        )

    @contextmanager
    def room_for(self, asker: Asker) -> Iterator[None]:
        """Create one more query within this; refused if the asker has reached the maximum."""
        if asker.may(Scope.ADMIN):
            yield
            return
        limit = self._settings.max_queries_each
        with self._makers[asker.name]:  # otherwise several at once could each find room for one
            if self._database.queries_of(asker.name) >= limit:
                raise LimitError(
                    f"{asker.name} has {limit} queries already",
                    hint="drop one of them, or ask an administrator to make this one",
                )
            yield

    def require_room(
        self, what: str, limit: int, existing: Callable[[], Sized], asker: Asker
    ) -> None:
        """Shared things that work as long as they exist are limited, except for admin."""
        if not asker.may(Scope.ADMIN) and len(existing()) >= limit:
            raise LimitError(
                f"there are {limit} {what} already",
                hint="drop one of them, or ask an administrator to make this one",
            )

    def require_for_rows(self, table: str, asker: Asker) -> None:
        """Rows of sensor tables decide whom the server contacts: that needs more than write."""
        if self._database.is_declared(table):
            require_scope(asker.scopes, Scope.ADMIN, detail=f"{table} has sensors")

    def select(self, text: str, statement: Statement, values: Values | None = None) -> Executed:
        """The answer to a query that ends."""
        max_rows = self._settings.max_rows
        past = self._database.past
        if statement.explain is None and past.is_asked(statement):
            seconds = self._settings.statement_seconds
            return self._cut(past.select(text, values, max_rows=max_rows + 1, seconds=seconds))
        with time_limited(self._database.spark.sparkContext, self._settings.statement_seconds):
            answer = self._database.sql(text, parameters=values)
            if answer.isStreaming:
                raise GoesOnError(
                    "this query runs for as long as its streams do",
                    hint="keep it and follow its results: POST /queries, or CREATE QUERY name AS …",
                )
            rows = answer.limit(max_rows + 1).toArrow()
        return self._cut(rows)

    def _cut(self, rows: pa.Table) -> Executed:
        max_rows = self._settings.max_rows
        if rows.nbytes > self._settings.max_answer_bytes:
            raise too_large_answer()
        return Executed(None, rows.slice(0, max_rows), rows.num_rows > max_rows)

    def run(self, statement: str | DatabaseStatement, asker: Asker = SERVER) -> Executed:
        """Run a statement, if the asker may run it."""
        outcome = self._database.execute(statement, owner=asker.name)
        rows, max_rows = outcome.rows, self._settings.max_rows
        if rows is None or rows.num_rows <= max_rows:
            return Executed(outcome.message, rows)
        return Executed(outcome.message, rows.slice(0, max_rows), is_cut=True)
