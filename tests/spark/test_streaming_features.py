"""Streaming joins: mixes with static inputs, arrival time, idle streams, metrics, nested rows."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import nilometer as nm
from nilometer.spark.metrics import progress_metrics
from tests.patience import wait_for
from tests.spark.harness import FileStream, results, run_to_end

DDL = "ts TIMESTAMP, k BIGINT, v BIGINT, id BIGINT"
START = datetime(2026, 1, 1, tzinfo=UTC)
ARROW = pa.schema(
    [("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64()), ("v", pa.int64()), ("id", pa.int64())]
)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def batch(*rows: tuple[float | None, int | None, int, int]) -> pa.RecordBatch:
    given = [(None if t is None else at(t), k, v, i) for t, k, v, i in rows]
    columns = list(zip(*given, strict=True)) if given else [[]] * 4
    arrays = [pa.array(c, f.type) for c, f in zip(columns, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def streams(folder: Path, **batches: list[pa.RecordBatch]) -> dict[str, FileStream]:
    made = {name: FileStream(folder / name, DDL) for name in batches}
    for name, parts in batches.items():
        for part in parts:
            made[name].add(part)
    return made


def to_frames(made: dict[str, FileStream], spark: SparkSession) -> dict[str, DataFrame]:
    return {name: stream.read(spark) for name, stream in made.items()}


def instant(second: float) -> int:
    return int(at(second).timestamp() * 1_000_000)


def test_metrics_of_late_rows_buffers_state_and_watermarks(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = streams(
        tmp_path,
        A=[batch((100, 1, 0, 0), (None, 1, 0, 1)), batch((97, 1, 0, 2), (98, 1, 0, 3))],
        B=[batch((100, None, 0, 0)), batch((101, 1, 0, 1))],
    )
    joined = nm.window_join(
        to_frames(made, spark), on="k", windows="10s", time="ts", lateness={"A": "2s"}
    )
    query = run_to_end(joined, tmp_path)
    assert results(spark, tmp_path, ["A.id", "B.id"]) == [(0, 1), (3, 1)]
    [metrics] = nm.metrics(query)
    a, b = metrics.streams["A"], metrics.streams["B"]
    assert (a.rows, a.late, a.without_time, a.buffered) == (2, 1, 1, 2)
    assert (b.rows, b.late, b.without_time, b.buffered) == (1, 0, 0, 1)
    assert (a.watermark, b.watermark) == (instant(98), instant(101))
    assert metrics.results == 2
    assert metrics.state_bytes > 0


def test_static_and_streaming_inputs_mix_and_survive_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    """S is static: it has ended, so it never holds up A, and a restart sees the same rows."""
    made = streams(tmp_path, A=[batch((10, 1, 0, 0))])
    static = spark.createDataFrame([(at(5), 1, 0, 0), (at(50), 1, 0, 1), (None, 1, 0, 2)], DDL)
    for _ in range(2):
        inputs = {"S": static, **to_frames(made, spark)}
        query = run_to_end(nm.window_join(inputs, on="k", windows="6s", time="ts"), tmp_path)
        made["A"].add(batch((45, 1, 0, 1), (70, 1, 0, 2)))
        static = static.union(spark.createDataFrame([(at(70), 1, 0, 9)], DDL))
    assert results(spark, tmp_path, ["S.id", "A.id"]) == [(0, 0), (1, 1)]
    [metrics] = nm.metrics(query)
    assert metrics.streams["S"].watermark is None
    assert metrics.streams["S"].without_time == 1
    assert metrics.streams["A"].buffered == 0, "no row of S is still to come"


def test_joins_without_a_key_with_both_kinds_of_predicates(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = streams(
        tmp_path,
        A=[batch(*[(i, i, i % 5, i) for i in range(20)]), batch(*[(20, 0, 3, 20)])],
        B=[batch(*[(i, i, i % 7, i) for i in range(10)]), batch(*[(i, i, 3, i) for i in (10, 18)])],
    )
    joined = nm.window_join(
        to_frames(made, spark),
        windows={("A", "B"): "4s"},
        time="ts",
        where=["A.v > 0", "abs(A.v - B.v) < 2", nm.predicate(lambda a, b: a != b, "A.id", "B.id")],
    )
    run_to_end(joined, tmp_path)
    a = [(i, i % 5, i) for i in range(20)] + [(20, 3, 20)]
    b = [(i, i % 7, i) for i in range(10)] + [(10, 3, 10), (18, 3, 18)]
    expected = sorted(
        (i, j)
        for t, v, i in a
        for u, w, j in b
        if abs(t - u) <= 4 and v > 0 and abs(v - w) < 2 and i != j
    )
    assert results(spark, tmp_path, ["A.id", "B.id"]) == expected


def test_what_a_selection_removes_still_moves_the_watermark(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = streams(tmp_path, A=[batch((0, 1, 0, 0), (99, 1, -1, 1))], B=[batch((0, 1, 0, 0))])
    joined = nm.window_join(
        to_frames(made, spark), on="k", windows="10s", time="ts", where="A.v >= 0"
    )
    query = run_to_end(joined, tmp_path)
    assert results(spark, tmp_path, ["A.id", "B.id"]) == [(0, 0)]
    assert nm.metrics(query)[0].streams["A"].watermark == instant(99)


def test_streams_without_a_time_get_that_of_arrival(spark: SparkSession, tmp_path: Path) -> None:
    made = streams(tmp_path, A=[batch((0, 1, 0, 0)), batch()], B=[batch(), batch((9999, 1, 0, 0))])
    joined = nm.window_join(to_frames(made, spark), on="k", windows="1h")
    started = time.time()
    run_to_end(joined.selectExpr("A", "B", "unix_micros(_time) AS at"), tmp_path)
    [(a, b, arrived)] = results(spark, tmp_path, ["A.id", "B.id", "at"])
    assert (a, b) == (0, 0)
    assert started - 1 < arrived / 1e6 < time.time() + 1


def test_an_idle_stream_no_longer_holds_up_the_others(spark: SparkSession, tmp_path: Path) -> None:
    made = streams(tmp_path, A=[batch((0, 1, 0, 0))], B=[batch((0, 2, 0, 0))])

    def watermarks() -> list[Any]:
        joined = nm.window_join(
            to_frames(made, spark), on="k", windows="5s", time="ts", idle={"B": "500ms"}
        )
        query = run_to_end(joined, tmp_path)
        return [stream.watermark for stream in nm.metrics(query)[0].streams.values()]

    assert watermarks() == [instant(0), instant(0)]
    made["A"].add(batch((60, 1, 0, 1)))

    def both_went_on() -> bool:
        made["B"].add(batch())
        return watermarks() == [instant(60), instant(60)]

    wait_for(both_went_on)
    made["A"].add(batch())
    made["B"].add(batch((55, 1, 0, 1), (60, 1, 0, 2)))  # 55 is late by now
    watermarks()
    assert results(spark, tmp_path, ["A.id", "B.id"]) == [(1, 2)]


def test_nested_rows_and_keys_stream_through(spark: SparkSession, tmp_path: Path) -> None:
    """Nested types leave the host as envelopes; the rest of the way is the same."""
    schema = "ts TIMESTAMP, k ARRAY<STRING>, place STRUCT<x: DOUBLE, at: TIMESTAMP>, id BIGINT"
    place = pa.struct([("x", pa.float64()), ("at", pa.timestamp("us", tz="UTC"))])
    made = {name: FileStream(tmp_path / name, schema) for name in "AB"}
    for number in range(2):
        for stream in made.values():
            stream.add(
                pa.RecordBatch.from_arrays(
                    [
                        pa.array([at(number), at(number)], pa.timestamp("us", tz="UTC")),
                        pa.array([["a", None], ["b"]], pa.list_(pa.string())),
                        pa.array([{"x": 1.5, "at": at(7)}, None], place),
                        pa.array([2 * number, 2 * number + 1]),
                    ],
                    ["ts", "k", "place", "id"],
                )
            )
    joined = nm.window_join(to_frames(made, spark), on="k", windows="5s", time="ts")
    run_to_end(joined, tmp_path)
    assert results(spark, tmp_path, ["A.id", "B.id"]) == [
        (i, j) for i in range(4) for j in range(4) if i % 2 == j % 2
    ]
    places = spark.read.parquet(str(tmp_path / "out")).selectExpr("B.place").distinct().collect()
    assert sorted(str(row.place) for row in places) == [
        "None",
        f"Row(x=1.5, at={at(7).replace(tzinfo=None)!r})",
    ]


def test_two_queries_of_one_join_do_not_disturb_each_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Each has micro-batches with envelopes large enough to travel as files."""
    rows = [batch(*[(20 * b, i, 0, i) for i in range(20_000)]) for b in range(4)]
    made = streams(tmp_path, A=rows, B=rows)
    joined = nm.window_join(to_frames(made, spark), on="k", windows="1s", time="ts")
    queries = []
    for number in range(2):
        writer = joined.writeStream.format("noop").trigger(availableNow=True)
        queries.append(writer.option("checkpointLocation", str(tmp_path / f"c{number}")).start())
    for query in queries:
        query.awaitTermination()
        joins = [join for report in query.recentProgress for join in progress_metrics(report)]
        assert sum(join.results for join in joins) == 80_000


