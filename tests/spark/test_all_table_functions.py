"""All table functions streamed on Spark across a restart: few statements that have them all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import nilometer as nm
from nilometer.local.database import LocalDatabase
from nilometer.mining.registry import MODULES, FunctionKind, kind_of
from nilometer.mining.table_function import MiningError
from nilometer.spark.failures import explained_failures
from tests.spark.harness import FileStream, run_to_end
from tests.spark.test_table_functions import SECOND, START, as_rows

DDL = "ts TIMESTAMP, sensor BIGINT, value DOUBLE, counts ARRAY<BIGINT>"
KNOWN = pa.table(
    {
        "place": pa.array(range(4)),
        "value": pa.array([0.0, 3.0, 1.0, 0.0]),
        "class": pa.array(["high", "low", "low", "high"]),
        "counts": pa.array(
            [[40.0 if one // 4 == place else 1.0 for one in range(16)] for place in range(4)]
        ),
    }
)
APPENDED = """
    SELECT sensor, rows AS number, CAST(rows AS DOUBLE) AS figure
    FROM   ACCUMULATE(S [RANGE 4 SECONDS], by => sensor, value => counts)
    UNION ALL
    SELECT sensor, 1, confidence
    FROM   CLASSIFY(S, pattern => counts, knowledge => (SELECT counts, class FROM K),
                    neighbours => 2)
    UNION ALL
    SELECT sensor, 3, distance
    FROM   MATCHES(S, by => sensor, value => value, shape => (SELECT place, value FROM K))
    UNION ALL
    SELECT sensor, 2, significance
    FROM   LINES(S, counts => counts, templates => (SELECT place, counts FROM K))
    UNION ALL
    SELECT sensor, 4, energy FROM PEAKS(S, counts => counts, fwhm => 2.0)
"""
ANSWERS = """
    SELECT sensor, size AS number, share AS figure
    FROM   CLUSTERS(S [RANGE 20 SECONDS], by => sensor, item => counts, clusters => 3,
                    every => 5 SECONDS)
    UNION ALL
    SELECT sensor, number, distance
    FROM   MOTIFS(S [RANGE 30 SECONDS], by => sensor, value => value, length => 4,
                  every => 10 SECONDS)
    UNION ALL
    SELECT sensor, support, confidence
    FROM   PATTERNS(S, by => sensor, value => value, period => 5, every => 10 SECONDS)
    UNION ALL
    SELECT sensor, period, confidence
    FROM   PERIODS(S, by => sensor, value => value, longest => 12, every => 10 SECONDS)
    UNION ALL
    SELECT streams, support, CAST(occurrences AS DOUBLE)
    FROM   SEQUENCES(S [RANGE 20 SECONDS], stream => sensor, value => value, every => 5 SECONDS)
"""


def readings(first: int, count: int) -> pa.RecordBatch:
    """Two sensors in turn, twice a second: a shape that comes again, and a line that moves."""
    numbers = range(first, first + count)
    return pa.record_batch(
        {
            "ts": pa.array(
                [START + n * SECOND // 2 for n in numbers], pa.timestamp("us", tz="UTC")
            ),
            "sensor": pa.array([n % 2 for n in numbers], pa.int64()),
            "value": pa.array([(0.0, 3.0, 1.0, 0.0, 7.0)[n // 2 % 5] for n in numbers]),
            "counts": pa.array(
                [
                    [60 if place == n // 2 % 4 * 4 + 2 else (n + place) % 3 for place in range(16)]
                    for n in numbers
                ]
            ),
        }
    )


def known(spark: SparkSession) -> DataFrame:
    kinds = "place BIGINT, value DOUBLE, class STRING, counts ARRAY<DOUBLE>"
    return spark.createDataFrame(KNOWN.to_pandas(), kinds)


def expected(statement: str, rows: pa.RecordBatch) -> list[str]:
    """The same by the local runner over all rows, before the last of them."""
    db = LocalDatabase(buckets=2)
    db.create_stream("S", pa.Table.from_batches([rows]), time="ts")
    db.create_table("K", KNOWN)
    texts = []
    for row in db.sql(statement).to_pylist():
        time = row["_time"].timestamp()
        if time < rows["ts"][-1].as_py().timestamp():
            texts.append(repr(tuple({**row, "_time": time}.values())))
    return sorted(texts)


def test_the_statements_have_all_functions() -> None:
    for statement, answers in ((APPENDED, False), (ANSWERS, True)):
        there = {name for name in MODULES if f"{name}(S" in statement}
        assert there == {
            name for name in MODULES if (kind_of(name) is FunctionKind.ANSWERS) is answers
        }


@pytest.mark.parametrize("statement", [APPENDED, ANSWERS], ids=["appended", "answers"])
def test_streamed_across_a_restart_all_are_the_batch(
    spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    stream = FileStream(tmp_path / "S", DDL)
    for first, count in ((0, 33), (33, 40)):
        stream.add(readings(first, count))
    for more in ((73, 27), None):
        db = nm.connect(spark)
        db.create_stream("S", stream.read(spark), time="ts")
        db.create_table("K", known(spark))
        run_to_end(db.sql(statement), tmp_path)
        if more is not None:
            stream.add(readings(*more))
    rows = as_rows(spark.read.parquet(str(tmp_path / "out")))
    assert rows == expected(statement, readings(0, 100))
    assert rows


@pytest.mark.soak
def test_what_is_wrong_with_knowledge_is_described_in_words(spark: SparkSession) -> None:
    db = nm.connect(spark)
    db.create_stream("S", spark.createDataFrame(readings(0, 4).to_pandas(), DDL), time="ts")
    db.create_table("K", known(spark))
    alike = "SELECT * FROM CLASSIFY(S, pattern => counts, knowledge => (SELECT counts, 1 FROM K))"
    with pytest.raises(MiningError) as caught, explained_failures():
        db.sql(alike).collect()
    assert caught.value.message == "the knowledge base has one class only, '1'"
    assert "at least two classes" in str(caught.value.hint)
