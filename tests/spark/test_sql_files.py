"""The SQL test files: what is answered, what DuckDB answers, and what the file says, are one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import nilometer as nm
from nilometer.errors import NilometerError
from tests.examples import some_of
from tests.spark.harness import FileStream, run_to_end
from tests.sql_bench import FUNCTIONS, Bench, BenchAnswer, compare
from tests.sql_files import Failure, Plan, Query, Record, Relation, read_file

FILES: Final = sorted(Path(__file__).parents[1].joinpath("sql").glob("*.test"))
QUERIES_PER_JOB: Final = 12
ALL_AT_ONCE = "; or query all rows at once: make it a table, --table A=a.csv or create_table"
"""What hints say besides where streams are static DataFrames, as here."""
RECORDS_PER_TEST: Final = 160
ONE_OF: Final = 8
"""In `make test` Spark is asked one of so many; the local engine is asked all of them."""


def parts() -> Iterator[tuple[Path, range]]:
    """Files with the numbers of their records, so many at a time."""
    for file in FILES:
        count = len(read_file(file))
        for first in range(0, count, RECORDS_PER_TEST):
            yield file, range(first, min(count, first + RECORDS_PER_TEST))


@pytest.mark.generated
@pytest.mark.parametrize(
    ("file", "numbers"),
    list(parts()),
    ids=lambda one: one.stem if isinstance(one, Path) else f"{one.start}",
)
def test_answers(file: Path, numbers: range, spark: SparkSession) -> None:
    whole = read_file(file)
    bench = Bench(whole)
    db = database(spark, bench)
    records = [whole[number] for number in numbers]
    refused = [one for one in records if not isinstance(one, Query)]
    problems = [problem for one in some_of(refused, ONE_OF) if (problem := refusal(db, one))]
    frames = {}
    for query in some_of([one for one in records if isinstance(one, Query)], ONE_OF):
        try:
            frames[query] = db.sql(query.statement, buckets=1)
        except Exception as error:
            problems.append(f"{query.place}: {type(error).__name__}: {error}")
    for query, answer in answers(frames).items():
        problems += compare(bench, query, answer)
    assert not problems, "\n\n".join(problems)


def database(spark: SparkSession, bench: Bench) -> nm.Database:
    """The streams, tables and functions of a file on Spark."""
    db = nm.connect(spark)
    for record, rows in bench.relations:
        frame = spark.createDataFrame(rows, schema=record.columns).coalesce(1)
        add_relation(db, record, frame)
    for one in bench.functions:
        db.create_function(one.name, FUNCTIONS[one.name], one.returns)
    return db


def add_relation(db: nm.Database, record: Relation, frame: DataFrame) -> None:
    if record.time is None:
        db.create_table(record.name, frame)
    else:
        db.create_stream(record.name, frame, time=record.time)


def refusal(db: nm.Database, record: Record) -> str | None:
    """What is wrong with the plan or the error of a record."""
    match record:
        case Plan(place, statement, lines):
            plan = [line.strip() for line in db.explain(statement, buckets=1).splitlines()]
            missing = [line for line in lines if line.strip() not in plan]
            return f"{place}: the plan lacks {missing}:\n" + "\n".join(plan) if missing else None
        case Failure(place, statement, text):
            error_text = error_of(db, statement)
            if error_text != text:
                return f"{place}: expected the error\n{text}\n  but got\n{error_text}"
    return None


def error_of(db: nm.Database, statement: str) -> str:
    try:
        db.sql(statement, buckets=1)
    except NilometerError as error:
        return str(error).removesuffix(ALL_AT_ONCE)
    except Exception as error:  # whatever it is, a user must not meet it
        return f"{type(error).__name__}: {error}"
    return "no error"


def answers(frames: Mapping[Query, DataFrame]) -> dict[Query, BenchAnswer]:
    """What Nilometer answers to each query, by one Spark job for many of them."""
    answers: dict[Query, BenchAnswer] = {}
    waiting = iter(frames.items())
    while some := dict(islice(waiting, QUERIES_PER_JOB)):
        try:
            answers |= read_answers(some, as_one(some))
        except Exception as error:
            raise AssertionError(_first_to_fail(some)) from error
    return answers


def as_one(frames: Mapping[Query, DataFrame]) -> DataFrame:
    """The answers to all queries as one DataFrame: each has a column of its own."""
    return reduce(
        _union, (_as_column(number, frame) for number, frame in enumerate(frames.values()))
    )


def read_answers(frames: Mapping[Query, DataFrame], joined: DataFrame) -> dict[Query, BenchAnswer]:
    """The answers that `as_one` has put together."""
    rows = joined.toArrow()
    answers = {}
    for number, (query, frame) in enumerate(frames.items()):
        own = rows.column(f"q{number}").drop_null().to_pylist()
        answers[query] = BenchAnswer(frame.columns, [tuple(row[0].values()) for row in own])
    return answers


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


@pytest.mark.generated
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_streamed_answers(file: Path, spark: SparkSession, tmp_path: Path) -> None:
    records = read_file(file)
    queries = some_of([r for r in records if isinstance(r, Query) and r.streamed], ONE_OF)
    if not queries:
        pytest.skip("no query of this file is streamed")
    bench = Bench(records)
    db = database(spark, bench)
    for record, rows in bench.relations:
        if record.time is not None:
            db.drop(record.name)
            stream = FileStream(tmp_path / record.name, record.columns)
            for part in halves(rows, record.time):
                stream.add(part)
            add_relation(db, record, stream.read(spark))
    frames = {query: db.sql(query.statement, buckets=1) for query in queries}
    run_to_end(as_one(frames), tmp_path)
    written = spark.read.parquet(str(tmp_path / "out"))
    problems = []
    for query, answer in read_answers(frames, written).items():
        problems += compare(bench, query, answer, streamed=True)
    assert not problems, "\n\n".join(problems)


def halves(rows: pa.Table, time: str) -> Iterable[pa.RecordBatch]:
    """Two micro-batches, in the order of time."""
    ordered = rows.sort_by(time)
    middle = (len(rows) + 1) // 2
    for part in (ordered.slice(0, middle), ordered.slice(middle)):
        yield from part.combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], rows.schema)
        ]
