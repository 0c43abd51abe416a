"""The relations that statements can name in a database, and where their rows are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from nilometer.database.home import Home
from nilometer.errors import LogError, UnknownNameError
from nilometer.log.layout import LogLayout
from nilometer.log.reader import LogReader
from nilometer.operators.watermarks import StreamClock
from nilometer.sensors.catalog.stored_queries import KNOWN, NamedQuery
from nilometer.sensors.declaration import Declaration
from nilometer.spark.inputs import Inputs, MadeOnUse, describe_log
from nilometer.spark.log_cursor import EARLIEST, LATEST, LogRange
from nilometer.sql.catalog import Relation, SensorColumns, Statistics, rows_name
from nilometer.sql.parse.query_text import Statement, names_read
from nilometer.sql.plan.changes_plan import Plan, sources_of
from nilometer.sql.statements import read_query

APPEND = "append"
CHANGELOG = "changelog"
ROWS_PER_BATCH: Final = 1_000_000
"""The most rows of a log in a micro-batch of a query that has a streaming query of its own."""


@dataclass(frozen=True)
class Known:
    """Relations and their inputs by name; the texts of views, and of queries that change."""

    relations: Mapping[str, Relation]
    inputs: Inputs
    queries: Mapping[str, str]

    def with_inline_rows(self, plan: Plan) -> Known:
        """The same, plus the tables that a plan itself holds: VALUES."""
        tables = {one.relation.name: one.relation.rows for one in sources_of(plan)}
        create, frames = self.inputs.session.createDataFrame, self.inputs.frames
        added = {
            name: partial(create, pa.Table.from_batches([rows]))
            for name, rows in tables.items()
            if rows is not None
        }
        if not added:
            return self
        known = {name: partial(frames.__getitem__, name) for name in frames}
        return replace(self, inputs=replace(self.inputs, frames=MadeOnUse({**known, **added})))


@dataclass(frozen=True)
class Reading:
    """How a statement reads logs."""

    reader: str | None = None
    """Its reader name in the logs that it reads."""
    is_named: bool = False
    """Whether the logs keep what it has not read until the reader is forgotten."""
    from_start: bool = False
    """Whether it starts at the oldest row that is kept instead of at the end."""
    begins_now: bool = False
    """Whether it is started at once, and so starts with the rows that arrive from now on."""
    columns: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The columns, by their names in files, that it knows of some streams, by their keys."""
    instead: Declaration | None = None
    """A hypothetical declaration that replaces the stream of its name."""

    def sees(self, declared: Declaration, key: str) -> Declaration:
        """A stream as this statement sees it."""
        if self.instead is not None and self.instead.name == declared.name:
            declared = self.instead
        known = self.columns.get(key)
        return declared if known is None else declared.only(known)


def everything_known(
    own: Mapping[str, Relation],
    frames: Mapping[str, DataFrame],
    home: Home | None,
    spark: SparkSession,
    reading: Reading,
) -> Known:
    """The registered DataFrames, and the relations stored in the database."""
    relations = dict(own)
    tables: dict[str, Callable[[], DataFrame]] = {
        name: partial(frames.__getitem__, name) for name in frames
    }
    logs: dict[str, Callable[[], LogRange]] = {}
    queries: dict[str, str] = {}
    if home is not None:
        known = home.catalog.declarations()
        counts = any(one.is_sensor_table and one.every is not None for one in known)
        sensors = home.catalog.count_sensors() if counts else {}
        for stored in known:
            declared = reading.sees(stored, home.catalog.key(stored.name))
            size = sensors.get(stored.name, 0) if stored.is_sensor_table else 1
            statistics = declared.statistics(home.manager.measured(stored.name), size)
            relations[declared.name] = relation_of(declared, statistics)
            logs[declared.name] = partial(_stream, home, declared, reading)
            if declared.is_sensor_table:
                tables[rows_name(declared.name)] = partial(_sensor_rows, home, spark, declared)
        for name, schema in home.catalog.tables().items():
            relations[name] = describe_rows(name, schema)
            tables[name] = partial(_table, home, spark, name)
        queries = {view.name: view.text for view in home.catalog.views()}
        for query in home.catalog.queries():
            if query.kind == CHANGELOG:
                queries[query.name] = query.text
            elif (relation := _results(home, query)) is not None:
                relations[query.name] = relation
                logs[query.name] = partial(_log, home, query.name, reading)
    inputs = Inputs(spark, MadeOnUse(tables), MadeOnUse(logs))
    return Known(relations, inputs, queries)


