"""Large questions about the past, which Spark's tasks answer in parts: the same as in one process,
within the same limits."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from uuid import uuid4

import pyarrow as pa
import pytest
import sqlglot
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.database.past import Past
from nilometer.errors import NilometerError, SqlError, TimeLimitError, TooLargeError
from nilometer.log.layout import TIME
from nilometer.log.options import LogOptions
from nilometer.log.writer import LogWriter
from tests.examples import share_of
from tests.past_questions import large_question, require_alike, some_rows
from tests.patience import wait_for

ROWS = 600
SLOW = "SELECT COUNT(*) AS n FROM A x, Many a, Many b, Many c WHERE x.v + a.k * b.k < c.k"
"""A question that takes hours."""


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nm.Database]:
    folder = tmp_path_factory.mktemp("past") / "plant"
    logs = {}
    with nm.connect(spark, path=folder) as opened:
        for name in ("A", "B"):
            opened.execute(
                f"CREATE STREAM {name} (k BIGINT, v DOUBLE, s STRING, ts TIMESTAMP, TIME ts, "
                "HISTORY FOREVER) FROM http"
            )
            home = opened._stored.parts.home
            logs[home.log_of(name)] = home.catalog.require_declaration(name).layout
        opened.execute("CREATE TABLE T (k BIGINT, label STRING)")
        opened.execute("INSERT INTO T VALUES (0, 'zero'), (1, 'one'), (2, NULL)")
        opened.execute("CREATE TABLE Many (k BIGINT)")
        opened.execute(f"INSERT INTO Many VALUES {', '.join(f'({n})' for n in range(1000))}")
    rows = [{**one, "ts": one.pop(TIME)} for one in some_rows(random.Random(3), ROWS)]
    for location, layout in logs.items():
        options = LogOptions(history=1 << 60, segment=1 << 12)
        with closing(LogWriter.open(location, layout, options)) as writer:
            for n in range(0, ROWS, 50):
                some = rows[n : n + 50]
                writer.append(pa.RecordBatch.from_pylist(some, schema=layout.stored))
    with nm.connect(spark, path=folder, in_process_bytes=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def alone(db: nm.Database) -> Iterator[Past]:
    """The same without Spark."""
    made = Past(db._stored.parts.home)
    yield made
    made.close()


def tree(sql: str) -> sqlglot.exp.Query:
    query = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(query, sqlglot.exp.Query)
    return query


def tasks_of(db: nm.Database, ask: Callable[[], object]) -> tuple[int, int]:
    """How many tasks of Spark's have been done meanwhile, and how many have failed."""
    context, group = db.spark.sparkContext, f"asked-{uuid4()}"
    context.setJobGroup(group, "")
    try:
        ask()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(one) for one in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(one) for job in jobs if job for one in job.stageIds]
    run = [one for one in stages if one]
    return sum(one.numCompletedTasks for one in run), sum(one.numFailedTasks for one in run)


@pytest.mark.generated
def test_spark_answers_as_duckdb_does(db: nm.Database, alone: Past) -> None:
    by_spark = 0
    for seed in range(share_of(30)):
        sql = large_question(random.Random(seed)).replace(TIME, "ts")
        answer = db.past.select_tree(tree(sql), sql)
        require_alike(answer, alone.select_tree(tree(sql), sql), sql)
        by_spark += "in parts by Spark" in db.past.explain(tree(sql).sql("spark"))
    assert by_spark


def test_several_tasks_answer_a_question(db: nm.Database, alone: Past) -> None:
    sql = "SELECT T.label, AVG(v) AS m, COUNT(*) AS n FROM A JOIN T USING (k) GROUP BY T.label"
    answers: list[pa.Table] = []
    done, _ = tasks_of(db, lambda: answers.append(db.select(sql)))
    assert done > 1
    require_alike(answers[0], alone.select(sql), sql)
    assert tasks_of(db, lambda: db.select("SELECT median(v) AS m FROM A")) == (0, 0)


def test_explain_says_who_answers_and_why(db: nm.Database, alone: Past) -> None:
    def without_sizes(text: str) -> str:
        return re.sub(r"about [\d.]+ kB", "about … kB", text)

    assert without_sizes(db.explain("SELECT k, COUNT(*) AS n FROM A GROUP BY k")) == (
        "as a one-time query, it is answered from stored data, in parts by Spark:\n"
        "  about … kB are read, more than 1 bytes\n"
        "  A: k; 600 rows are stored"
    )
    assert without_sizes(db.explain("SELECT median(v) AS m FROM A")) == (
        "as a one-time query, it is answered from stored data, in this process:\n"
        "  about … kB are read, more than 1 bytes; "
        "but Spark cannot answer it in parts: MEDIAN needs all rows of a group together\n"
        "  A: v; 600 rows are stored"
    )
    late = "SELECT COUNT(*) AS n FROM A WHERE ts > '2026-01-01 00:09:00'"
    assert without_sizes(alone.explain(late)) == (
        "as a one-time query, it is answered from stored data, in this process:\n"
        "  about … kB are read; Spark answers queries that read more than 1 GB\n"
        "  A: ts, from 2026-01-01 00:09:00.000000 to now; 600 rows are stored"
    )


def test_only_a_range_of_time_is_read(db: nm.Database, alone: Past) -> None:
    sql = "SELECT COUNT(*) AS n, MIN(ts) AS a FROM A WHERE ts >= '2026-01-01 00:09:00'"
    require_alike(db.select(sql), alone.select(sql), sql)
    later = "SELECT COUNT(*) AS n, SUM(k) AS s FROM A WHERE ts > '2027-01-01'"
    assert db.select(later).to_pylist() == [{"n": 0, "s": None}]


def test_limits_are_those_of_other_statements(db: nm.Database) -> None:
    assert len(db.past.select("SELECT k FROM A", max_rows=10)) == 10
    with pytest.raises(TooLargeError):
        db.past.select_tree(tree("SELECT * FROM A"), "", max_bytes=100)
    with pytest.raises(TimeLimitError, match="took longer than 1 s"):
        db.past.select(SLOW, seconds=1)


def test_it_can_be_cancelled(db: nm.Database) -> None:
    ends: list[Callable[[], None]] = []
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            db.past.select_tree(tree(SLOW), "", cancelling=ends.append)
        except NilometerError as error:
            raised.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for(lambda: db.spark.sparkContext.statusTracker().getActiveStageIds())
    assert len(ends) == 1
    ends[0]()
    asking.join(120)
    assert [str(one) for one in raised] == ["the query was cancelled"]
    wait_for(lambda: not db.spark.sparkContext.statusTracker().getActiveStageIds())


def test_what_fails_in_a_task_is_described_in_words(db: nm.Database) -> None:
    def ask() -> None:
        with pytest.raises(SqlError, match="(?i)could not convert"):
            db.past.select_tree(tree("SELECT SUM(CAST(s AS INT)) AS n FROM A"), "")

    done, failed = tasks_of(db, ask)
    assert done > 1
    assert failed == 0  # Spark would try again
    for hostile in (
        "SELECT COUNT(*) AS n FROM A, read_text('/etc/passwd')",
        "SELECT reflect('java.lang.System', 'exit', 1) AS n FROM A",
        "SELECT getenv('HOME') AS h, COUNT(*) AS n FROM A",
    ):
        with pytest.raises(NilometerError):
            db.select(hostile)
