"""The answer at one instant, and the current answer kept as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import nilometer as nm
from nilometer.spark import answer_table
from tests.spark.harness import FileStream

DDL = "k BIGINT, x DOUBLE, _time TIMESTAMP, _diff BIGINT"
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("x", pa.float64()),
        ("_time", pa.timestamp("us", "UTC")),
        ("_diff", pa.int64()),
    ]
)
NAN = float("nan")
EARLIEST = -8_520_336_000_000_000

Change = tuple[int | None, float | None, int, int]

CHANGES: list[Change] = [
    (1, 0.5, 0, 2),
    (None, None, 0, 1),
    (2, NAN, 1_000_000, 1),
    (1, 0.5, 1_500_000, -1),
    (2, NAN, 2_000_000, -1),
    (3, -0.0, 2_000_000, 3),
    (3, -0.0, 2_000_001, -2),
    (7, 1.0, EARLIEST, 1),
]


def to_batch(changes: Sequence[Change]) -> pa.RecordBatch:
    columns = list(zip(*changes, strict=True)) if changes else [[], [], [], []]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def frame(spark: SparkSession, changes: Sequence[Change] = CHANGES) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches([to_batch(changes)]))


def rows(answer: DataFrame) -> list[str]:
    """The rows as text, in which NaN is NaN."""
    return sorted(repr(tuple(row)) for row in answer.collect())


def folded(changes: Sequence[Change], at: int = 1 << 62) -> list[str]:
    """The answer, counted one change after the other."""
    counts: Counter[str] = Counter()
    for k, x, time, diff in changes:
        if time <= at:
            counts[repr((k, 0.0 if x == 0 else x))] += diff
    return sorted(counts.elements())


@pytest.mark.parametrize(
    ("at", "microseconds"),
    [
        ("1970-01-01 00:00:00", 0),
        ("1970-01-01 00:00:01.499999", 1_499_999),
        ("1970-01-01T00:00:01.5", 1_500_000),
        ("1970-01-01 01:00:02+01:00", 2_000_000),
        (datetime(1970, 1, 1, 0, 0, 2), 2_000_000),
        (datetime(1970, 1, 1, 0, 0, 2, 1, tzinfo=UTC), 2_000_001),
        (datetime(1970, 1, 1, 2, 0, 1, tzinfo=timezone(timedelta(hours=2))), 1_000_000),
        ("1969-12-31 23:59:59.999999", -1),
        ("1700-01-01 00:00:00", EARLIEST),
        ("1699-12-31 23:59:59.999999", EARLIEST - 1),
        (None, 1 << 62),
    ],
)
def test_the_answer_at_an_instant(
    spark: SparkSession, at: str | datetime | None, microseconds: int
) -> None:
    answer = nm.snapshot(frame(spark), at)
    assert answer.columns == ["k", "x"]
    assert rows(answer) == folded(CHANGES, microseconds)


def test_the_time_zone_of_the_session_does_not_matter(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        answer = nm.snapshot(frame(spark), "1970-01-01 00:00:01")
        assert rows(answer) == folded(CHANGES, 1_000_000)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_columns_of_one_name_and_of_odd_ones(spark: SparkSession) -> None:
    changes = frame(spark).toDF("a`b", "a`b", "_time", "_diff")
    answer = nm.snapshot(changes)
    assert answer.columns == ["a`b", "a`b"]
    assert rows(answer) == folded(CHANGES)


def test_a_changelog_without_its_beginning_is_noticed(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="retracts a row that it never emitted"):
        nm.snapshot(frame(spark, CHANGES[3:])).collect()


@pytest.mark.parametrize("at", ["yesterday", "", 5, "2026-13-01 00:00:00"])
def test_instants_that_cannot_be_read(spark: SparkSession, at: Any) -> None:
    with pytest.raises(nm.NilometerError, match="cannot read an instant") as caught:
        nm.snapshot(frame(spark), at)
    assert caught.value.detail == f"got {at!r}"


def test_what_is_no_changelog(spark: SparkSession) -> None:
    for wrong in (
        frame(spark).drop("_diff"),
        frame(spark).selectExpr("k", "CAST(_time AS STRING) AS _time", "_diff"),
        spark.range(1),
    ):
        with pytest.raises(nm.NilometerError, match="this is not a changelog"):
            nm.snapshot(wrong)
        with pytest.raises(nm.NilometerError, match="this is not a changelog"):
            nm.keep_answer(wrong, "nowhere")
    with pytest.raises(nm.NilometerError, match="does not change"):
        nm.keep_answer(frame(spark), "nowhere")
    with pytest.raises(nm.NilometerError, match="a folder of the file system"):
        nm.read_answer(spark, "s3://bucket/answer")


class Kept:
    """An answer that is kept in a folder, and the stream that changes it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.stream = FileStream(folder / "changes", DDL)
        self.path = folder / "an [odd] name"

    def start(self) -> StreamingQuery:
        changelog = self.stream.read(self.spark)
        return nm.keep_answer(changelog, self.path, trigger={"availableNow": True})

    def run(self, *batches: Sequence[Change]) -> None:
        for batch in batches:
            self.stream.add(to_batch(batch))
        self.start().awaitTermination()

    def read(self) -> tuple[list[str], int | None]:
        answer, time = nm.read_answer(self.spark, self.path)
        assert answer.columns == ["k", "x"]
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        return rows(answer), None if time is None else (time - epoch) // timedelta(microseconds=1)

    @property
    def versions(self) -> list[str]:
        return sorted(path.name for path in self.path.glob("version-*"))


