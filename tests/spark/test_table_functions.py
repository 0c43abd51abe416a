"""Table functions on Spark: as a batch, streamed across a restart, and in named queries."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import nilometer as nm
from nilometer.local.database import LocalDatabase
from tests.patience import wait_for
from tests.spark.harness import FileStream, run_to_end

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
DDL = "ts TIMESTAMP, box BIGINT, counts ARRAY<BIGINT>"
KNOWN = pa.table(
    {
        "pattern": pa.array([[9.0, 0.0, 0.0, 1.0], [0.0, 9.0, 1.0, 0.0], [0.0, 0.0, 9.0, 1.0]]),
        "class": pa.array(["first", "second", "third"]),
    }
)
VERDICTS = """
    SELECT box, rows, class, confidence
    FROM   CLASSIFY(ACCUMULATE(S [RANGE 4 SECONDS], by => box, value => counts),
                    pattern => total, knowledge => (SELECT pattern, class FROM K),
                    method => 'neighbours', neighbours => 1, scale => 'unit')
"""
SEQUENCES = """
    SELECT * FROM SEQUENCES(S [RANGE 20 SECONDS], stream => box % 2, value => box % 3,
                            every => 5 SECONDS)
"""


def bursts(first: int, count: int) -> pa.RecordBatch:
    """A burst a second of boxes that come one after the other."""
    numbers = range(first, first + count)
    return pa.record_batch(
        {
            "ts": pa.array([START + n * SECOND for n in numbers], pa.timestamp("us", tz="UTC")),
            "box": pa.array([n // 3 for n in numbers], pa.int64()),
            "counts": pa.array(
                [
                    [9 if place == n // 3 % 3 else n * place % 2 for place in range(4)]
                    for n in numbers
                ]
            ),
        }
    )


def as_rows(frame: DataFrame) -> list[str]:
    times = frame.withColumn("_time", frame["_time"].cast("double"))
    return sorted(repr(tuple(row)) for row in times.collect())


def expected(statement: str, rows: pa.RecordBatch, before: int | None = None) -> list[str]:
    """The same by the local runner over all rows."""
    db = LocalDatabase(buckets=2)
    db.create_stream("S", pa.Table.from_batches([rows]), time="ts")
    db.create_table("K", KNOWN)
    table = db.sql(statement)
    place = table.schema.get_field_index("_time")
    times = pa.array([t / SECOND for t in table["_time"].cast(pa.int64()).to_pylist()])
    table = table.set_column(place, "_time", times)
    tuples = [tuple(row.values()) for row in table.to_pylist()]
    return sorted(repr(row) for row in tuples if before is None or row[place] < before / SECOND)


def known(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(KNOWN.to_pandas(), "pattern ARRAY<DOUBLE>, class STRING")


@pytest.mark.parametrize("statement", [VERDICTS, SEQUENCES])
def test_over_static_frames_they_are_a_batch(spark: SparkSession, statement: str) -> None:
    db = nm.connect(spark)
    rows = bursts(0, 60)
    db.create_stream("S", spark.createDataFrame(rows.to_pandas(), DDL), time="ts")
    db.create_table("K", known(spark))
    answers = as_rows(db.sql(statement))
    assert answers == expected(statement, rows)
    assert answers


@pytest.mark.parametrize("statement", [VERDICTS, SEQUENCES])
def test_streamed_across_a_restart_they_are_the_batch(
    spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    stream = FileStream(tmp_path / "S", DDL)
    for first, count in ((0, 17), (17, 20)):
        stream.add(bursts(first, count))
    for more in ((37, 23), None):
        db = nm.connect(spark)
        db.create_stream("S", stream.read(spark), time="ts")
        db.create_table("K", known(spark))
        run_to_end(db.sql(statement), tmp_path)
        if more is not None:
            stream.add(bursts(*more))
    written = spark.read.parquet(str(tmp_path / "out"))
    rows = as_rows(written)
    assert rows == expected(statement, bursts(0, 60), before=START + 59 * SECOND)
    assert rows


def test_results_of_named_queries_are_joined_by_their_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = bursts(0, 60)
    lines = [json.dumps({**row, "ts": f"{row['ts']:%F %T}"}) for row in rows.to_pylist()]
    (tmp_path / "bursts.jsonl").write_text("\n".join(lines) + "\n")
    with nm.connect(spark, path=tmp_path / "db") as db:
        db.sql(
            "CREATE STREAM S (ts TIMESTAMP, box BIGINT, counts ARRAY<BIGINT>, TIME ts) FROM file "
            f"WITH (address = '{tmp_path}/bursts.jsonl', speed = 'max')"
        )
        db.sql("CREATE TABLE K (pattern ARRAY<DOUBLE>, class STRING)")
        for row in KNOWN.to_pylist():
            values = ", ".join(map(str, row["pattern"]))
            db.sql(f"INSERT INTO K VALUES (ARRAY({values}), '{row['class']}')")
        db.sql(f"CREATE QUERY verdicts AS {VERDICTS}")
        db.sql(
            "CREATE QUERY agreed AS SELECT A.box, A.class FROM verdicts A, verdicts B "
            "WINDOW(A, B) = 0 SECONDS WHERE A.box = B.box AND A.class = B.class FROM START"
        )
        wanted = expected(VERDICTS, rows)  # the file has ended: all is known
        wait_for(lambda: db.history("agreed").count() >= len(wanted), every=0.5)
        assert [row["emits"] for row in db.sql("SHOW QUERIES").collect()] == ["append"] * 2
        assert as_rows(db.history("verdicts")) == wanted
        agreed = {row["box"]: row["class"] for row in db.history("agreed").collect()}
    names = {0: "first", 1: "second", 2: "third"}
    assert agreed == {box: names[box % 3] for box in range(20)}
