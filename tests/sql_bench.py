"""The streams and tables of an SQL test file in Nilometer and in DuckDB, and their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from nilometer.sql.parse.cast_types import read_type
from tests.folded_answers import (
    SINCE_EVER,
    Change,
    faults,
    fold,
    in_utc,
    read_changes,
    rounded,
)
from tests.sql_files import (
    ChangingQuery,
    Function,
    Query,
    Record,
    Relation,
    read_rows,
    spell_rows,
    tidy_rows,
)

TIME: Final = "_time"
INSTANT: Final = timedelta(microseconds=1)
MACROS: Final = """
CREATE MACRO later(a, b) AS (epoch_us(b) - epoch_us(a)) / 1e6;
CREATE MACRO apart(a, b) AS abs(later(a, b));
CREATE MACRO now() AS CAST(getvariable('instant') AS TIMESTAMP);
CREATE MACRO past(ts) AS later(ts, now()) >= 0;
CREATE MACRO recent(ts, seconds) AS later(ts, now()) BETWEEN 0 AND seconds;
CREATE MACRO every(seconds) AS
  make_timestamp(epoch_us(now()) - epoch_us(now()) % (seconds * 1000000));
"""
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "similar": lambda a, b: a.str.lower().str[:3] == b.str.lower().str[:3],
    "near": lambda x, y, limit: (x - y).abs() <= limit,
    "clamp": lambda value: value.clip(0, 100),
    "unlike": lambda a, b: pd.Series(a != b),
}


@dataclass(frozen=True)
class BenchAnswer:
    names: list[str]
    rows: list[tuple[Any, ...]]

    def without_time(self) -> BenchAnswer:
        """The answer without the time of results, if that is its last column."""
        if self.names[-1] != TIME:
            return self
        return BenchAnswer(self.names[:-1], [row[:-1] for row in self.rows])


class Bench:
    """A file's streams and tables in DuckDB, to compare an engine's answers with its own."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.judge = duckdb.connect()
        self.judge.execute(MACROS)
        self.relations = [(one, rows_of(one)) for one in records if isinstance(one, Relation)]
        self.functions = [one for one in records if isinstance(one, Function)]
        for record, rows in self.relations:
            self.judge.register(record.name, without_zones(rows))

    def expected(self, query: Query, at: datetime | None = None) -> BenchAnswer:
        """DuckDB's answer, at an instant if the answer changes."""
        try:
            if at is not None:
                self.judge.execute(f"SET VARIABLE instant = TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f}'")
            cursor = self.judge.execute(query.oracle)
        except duckdb.Error as error:
            raise AssertionError(f"{query.place}: DuckDB: {error}") from error
        names = [column[0] for column in cursor.description]
        return BenchAnswer(names, cursor.fetchall())

    def watermark(self, statement: str) -> datetime:
        """The earliest of the last times of the streams in a statement's FROM."""
        names = set(re.findall(r"(?:\bfrom|\bjoin|,)\s+(\w+)", statement.lower()))
        return min(
            in_utc(pc.max(rows[record.time]).as_py())
            for record, rows in self.relations
            if record.time is not None and record.name.lower() in names
        )


def without_zones(rows: pa.Table) -> pa.Table:
    """Make all times UTC: DuckDB knows time zones only by an extension."""
    naive = [
        field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(naive))


def rows_of(record: Relation) -> pa.Table:
    """The rows of a stream or table."""
    created = sqlglot.parse_one(f"CREATE TABLE t ({record.columns})", read="spark")
    columns = created.this.expressions
    return read_rows(record, pa.schema([(one.name, arrow_type(one.kind)) for one in columns]))


def arrow_type(kind: exp.DataType) -> pa.DataType:
    """The type of a column, as Spark writes it."""
    inside = kind.expressions
    match kind.this:
        case exp.DType.STRUCT:
            return pa.struct([(one.name, arrow_type(one.kind)) for one in inside])
        case exp.DType.ARRAY:
            return pa.list_(arrow_type(inside[0]))
        case exp.DType.MAP:
            return pa.map_(arrow_type(inside[0]), arrow_type(inside[1]))
    kind_read = read_type(kind)
    assert kind_read is not None, kind
    return kind_read


def compare(
    bench: Bench, query: Query, answer: BenchAnswer, *, streamed: bool = False
) -> Iterable[str]:
    """The difference between an answer and the expected one, if any."""
    if isinstance(query, ChangingQuery):
        end = bench.watermark(query.statement) if streamed else None
        return compare_changes(bench, query, answer, end)
    return compare_rows(bench, query, answer)


def compare_rows(bench: Bench, query: Query, answer: BenchAnswer) -> Iterable[str]:
    """The difference for an answer that does not change, if any."""
    expected = bench.expected(query)
    if TIME not in (expected.names[-1], *(query.names or ())[-1:]):
        answer = answer.without_time()
    rows, judged = spell_rows(answer.rows), spell_rows(expected.rows)
    if rows != judged:
        yield f"{query.place}: DuckDB answers otherwise\n{difference(rows, judged)}"
    if query.names is None:
        return
    if list(query.names) != answer.names:
        stated, given = " ".join(query.names), " ".join(answer.names)
        yield f"{query.place}: the columns are {given}, not {stated}"
    stated = tidy_rows(query.rows)
    if rows != stated:
        yield f"{query.place}: the file says otherwise\n{difference(rows, stated)}"


def compare_changes(
    bench: Bench, query: ChangingQuery, answer: BenchAnswer, end: datetime | None
) -> Iterable[str]:
    """What is wrong with a changelog, or with one that only covers what was before its end."""
    changes = read_changes(answer.rows)
    yield from (f"{query.place}: {fault}" for fault in faults(changes))
    if end is not None:
        early = [change for change in changes if change.time > SINCE_EVER and change.time >= end]
        yield from (f"{query.place}: not before the watermark: {change}" for change in early)
    times = {change.time for change in changes if change.time > SINCE_EVER} | ({end} - {None})
    instants = {*query.instants, *times, *(time - INSTANT for time in times)}
    for at in sorted(at for at in instants if end is None or at < end):
        expected = bench.expected(query, at)
        rows = spell_rows(fold(changes, at))
        judged = spell_rows(rounded(row) for row in expected.rows)
        if rows != judged:
            yield f"{query.place}: at {at} DuckDB answers\n{difference(rows, judged)}"
    if query.names is not None and end is None:
        yield from compare_shown(query, ["at", *answer.names[:-2]], changes)


def compare_shown(
    query: ChangingQuery, names: list[str], changes: Sequence[Change]
) -> Iterable[str]:
    """What is wrong with the results that the file shows to readers."""
    if list(query.names or ()) != names:
        yield f"{query.place}: the columns are {' '.join(names)}"
    rows = spell_rows((at, *row) for at in query.instants for row in fold(changes, at))
    stated = tidy_rows(query.rows)
    if rows != stated:
        yield f"{query.place}: the file says otherwise\n{difference(rows, stated)}"


def difference(rows: list[str], expected: list[str]) -> str:
    lines = [f"  got      {row}" for row in _without(rows, expected)]
    lines += [f"  expected {row}" for row in _without(expected, rows)]
    return "\n".join(lines)


def _without(rows: list[str], others: list[str]) -> list[str]:
    left = list(others)
    return [row for row in rows if row not in left or left.remove(row)]  # type: ignore[func-returns-value]