def test_a_self_join_of_one_streaming_frame(spark: SparkSession, tmp_path: Path) -> None:
    made = streams(tmp_path, A=[batch((0, 1, 0, 0), (3, 1, 0, 1)), batch((5, 1, 0, 2))])
    frame = made["A"].read(spark)
    joined = nm.window_join(
        {"first": frame, "then": frame},
        on="k",
        windows=nm.between("first", "then", "1us", "4s"),
        time="ts",
    )
    run_to_end(joined, tmp_path)
    assert results(spark, tmp_path, ["first.id", "then.id"]) == [(0, 1), (1, 2)]


def test_watermarks_that_spark_was_given_do_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    """Spark refuses two event-time columns after a join; these never meet."""
    made = streams(tmp_path, A=[batch((0, 1, 0, 0)), batch((50, 1, 0, 1))], B=[batch((3, 1, 0, 0))])
    made["B"].add(batch((1, 1, 0, 1)))
    frames = {
        name: frame.withWatermark("ts", "1 second")
        for name, frame in to_frames(made, spark).items()
    }
    joined = nm.window_join(frames, on="k", windows="5s", time="ts", lateness="2s")
    run_to_end(joined, tmp_path)
    assert results(spark, tmp_path, ["A.id", "B.id"]) == [(0, 0), (0, 1)]


