"""The SQL test files: what is answered, what DuckDB answers, and what the file says, are one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any, Final

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import nilometer as nm
from nilometer.errors import NilometerError
from nilometer.spark.types import arrow_schema
from tests.folded_answers import (
    SINCE_EVER,
    Change,
    faults,
    fold,
    in_utc,
    read_changes,
    rounded,
)
from tests.spark.harness import FileStream, run_to_end
from tests.sql_files import (
    ChangingQuery,
    Failure,
    Function,
    Plan,
    Query,
    Record,
    Relation,
    read_file,
    read_rows,
    spell_rows,
    tidy_rows,
)

FILES: Final = sorted(Path(__file__).parents[1].joinpath("sql").glob("*.test"))
TIME: Final = "_time"
QUERIES_PER_JOB: Final = 12
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
class Answer:
    names: list[str]
    rows: list[tuple[Any, ...]]

    def without_time(self) -> Answer:
        """Without the time of results, where it stands last."""
        if self.names[-1] != TIME:
            return self
        return Answer(self.names[:-1], [row[:-1] for row in self.rows])


class Bench:
    """A file's streams and tables, in Nilometer and in DuckDB."""

    def __init__(self, spark: SparkSession, records: Iterable[Record]) -> None:
        self.spark = spark
        self.db = nm.connect(spark)
        self.judge = duckdb.connect()
        self.judge.execute(MACROS)
        self.relations: list[tuple[Relation, pa.Table]] = []
        for record in records:
            match record:
                case Relation():
                    self._add_relation(record)
                case Function():
                    function = FUNCTIONS[record.name]
                    self.db.create_function(record.name, function, record.returns)

    def _add_relation(self, record: Relation) -> None:
        schema = StructType.fromDDL(record.columns)
        kinds = arrow_schema([field.dataType for field in schema.fields]).types
        rows = read_rows(record, pa.schema(list(zip(schema.names, kinds, strict=True))))
        self.relations.append((record, rows))
        self.judge.register(record.name, without_zones(rows))
        frame = self.spark.createDataFrame(rows, schema=schema).coalesce(1)
        add_relation(self.db, record, frame)

    def expected(self, query: Query, at: datetime | None = None) -> Answer:
        """What DuckDB answers, at an instant if the answer changes."""
        try:
            if at is not None:
                self.judge.execute(f"SET VARIABLE instant = TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f}'")
            cursor = self.judge.execute(query.oracle)
        except duckdb.Error as error:
            raise AssertionError(f"{query.place}: DuckDB: {error}") from error
        names = [column[0] for column in cursor.description]
        return Answer(names, cursor.fetchall())

    def watermark(self, statement: str) -> datetime:
        """The smallest of the last times of the streams that a statement names."""
        words = set(re.findall(r"\w+", statement.lower()))
        return min(
            in_utc(pc.max(rows[record.time]).as_py())
            for record, rows in self.relations
            if record.time is not None and record.name.lower() in words
        )


def without_zones(rows: pa.Table) -> pa.Table:
    """DuckDB knows time zones by an extension only; all times are UTC."""
    naive = [
        field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(naive))


