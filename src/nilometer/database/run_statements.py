"""Runs and explains statements over DataFrames and what a database stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nilometer.database.compiler import Compiler
from nilometer.database.known import Reading
from nilometer.database.statements import run_statement
from nilometer.database.stored_parts import StoredParts
from nilometer.errors import (
    AmbiguousNameError,
    ContradictionError,
    SqlError,
    SqlSyntaxError,
    SqlWindowError,
    UnknownNameError,
)
from nilometer.sensors.catalog.outcome import Outcome, placed
from nilometer.sensors.log_options import StreamDefaults
from nilometer.sql.ddl.nodes import (
    CreateAlert,
    CreateDelivery,
    CreateQuery,
    CreateSensorTable,
    CreateStream,
    CreateTable,
    CreateView,
    DatabaseStatement,
    Rename,
)
from nilometer.sql.explain.picture import QueryPicture, picture_contradiction, picture_plan
from nilometer.sql.parse.places import placed_within
from nilometer.sql.statements import (
    AnyStatement,
    ExplainFormat,
    Statement,
    numbered_errors,
    read_one,
    read_query,
    require_last_query,
)

_CREATES: Final = (
    *(CreateStream, CreateSensorTable, CreateTable, CreateQuery, CreateView, CreateDelivery),
    CreateAlert,
)


class Statements:
    """Runs statements that are not queries, and explains queries."""

    def __init__(self, compiler: Compiler, stored: StoredParts, defaults: StreamDefaults) -> None:
        """`defaults`: for streams whose statements do not say it."""
        self._compiler = compiler
        self._stored = stored
        self._defaults = defaults

    def run_before_last(
        self, statements: Sequence[AnyStatement], owner: str | None = None
    ) -> AnyStatement:
        """Run all statements but the last, and return that; raises if one of them is a query."""
        if not statements:
            raise SqlSyntaxError("expected a statement, got none", hint="write SELECT … FROM …")
        require_last_query(statements)
        for number, one in enumerate(statements[:-1], 1):
            assert not isinstance(one, Statement)
            with numbered_errors(number, len(statements)):
                self.run(one, owner)
        return statements[-1]

    def run(self, statement: DatabaseStatement, owner: str | None = None) -> Outcome:
        """Run a statement; queries that it creates get this owner."""
        self._refuse_taken(statement)
        if isinstance(statement, CreateStream | CreateSensorTable):
            statement = replace(statement, stream=self._defaults.fill(statement.stream))
        home, queries, _ = self._stored.parts
        return run_statement(statement, home, queries, owner)

    def explain(
        self,
        text: str,
        read: Statement,
        reading: Reading,
        buckets: int | None,
        form: ExplainFormat,
        values: Mapping[str, Any] | None,
    ) -> str:
        """Explain a query as a continuous query and as a one-off query."""
        is_stored = self._stored.parts_left is not None and form is ExplainFormat.TEXT
        past = self._stored.parts.past if is_stored else None
        if past is None or not past.is_asked(read):
            return self._compiler.explain(read, reading, buckets, form)
        try:
            going_on = self._compiler.explain(read, reading, buckets, form)
        except (UnknownNameError, AmbiguousNameError):
            raise
        except SqlError:  # it cannot run continuously
            return past.explain(text, values)
        try:
            once = past.explain(text, values)
        except SqlError as error:
            once = f"as a one-time query, it cannot be answered: {error.message}"
        return f"{going_on}\n{once}"

    def picture(self, text: str) -> QueryPicture:
        """The plan of a query, or of one to be created, to be drawn."""
        read = read_one(text)
        if isinstance(read, CreateQuery):
            with placed_within(read.text_place):
                return self._picture(read.query)
        return self._picture(read if isinstance(read, Statement) else read_query(text))

    def _picture(self, query: Statement) -> QueryPicture:
        try:
            return picture_plan(self._compiler.question(query, Reading())[0].plan)
        except SqlWindowError as error:
            if isinstance(error.__cause__, ContradictionError):
                return picture_contradiction(error.__cause__)
            raise

    def _refuse_taken(self, statement: DatabaseStatement) -> None:
        """Refuse a name that a DataFrame has: the catalog must not share names with DataFrames."""
        if isinstance(statement, _CREATES):
            with placed(statement.place):
                self._compiler.named.refuse(statement.name)
        elif isinstance(statement, Rename):
            with placed(statement.to_place):
                self._compiler.named.refuse(statement.to)
