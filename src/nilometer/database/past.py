"""One-off queries over what a database has stored: its past, as tables."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
import sqlglot
from pyspark.sql import SparkSession
from sqlglot import exp

from nilometer.database.home import Home
from nilometer.database.known import CHANGELOG
from nilometer.database.past_engine import IN_PROCESS_BYTES, PastEngine
from nilometer.errors import (
    NilometerError,
    NotFoundError,
    SqlError,
    SqlSyntaxError,
    UnknownNameError,
)
from nilometer.kernels.json_values import unique_names
from nilometer.log.reader import LogReader
from nilometer.model.names import nearest
from nilometer.model.time import format_instant
from nilometer.past.ask import prepare_question
from nilometer.past.downsample import RowSource
from nilometer.past.guarded import GuardedSandbox
from nilometer.past.question import Bounds, TableUse, goes_on
from nilometer.past.sandbox import AnswerLimits, Cancelling
from nilometer.past.sqlglot_errors import sqlglot_errors
from nilometer.past.stored import ChangingTable, FixedTable, LogTable, StoredTable
from nilometer.sql.ddl.nodes import ObjectKind
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.parse.query_text import Statement, names_read
from nilometer.sql.statements import read_query

MEMORY: Final = 512 << 20
"""The most memory (bytes) that a one-off query may use; four run at a time."""
OURS: Final = "spark"
"""The dialect of our statements, apart from what concerns streams."""
_EXPLAIN: Final = re.compile(
    r"^\s*EXPLAIN(\s+FORMAT\s*=?\s*\w+|\s+\(\s*FORMAT\s+\w+\s*\))?\s", re.I
)
_MOST_VIEWS: Final = 30
_MOST_READS: Final = 300
"""How many times a query may read views, including views read by views."""
_ASKED: Final = (
    ObjectKind.STREAM,
    ObjectKind.SENSOR_TABLE,
    ObjectKind.TABLE,
    ObjectKind.QUERY,
    ObjectKind.ALERT,
)


StoredRelations: TypeAlias = Mapping[str, tuple[str, list[tuple[str, pa.DataType]]]]
"""Columns by the name of a table or view, each with the kind of relation: r or v."""


@dataclass(frozen=True)
class StoredSource:
    """What must be known of a stream, table or query to query it."""

    name: str
    schema: pa.Schema
    time: str | None
    """The column that holds the time of its rows, if there is one."""
    changes: bool
    """Whether it is a changelog query; schema and time are those of its changes."""


class Past:
    """Runs one-off queries over what is stored; thread-safe."""

    def __init__(
        self,
        home: Home,
        spark: SparkSession | None = None,
        in_process_bytes: int = IN_PROCESS_BYTES,
    ) -> None:
        """A query that reads more than these bytes is answered by Spark, if there is one."""
        self._home = home
        self._spark = spark
        self._in_process_bytes = in_process_bytes
        self._lock = threading.Lock()
        self._made: PastEngine | None = None

    def is_asked(self, statement: Statement) -> bool:
        """Whether a statement reads stored rows once instead of running on."""
        catalog = self._home.catalog
        if goes_on(statement.tree) or statement.from_start:
            return False
        views = {one.name.lower(): one.text for one in catalog.views()}
        left, seen = set(names_read(statement)), set[str]()
        stored = {one.name.lower() for one in catalog.declarations()}
        stored |= {one.name.lower() for one in catalog.queries()}
        stored |= {one.name.lower() for one in catalog.alerts()}
        while left:
            name = left.pop()
            if name in stored:
                return True
            if name in views and name not in seen:
                seen.add(name)
                inner = read_query(views[name])
                if goes_on(inner.tree):
                    return False
                left |= names_read(inner)
        return False

    def select(
        self,
        sql: str,
        values: Mapping[str, object] | None = None,
        *,
        max_rows: int | None = None,
        seconds: float | None = None,
    ) -> pa.Table:
        """The answer to a query, or its first rows."""
        return self.select_tree(parse_past(sql, values), sql, max_rows=max_rows, seconds=seconds)

    def select_tree(
        self,
        tree: exp.Query,
        sql: str,
        *,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        seconds: float | None = None,
        cancelling: Cancelling | None = None,
        changes: Collection[str] = (),
    ) -> pa.Table:
        """The same for a parsed query.

        Of the queries in `changes` all changes are read, not the answer.
        """
        tables = StoredTables(self._home, changes)
        question = prepare_question(self.sandbox, self._with_views(tree), sql, tables)
        limits = AnswerLimits(max_rows, max_bytes, seconds)
        return self._engine.ask(question, tables, limits, cancelling)

    def explain(self, sql: str, values: Mapping[str, object] | None = None) -> str:
        """What would be read for the answer."""
        tables = StoredTables(self._home)
        tree = self._with_views(parse_past(sql, values))
        question = prepare_question(self.sandbox, tree, sql, tables)
        chosen = self._engine.choose(question, tables, is_exact=True)
        who = "in this process" if chosen.parted is None else "in parts by Spark"
        lines = [f"as a one-time query, it is answered from stored data, {who}:", f"  {chosen.why}"]
        for use in question.tables.values():
            low, high = (None if one is None else format_instant(one) for one in use.bounds)
            times = f", from {low or 'the beginning'} to {high or 'now'}" if low or high else ""
            instant = "" if use.instant is None else f" as of {format_instant(use.instant)}"
            stored = tables[use.table].size(use)
            lines.append(
                f"  {use.table}{instant}: {', '.join(sorted(use.columns))}{times}; "
                f"{stored:,} rows are stored"
            )
        return "\n".join(lines)

    def columns(self) -> StoredRelations:
        """The columns of all tables and views."""
        tables = StoredTables(self._home)
        relations: dict[str, tuple[str, list[tuple[str, pa.DataType]]]] = {}
        for name in tables:
            with suppress(NilometerError):  # it was dropped, or never started
                schema = tables[name].schema
                relations[name] = ("r", [(one.name, one.type) for one in schema])
        for view in self._home.catalog.views():
            with suppress(NilometerError):
                empty = self.select(f"SELECT * FROM ({view.text}) AS v LIMIT 0")
                relations[view.name] = ("v", [(one.name, one.type) for one in empty.schema])
        return relations

    def source(self, name: str) -> StoredSource:
        """The source of this name, in any case."""
        tables = StoredTables(self._home, (name,))
        table_name = next((one for one in tables if one.lower() == name.lower()), None)
        if table_name is None:
            raise UnknownNameError(
                f"there is no stream, table or query {name}", hint=nearest(name, tables)
            )
        table = tables[table_name]
        query = self._home.catalog.query(table_name)
        changes = query is not None and query.kind == CHANGELOG
        return StoredSource(table_name, table.schema, table.columns.time, changes)

    def rows(self, name: str, bounds: Bounds, *, answer: bool = False) -> RowSource:
        """The rows of a stream or query with times in a closed range, and possibly a few more.

        Of a changelog query these are its changes, or its current answer.
        """
        tables = StoredTables(self._home, () if answer else (name,))
        table_name = next((one for one in tables if one.lower() == name.lower()), None)
        if table_name is None:
            raise NotFoundError(
                f"there is no stream, table or query {name}", hint=nearest(name, tables)
            )
        table = tables[table_name]
        use = TableUse(table_name, columns=frozenset(table.schema.names), bounds=bounds)
        names = unique_names(table.schema.names)
        schema = pa.schema([f.with_name(n) for f, n in zip(table.schema, names, strict=True)])
        rows = table.read(use)
        batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
        named = (one.rename_columns(names) for one in batches)
        return RowSource(table_name, schema, table.columns.time, named)

    @property
    def sandbox(self) -> GuardedSandbox:
        """The process in which one-off queries run."""
        return self._engine.sandbox

    @property
    def _engine(self) -> PastEngine:
        """The engine that answers them, created on first use."""
        with self._lock:
            if self._made is None:
                sandbox = GuardedSandbox(MEMORY)
                self._made = PastEngine(sandbox, self._spark, self._in_process_bytes)
            return self._made

    def close(self) -> None:
        with self._lock:
            if self._made is not None:
                self._made.sandbox.close()

    def _with_views(self, tree: exp.Query) -> exp.Query:
        """The query with its views replaced by their texts."""
        views = {one.name.lower(): one.text for one in self._home.catalog.views()}
        reads = 0
        for _ in range(_MOST_VIEWS):
            entries = [one for one in tree.find_all(exp.Table) if one.name.lower() in views]
            if not entries:
                return tree
            reads += len(entries)
            if reads > _MOST_READS:
                raise SqlError(
                    "the query expands too many views",
                    detail=f"more than {_MOST_READS} times, including through other views",
                )
            for entry in entries:
                inner = exp.Subquery(this=_parse(views[entry.name.lower()]))
                alias = entry.alias or entry.name
                inner.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
                entry.replace(inner)
        raise SqlError("views refer to each other in a cycle")


class StoredTables(Mapping[str, StoredTable]):
    """All relations that can be queried, each opened on first use."""

    def __init__(self, home: Home, changes: Collection[str] = ()) -> None:
        """For the queries in `changes` the rows are their changes, not the answer."""
        self._home = home
        self._changes = {one.lower() for one in changes}
        self._opened: dict[str, StoredTable] = {}
        self._names = {one.name: one.kind for one in home.catalog.names() if one.kind in _ASKED}

    def __getitem__(self, name: str) -> StoredTable:
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _open(self, name: str) -> StoredTable:
        catalog = self._home.catalog
        if self._names[name] is ObjectKind.TABLE:
            rows = catalog.table(name)
            if rows is None:
                raise NotFoundError(f"there is no table {name}")
            return FixedTable(rows)
        location = self._home.log_of(name)
        reader = LogReader.open(location)
        query = catalog.query(name) if self._names[name] is ObjectKind.QUERY else None
        is_answer = query is not None and query.kind == CHANGELOG
        if is_answer and name.lower() not in self._changes:
            return ChangingTable(location, reader)
        return LogTable(location, reader)


def parse_past(sql: str, values: Mapping[str, object] | None) -> exp.Query:
    """Parse a query, with the values of its parameters."""
    bound = Parameters(values or {}).bind(_parse(_EXPLAIN.sub("", sql)), sql)
    assert isinstance(bound, exp.Query)
    return bound


def _parse(sql: str) -> exp.Query:
    with sqlglot_errors("cannot read the query", SqlSyntaxError):
        tree = sqlglot.parse_one(sql, read=OURS)
    if not isinstance(tree, exp.Query):
        raise SqlSyntaxError("expected a query", hint="write SELECT … FROM …")
    return tree