def test_the_current_answer_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    kept = Kept(spark, tmp_path)
    with pytest.raises(nm.NilometerError, match="there is no answer in .* yet"):
        kept.read()
    kept.run([])
    assert kept.read() == ([], None)
    kept.run(CHANGES[:3])
    assert kept.read() == (folded(CHANGES[:3]), 1_000_000)
    before = kept.versions
    kept.run([])
    assert kept.read() == (folded(CHANGES[:3]), 1_000_000)
    assert kept.versions == before
    kept.run(CHANGES[3:5], CHANGES[5:])
    assert kept.read() == (folded(CHANGES), 2_000_001)


def test_an_answer_in_use_stays_and_old_ones_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(spark, tmp_path)
    kept.run(CHANGES[:3])
    opened, _ = nm.read_answer(spark, kept.path)
    kept.run(*([change] for change in CHANGES[3:]))
    assert rows(opened) == folded(CHANGES[:3])
    assert len(kept.versions) == 1 + len(CHANGES[3:])
    monkeypatch.setattr(answer_table, "KEPT_SECONDS", 0.0)
    kept.run([(9, 9.0, 3_000_000, 1)])
    assert len(kept.versions) == 1 + answer_table.KEPT_VERSIONS
    assert kept.read() == (folded([*CHANGES, (9, 9.0, 3_000_000, 1)]), 3_000_000)


@pytest.mark.parametrize("renamed", [False, True])
def test_a_batch_that_was_killed_does_not_count_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: bool
) -> None:
    """Killed when the new version was there, before or after the pointer named it."""
    kept = Kept(spark, tmp_path)
    kept.run(CHANGES[:3])
    write = answer_table._write_pointer

    def killed(*given: Any) -> None:
        if renamed:
            write(*given)
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(answer_table, "_write_pointer", killed)
        with pytest.raises(Exception, match="killed"):
            kept.run(CHANGES[3:])
    assert len(kept.versions) == 2
    assert kept.read()[0] == folded(CHANGES if renamed else CHANGES[:3])
    kept.run()
    assert kept.read() == (folded(CHANGES), 2_000_001)
    assert len(kept.versions) == 2


def test_another_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    kept = Kept(spark, tmp_path)
    kept.run(CHANGES[:3])
    changelog = kept.stream.read(spark)
    other = nm.keep_answer(changelog, kept.path, checkpoint=tmp_path / "other")
    with pytest.raises(Exception, match="does not belong to this checkpoint"):
        other.awaitTermination()
    assert kept.read()[0] == folded(CHANGES[:3])


def test_times_without_a_zone_are_those_of_the_session(spark: SparkSession) -> None:
    """As pandas and DuckDB write them."""
    rows = spark.createDataFrame(
        [("2026-01-01 00:00:00", 1), ("2026-01-01 00:00:30", 2), ("2026-01-01 00:01:10", 2)],
        "at STRING, k INT",
    ).selectExpr("to_timestamp_ntz(at) AS ts", "k")
    db = nm.connect(spark)
    db.create_stream("S", rows, time="ts")
    changes = db.sql("SELECT k, COUNT(*) AS n FROM S [RANGE 1 MINUTE] GROUP BY k")
    assert nm.snapshot(changes, at="2026-01-01 00:01:10").collect() == [(2, 2)]
