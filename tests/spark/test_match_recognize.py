"""MATCH_RECOGNIZE on Spark: what a naive matcher finds, as a batch, and streamed with restarts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import nilometer as nm
from tests.match_cases import SECOND, MatchCase, generate_rows
from tests.naive_match import NaiveMatcher, Row
from tests.naive_match import Path as Mapped
from tests.spark.harness import FileStream, run_to_end

DDL = "ts TIMESTAMP, k INT, v DOUBLE, s STRING"
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int32()),
        ("v", pa.float64()),
        ("s", pa.string()),
    ]
)


def last_of(name: str, path: Mapped, rows: Any) -> Any:
    places = [place for variable, place in path if variable == name]
    return rows[places[-1]]["v"] if places else None


def is_larger(left: Any, right: Any) -> bool:
    return left is not None and right is not None and left > right


RISE = MatchCase(
    # Of single rows only Spark has `upper`: it is computed below, and not kept for long.
    "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
    "MEASURES A.v AS a, B.v AS b, COUNT(*) AS n, MATCH_NUMBER() AS number "
    "PATTERN (A X*? B) WITHIN INTERVAL '3' SECONDS "
    "DEFINE A AS upper(s) = 'A', B AS B.v > A.v) AS m",
    NaiveMatcher(
        ("all", (("var", "A"), ("times", ("var", "X"), 0, None, False), ("var", "B"))),
        {
            "A": lambda path, rows: rows[path[-1][1]]["s"] == "a",
            "X": lambda path, rows: True,
            "B": lambda path, rows: is_larger(rows[path[-1][1]]["v"], last_of("A", path, rows)),
        },
        3 * SECOND,
        "past",
        free=False,
    ),
    [
        lambda now, path, rows, number: last_of("A", path, rows),
        lambda now, path, rows, number: last_of("B", path, rows),
        lambda now, path, rows, number: len(path),
        lambda now, path, rows, number: number,
    ],
    all_rows=False,
    partitioned=True,
)
ABSENCE = MatchCase(
    "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES CLASSIFIER() AS c "
    "ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B NOT C) WITHIN 2 SECONDS "
    "DEFINE A AS v > PREV(v), B AS s = 'b', C AS v > 5) AS m",
    NaiveMatcher(
        ("all", (("var", "A"), ("var", "B"), ("not", "C"))),
        {
            "A": lambda path, rows: (
                path[-1][1] > 0 and is_larger(rows[path[-1][1]]["v"], rows[path[-1][1] - 1]["v"])
            ),
            "B": lambda path, rows: rows[path[-1][1]]["s"] == "b",
            "C": lambda path, rows: is_larger(rows[path[-1][1]]["v"], 5),
        },
        2 * SECOND,
        "next",
        free=True,
    ),
    [lambda now, path, rows, number: now[-1][0]],
    all_rows=True,
    partitioned=True,
)


def batch(rows: list[Row]) -> pa.RecordBatch:
    columns = [[row[name] for row in rows] for name in ("t", "k", "v", "s")]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def collected(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    """The results, times as microseconds."""
    times = [name for name, kind in frame.dtypes if kind == "timestamp"]
    shown = [f"unix_micros({n}) AS {n}" if n in times else n for n in frame.columns]
    return Counter(tuple(row) for row in frame.selectExpr(*shown).collect())


def check(case: MatchCase, spark: SparkSession, folder: Path) -> None:
    rows = generate_rows(Random(5), 240, 4)
    frame = spark.createDataFrame(pa.Table.from_batches([batch(rows)]).to_pandas(), DDL)
    db = nm.connect(spark)
    db.create_stream("S", frame, time="ts")
    right = case.answer(rows, ended=True)
    assert len(right) > 10
    assert collected(db.sql(case.sql)) == right
    stream = FileStream(folder / "S", DDL)
    db = nm.connect(spark)
    db.create_stream("S", stream.read(spark), time="ts", lateness="2s")
    for first in (0, 90):
        stream.add(batch(rows[first : first + 90]))
        run_to_end(db.sql(case.sql), folder)
    last = {"t": 10_000 * SECOND, "k": 9, "v": None, "s": None}
    stream.add(batch([*rows[180:], last]))
    run_to_end(db.sql(case.sql), folder)
    matches = collected(spark.read.parquet(str(folder / "out")))
    assert matches == case.answer(rows, ended=False)


def test_a_rise_within_three_seconds(spark: SparkSession, tmp_path: Path) -> None:
    check(RISE, spark, tmp_path)


def test_what_does_not_come_is_said_when_its_time_is_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    check(ABSENCE, spark, tmp_path)