def failure(query_of: Any) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011  Spark wraps what its workers raise
        query_of()
    return str(caught.value)


def test_a_changed_query_on_an_old_checkpoint_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = streams(tmp_path, A=[batch((0, 1, 0, 0))], B=[batch((0, 1, 0, 0))])

    def run(**options: Any) -> StreamingQuery:
        given = {"on": "k", "windows": "10s", "time": "ts", **options}
        return run_to_end(nm.window_join(to_frames(made, spark), **given), tmp_path)

    run()
    for stream in made.values():
        stream.add(batch((1, 1, 0, 1)))
    error = failure(lambda: run(windows="20s"))
    assert "this checkpoint belongs to another query: its windows differ" in error
    assert "the checkpoint has [['0s', '10s'], ['10s', '0s']]" in error
    assert "hint: start a changed query with an empty checkpoint" in error
    error = failure(lambda: run(buckets=3))
    assert "this checkpoint was written with 2 buckets, not 3" in error
    assert "hint: pass buckets=2, or start with an empty checkpoint" in error
    assert "its predicates differ" in failure(lambda: run(where="A.v < B.v"))
    run(buckets=2)
    assert results(spark, tmp_path, ["A.id", "B.id"]) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_predicates_that_fail_on_the_data_say_which_and_why(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = streams(tmp_path, A=[batch((0, 1, 0, 0))], B=[batch((0, 1, 0, 0))])

    def run(where: Any, folder: str) -> StreamingQuery:
        joined = nm.window_join(
            to_frames(made, spark), on="k", windows="1s", time="ts", where=where
        )
        return run_to_end(joined, tmp_path / folder)

    def too_short(a: Any, b: Any) -> list[bool]:
        return []

    error = failure(lambda: run(nm.predicate(too_short, "A.v", "B.v"), "short"))
    assert "the function too_short returned 0 values for 1 rows" in error
    assert "hint: it must return one value per row, in the same order" in error
    error = failure(lambda: run("A.id / B.v > 1", "zero"))
    assert "division by zero" in error
    assert "in: A.id / B.v > 1" in error