def add_relation(db: nm.Database, record: Relation, frame: DataFrame) -> None:
    if record.time is None:
        db.create_table(record.name, frame)
    else:
        db.create_stream(record.name, frame, time=record.time)


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark that generates no code: so many small queries would do little but wait for it."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name in settings:
        spark.conf.unset(name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_answers(file: Path, interpreted: SparkSession) -> None:
    records = read_file(file)
    bench = Bench(interpreted, records)
    problems = [problem for record in records if (problem := refusal(bench.db, record))]
    frames = {}
    for query in records:
        if isinstance(query, Query):
            try:
                frames[query] = bench.db.sql(query.statement, buckets=1)
            except Exception as error:
                problems.append(f"{query.place}: {type(error).__name__}: {error}")
    for query, answer in answers(frames).items():
        if isinstance(query, ChangingQuery):
            problems += compare_changes(bench, query, answer)
        else:
            problems += compare(bench, query, answer)
    assert not problems, "\n\n".join(problems)


def refusal(db: nm.Database, record: Record) -> str | None:
    """What is wrong with the plan or the error of a record."""
    match record:
        case Plan(place, statement, lines):
            found = [line.strip() for line in db.explain(statement, buckets=1).splitlines()]
            missing = [line for line in lines if line.strip() not in found]
            return f"{place}: the plan lacks {missing}:\n" + "\n".join(found) if missing else None
        case Failure(place, statement, text):
            found_text = error_of(db, statement)
            if found_text != text:
                return f"{place}: expected the error\n{text}\n  but got\n{found_text}"
    return None


def error_of(db: nm.Database, statement: str) -> str:
    try:
        db.sql(statement, buckets=1)
    except NilometerError as error:
        return str(error)
    except Exception as error:  # whatever it is, a user must not meet it
        return f"{type(error).__name__}: {error}"
    return "no error"


def answers(frames: Mapping[Query, DataFrame]) -> dict[Query, Answer]:
    """What Nilometer answers to each query, by one Spark job for many of them."""
    found: dict[Query, Answer] = {}
    waiting = iter(frames.items())
    while some := dict(islice(waiting, QUERIES_PER_JOB)):
        try:
            found |= read_answers(some, as_one(some))
        except Exception as error:
            raise AssertionError(_first_to_fail(some)) from error
    return found


def as_one(frames: Mapping[Query, DataFrame]) -> DataFrame:
    """The answers to all queries as one DataFrame: each has a column of its own."""
    return reduce(
        _union, (_as_column(number, frame) for number, frame in enumerate(frames.values()))
    )


def read_answers(frames: Mapping[Query, DataFrame], joined: DataFrame) -> dict[Query, Answer]:
    """The answers that `as_one` has put together."""
    rows = joined.toArrow()
    found = {}
    for number, (query, frame) in enumerate(frames.items()):
        own = rows.column(f"q{number}").drop_null().to_pylist()
        found[query] = Answer(frame.columns, [tuple(row[0].values()) for row in own])
    return found


def _as_column(number: int, frame: DataFrame) -> DataFrame:
    numbered = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    return numbered.selectExpr(f"array(struct(*)) AS q{number}")


def _union(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.unionByName(right, allowMissingColumns=True)


def _first_to_fail(frames: Mapping[Query, DataFrame]) -> str:
    for query, frame in frames.items():
        try:
            _as_column(0, frame).toArrow()
        except Exception as error:
            return f"{query.place}: {type(error).__name__}: {error}"
    return "the queries fail together, but not one by one"


def compare(bench: Bench, query: Query, answer: Answer) -> Iterable[str]:
    """What is wrong with an answer."""
    expected = bench.expected(query)
    if TIME not in (expected.names[-1], *(query.names or ())[-1:]):
        answer = answer.without_time()
    found, judged = spell_rows(answer.rows), spell_rows(expected.rows)
    if found != judged:
        yield f"{query.place}: DuckDB answers otherwise\n{difference(found, judged)}"
    if query.names is None:
        return
    if list(query.names) != answer.names:
        told, given = " ".join(query.names), " ".join(answer.names)
        yield f"{query.place}: the columns are {given}, not {told}"
    told = tidy_rows(query.rows)
    if found != told:
        yield f"{query.place}: the file says otherwise\n{difference(found, told)}"


def compare_changes(
    bench: Bench, query: ChangingQuery, answer: Answer, end: datetime | None = None
) -> Iterable[str]:
    """What is wrong with a changelog, or with one that only tells what was before its end."""
    changes = read_changes(answer.rows)
    yield from (f"{query.place}: {fault}" for fault in faults(changes))
    if end is not None:
        early = [change for change in changes if change.time > SINCE_EVER and change.time >= end]
        yield from (f"{query.place}: not before the watermark: {change}" for change in early)
    instants = {*query.instants, *(change.time for change in changes if change.time > SINCE_EVER)}
    if end is not None:
        instants.add(end - timedelta(microseconds=1))
    for at in sorted(at for at in instants if end is None or at < end):
        expected = bench.expected(query, at)
        found = spell_rows(fold(changes, at))
        judged = spell_rows(rounded(row) for row in expected.rows)
        if found != judged:
            yield f"{query.place}: at {at} DuckDB answers\n{difference(found, judged)}"
    if query.names is not None and end is None:
        yield from compare_told(query, ["at", *answer.names[:-2]], changes)


def compare_told(
    query: ChangingQuery, names: list[str], changes: Sequence[Change]
) -> Iterable[str]:
    """What is wrong with what the file tells readers."""
    if list(query.names or ()) != names:
        yield f"{query.place}: the columns are {' '.join(names)}"
    found = spell_rows((at, *row) for at in query.instants for row in fold(changes, at))
    told = tidy_rows(query.rows)
    if found != told:
        yield f"{query.place}: the file says otherwise\n{difference(found, told)}"


def difference(found: list[str], expected: list[str]) -> str:
    lines = [f"  got      {row}" for row in _without(found, expected)]
    lines += [f"  expected {row}" for row in _without(expected, found)]
    return "\n".join(lines)


def _without(rows: list[str], others: list[str]) -> list[str]:
    left = list(others)
    return [row for row in rows if row not in left or left.remove(row)]  # type: ignore[func-returns-value]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_streamed_answers(file: Path, interpreted: SparkSession, tmp_path: Path) -> None:
    records = read_file(file)
    queries = [query for query in records if isinstance(query, Query) and query.streamed]
    if not queries:
        pytest.skip("no query of this file is streamed")
    bench = Bench(interpreted, records)
    for record, rows in bench.relations:
        if record.time is not None:
            bench.db.drop(record.name)
            stream = FileStream(tmp_path / record.name, record.columns)
            for part in halves(rows, record.time):
                stream.add(part)
            add_relation(bench.db, record, stream.read(interpreted))
    frames = {query: bench.db.sql(query.statement, buckets=1) for query in queries}
    run_to_end(as_one(frames), tmp_path)
    found = interpreted.read.parquet(str(tmp_path / "out"))
    problems = []
    for query, answer in read_answers(frames, found).items():
        if isinstance(query, ChangingQuery):
            problems += compare_changes(bench, query, answer, bench.watermark(query.statement))
        else:
            problems += compare(bench, query, answer)
    assert not problems, "\n\n".join(problems)


def halves(rows: pa.Table, time: str) -> Iterable[pa.RecordBatch]:
    """Two micro-batches, in the order of time."""
    ordered = rows.sort_by(time)
    middle = (len(rows) + 1) // 2
    for part in (ordered.slice(0, middle), ordered.slice(middle)):
        yield from part.combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], rows.schema)
        ]
