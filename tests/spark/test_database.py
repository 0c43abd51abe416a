"""`nm.connect` on Spark: what a batch of generated statements would not find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

import nilometer as nm
from nilometer.errors import NilometerError
from tests.spark.harness import FileStream, run_to_end

ROWS = """VALUES (0, 0, 0, "it's", 1.5D, named_struct('x', 1)), (1, 1, 10, 'b', NULL, NULL),
(2, 2, 20, 'c', double('NaN'), named_struct('x', 2)), (3, NULL, 30, NULL, -0.0D, NULL)
AS t(t, a, b, s, d, p)"""


@pytest.fixture(scope="module")
def db(spark: SparkSession) -> nm.Database:
    made = nm.connect(spark)
    rows = spark.sql(f"SELECT timestamp_seconds(t) AS ts, * EXCEPT (t) FROM {ROWS}")
    made.create_stream("A", rows, time="ts", rate=10, distinct={"a": 4})
    made.create_stream("B", rows.selectExpr("ts", "a", "d * 2 AS y"), time="ts")
    made.create_table("T", spark.createDataFrame([(1, "one"), (2, "two")], "id INT, label STRING"))
    made.create_stream("Live", spark.readStream.format("rate").load().select("value"))
    made.create_function("kind_of", repr, "string", by_row=True)
    made.create_function("plus", lambda a, b: a + b, "double")
    return made


def answers(db: nm.Database, statement: str) -> list[Any]:
    """The first column of an answer, sorted."""
    return sorted((row[0] for row in db.sql(statement).collect()), key=repr)


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT S.x * 2 FROM (SELECT a + b AS x FROM A) S WHERE 100 - S.x > 80", [0, 22]),
        ("SELECT a FROM (SELECT a, a = 1 OR a = 2 AS p FROM A) S WHERE NOT S.p", [0]),
        ("SELECT a FROM A WHERE s = 'it''s'", [0]),
        ('SELECT a FROM A WHERE s = "it\'s"', [0]),
        ("SELECT named_struct('a', 'hello').a FROM A WHERE b = 0", ["hello"]),
        ("SELECT A.b FROM A, B WINDOW = 9 S WHERE A.b <> 0 AND 20 div A.b = B.a", [10, 20, 30]),
        ("SELECT A.a FROM A, B WINDOW = 9 S WHERE A.b <> 0 AND log(10 / A.b) > B.a + 0.5", []),
        ("SELECT A.a FROM A, B WINDOW = 0 S WHERE plus(A.d, B.y) > 4", [0]),
        ("SELECT label FROM A, T WHERE A.a = T.id AND upper(label) LIKE 'O%'", ["one"]),
        ("SELECT 7 FROM A WHERE ts > '1970-01-01 00:00:02'", [7]),
        ("SELECT p.x FROM A WHERE A.p.x > 1", [2]),
        (
            "SELECT A.a FROM A, B WINDOW = 0 S "
            "WHERE CASE WHEN upper(A.s) = 'B' THEN 7 ELSE B.a END > 1",
            [1, 2],
        ),
        (
            "SELECT A.a FROM A, B WINDOW = 0 S WHERE "
            "exists(array(A.p), e -> e.x > B.a) AND size(filter(array(A.b), x -> x > B.a)) = 0",
            [0],
        ),
        ("SELECT A.a FROM A JOIN B USING (a) WINDOW = 1 S WHERE B.y IS NULL", [1]),
    ],
)
def test_answers(db: nm.Database, statement: str, expected: list[Any]) -> None:
    assert answers(db, statement) == expected


def test_functions_see_the_same_values_in_a_join_and_in_spark(db: nm.Database) -> None:
    for column in ("a", "d", "s", "ts", "p"):
        by_spark = answers(db, f"SELECT kind_of({column}) FROM A")
        in_join = [
            value
            for value in by_spark
            for _ in answers(
                db,
                f"SELECT A.a FROM A, B WINDOW = 0 S WHERE kind_of(A.{column}) = "
                f"CASE WHEN B.ts IS NOT NULL THEN {quoted(value)} END",
            )
        ]
        assert sorted(set(in_join)) == sorted(set(by_spark)), column


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_the_time_of_arrival_can_be_used_like_a_column(db: nm.Database) -> None:
    frame = db.sql("SELECT hour(_time) AS h, _time FROM Live WHERE _time > TIMESTAMP'2026-01-01'")
    assert frame.isStreaming
    assert frame.columns == ["h", "_time"]


def test_a_static_table_is_kept_with_the_query(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(tmp_path / "in", "ts TIMESTAMP, a INT")

    def labels(table: list[tuple[int, str]]) -> list[str]:
        db = nm.connect(spark)
        db.create_stream("A", stream.read(spark), time="ts")
        db.create_table("T", spark.createDataFrame(table, "id INT, label STRING"))
        run_to_end(db.sql("SELECT label FROM A, T WHERE A.a = T.id"), tmp_path)
        return sorted(r.label for r in spark.read.parquet(str(tmp_path / "out")).collect())

    def add(second: int) -> None:
        times = pa.array([second * 1_000_000], pa.timestamp("us", "UTC"))
        stream.add(pa.RecordBatch.from_arrays([times, pa.array([1], pa.int32())], ["ts", "a"]))

    add(0)
    assert labels([(1, "old")]) == ["old"]
    add(1)
    assert labels([(1, "new")]) == ["old", "old"]


def test_explain_is_a_statement_too(db: nm.Database) -> None:
    statement = "SELECT A.a FROM A, B WINDOW = 1 S"
    assert db.sql(f"EXPLAIN {statement}").collect() == [Row(plan=db.explain(statement))]
    assert db.sql(f"EXPLAIN (FORMAT DOT) {statement}").first()[0].startswith("digraph")


REFUSALS: list[tuple[Callable[[nm.Database, Any], Any], str]] = [
    (
        lambda db, df: db.create_stream("a", df, time="ts"),
        'stream or table a already exists\n  hint: first db.drop("a")',
    ),
    (
        lambda db, df: db.create_stream("C", df),
        "C is static and has no time column\n"
        '  hint: name its time column, or make it a table: db.create_table("C", df)',
    ),
    (
        lambda db, df: db.create_stream("C", df, time="tss"),
        "stream C has no column tss\n  detail: it has ts, a\n  hint: did you mean ts?",
    ),
    (
        lambda db, df: db.create_stream("C", df, time="ts", rate=0),
        "the rate of C must be positive\n  detail: got 0",
    ),
    (
        lambda db, df: db.create_stream("C", df, time="ts", distinct={"b": 3}),
        "stream C has no column b\n  detail: it has ts, a",
    ),
    (
        lambda db, df: db.create_stream("C", df.selectExpr("*", "a AS _time"), time="ts"),
        "a column of C is named _time, which results already have\n"
        "  hint: rename it, or make it the time of the stream",
    ),
    (lambda db, df: db.create_stream("C", "df"), "C is not a DataFrame\n  detail: got str"),
    (lambda db, df: db.create_table("", df), "a stream or table needs a name\n  detail: got ''"),
    (
        lambda db, df: db.create_table("C", df.sparkSession.readStream.format("rate").load()),
        'the table C cannot be streaming\n  hint: use db.create_stream("C", df, time="ts")',
    ),
    (
        lambda db, df: db.create_function("contains", lambda a: a),
        "function contains already exists\n  hint: choose another name",
    ),
    (
        lambda db, df: db.create_function("f g", lambda a: a),
        "a function name may only contain letters, digits and underscores\n  detail: got 'f g'",
    ),
    (
        lambda db, df: db.create_function("f", 3),
        "the function f is not callable\n  detail: got int",
    ),
    (
        lambda db, df: db.create_function("f", lambda a: a, "nothing"),
        "the function f cannot return 'nothing'\n"
        '  hint: name a type of Spark, such as returns="boolean" or returns="double"',
    ),
    (lambda db, df: db.drop("Aa"), "there is no stream or table Aa\n  hint: did you mean A?"),
    (
        lambda db, df: db.sql("SELECT a FROM A", buckets=0),
        "there must be at least one bucket, got 0",
    ),
    (
        lambda db, df: db.explain("SELECT a FROM A", form="png"),
        "unknown format png\n  hint: choose one of text, dot",
    ),
]


@pytest.mark.parametrize(("act", "text"), REFUSALS)
def test_refusals(act: Callable[..., Any], text: str, db: nm.Database, spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "ts TIMESTAMP, a INT")
    with pytest.raises(NilometerError) as caught:
        act(db, frame)
    assert str(caught.value) == text


def test_what_is_dropped_can_be_made_again(spark: SparkSession) -> None:
    db = nm.connect(spark)
    db.create_table("T", spark.range(1))
    db.drop("t")
    db.create_table("T", spark.range(2))
    assert list(db.relations) == ["T"]
    assert db.sql("SELECT id FROM T").count() == 2


def test_no_traceback_is_printed_where_java_ends_first(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    server = spark.sparkContext._accumulatorServer
    for error in (EOFError(), ValueError("something else")):
        try:
            raise error
        except type(error):
            server.handle_error(None, ("127.0.0.1", 1))
    printed = capsys.readouterr().err
    assert "EOFError" not in printed
    assert "something else" in printed