def columns_known(
    statement: Statement, home: Home | None, own: Mapping[str, Collection[str]]
) -> Mapping[str, Collection[str]]:
    """The columns of streams that a statement knows.

    The texts of changelog queries become part of it, and keep their meaning.
    """
    queries = [] if home is None else home.catalog.queries()
    changing = [one for one in queries if one.kind == CHANGELOG and one.options.get(KNOWN)]
    if home is None or not changing:
        return own
    texts = {one.name.lower(): one.text for one in queries}
    texts |= {one.name.lower(): one.text for one in home.catalog.views()}
    todo, seen = names_read(statement), set[str]()
    while todo:
        seen.add(name := todo.pop())
        todo |= names_read(read_query(texts[name])) - seen if name in texts else set()
    merged = dict(own)
    for query in changing:
        for key, columns in query.options[KNOWN].items() if query.name.lower() in seen else ():
            merged[key] = set(merged.get(key, columns)) & set(columns)
    return merged


def columns_read(plan: Plan) -> list[tuple[str, list[str]]]:
    """The columns that a plan reads of each of its sources."""
    return [
        (one.relation.name, [f"{c.ref.sql} {c.kind}" for c in one.carried])
        for one in sources_of(plan)
    ]


def relation_of(declared: Declaration, statistics: Statistics) -> Relation:
    """A stream or sensor table as statements see it."""
    relation = replace(describe_log(declared.name, declared.layout), statistics=statistics)
    implicit = declared.time is None or declared.is_sensor_table
    idle = declared.shown_idle
    waits = "" if idle is None else f"idle {'' if idle == 'never' else 'after '}{idle}"
    relation = replace(relation, has_implicit_time=implicit, waits=waits)
    if declared.end is not None:
        inside = () if declared.column is None else (declared.column,)
        relation = replace(relation, end=(*inside, declared.end))
    if declared.static is None or declared.column is None:
        return relation
    names = tuple(declared.static.names)
    return replace(relation, sensors=SensorColumns(names, declared.column))


def _results(home: Home, query: NamedQuery) -> Relation | None:
    """The results of a query as statements see them; None if it has never been started."""
    try:
        return _described(home.log_of(query.name), query.name, query.created)
    except LogError:
        return None


@lru_cache(maxsize=10_000)
def _described(location: str, name: str, created: int) -> Relation:  # noqa: ARG001
    """The log of one query, whose columns stay the same as long as the query exists."""
    return describe_log(name, LogReader.open(location).layout)


def describe_rows(name: str, schema: pa.Schema) -> Relation:
    """A static table as statements see it."""
    return Relation(
        name,
        tuple(schema.names),
        tuple(schema.types),
        clock=StreamClock(ended=True),
        is_table=True,
    )


def _table(home: Home, spark: SparkSession, name: str) -> DataFrame:
    rows = home.catalog.table(name)
    if rows is None:
        raise UnknownNameError(f"there is no table {name}", detail="it was dropped a moment ago")
    return spark.createDataFrame(rows)


def _sensor_rows(home: Home, spark: SparkSession, declared: Declaration) -> DataFrame:
    assert declared.static is not None
    rows = home.catalog.sensor_rows(declared.name).select(declared.static.names)
    return spark.createDataFrame(rows)


def _stream(home: Home, declared: Declaration, reading: Reading) -> LogRange:
    """The log of a stream; raises if it is broken, as nothing is appended to it then."""
    name = declared.name
    if (why := home.broken.get(name)) is not None:
        raise LogError(
            f"the log of {name} cannot be used",
            detail=f"{why.message}: {why.detail}",
            hint="restore its files and open the database again, or DROP it",
        )
    return _log(home, name, reading, declared.layout)


def _log(home: Home, name: str, reading: Reading, layout: LogLayout | None = None) -> LogRange:
    location = home.log_of(name)
    return LogRange(
        location,
        layout or LogReader.open(location).layout,
        EARLIEST if reading.from_start else LATEST,
        reading.begins_now,
        reading.reader,
        is_named=reading.is_named,
        max_rows=ROWS_PER_BATCH,
    )
