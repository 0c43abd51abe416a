"""The papers' algorithms in queries on Spark, beside the columnar join."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import InputError
from nilometer.spark.inputs import Inputs
from nilometer.spark.join_plan import JoinOptions, plan_window_join
from nilometer.spark.query import join_query
from nilometer.spark.relations import SparkEngine
from nilometer.spark.streams import JoinInput
from tests.spark.harness import FileStream, results, run_to_end

DDL = "ts TIMESTAMP, k STRING, v BIGINT, id BIGINT"
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.string()),
        ("v", pa.int64()),
        ("id", pa.int64()),
    ]
)
IDS = ["A.id", "B.id", "C.id"]
BATCHES, ROWS = 2, 40
LAST = 10_000 * BATCHES


def rows_of(random: Random, batch: int) -> pa.RecordBatch:
    """Rows of ten milliseconds, out of order by as much as the lateness allows."""
    times = sorted(10_000 * batch + random.randrange(10_000) for _ in range(ROWS))
    late = [max(0, t - random.choice((0, 0, 500))) for t in times]
    columns = [
        late,
        [random.choice(["x", "y", None]) for _ in times],
        [random.randrange(5) for _ in times],
        [batch * ROWS + n for n in range(ROWS)],
    ]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def at_end() -> pa.RecordBatch:
    """A row that lets all others be emitted."""
    last = (LAST * 2, "z", 0, -1)
    arrays = [pa.array([value], f.type) for value, f in zip(last, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def join_of(frames: dict, algorithm: str | None):
    return nm.window_join(
        frames,
        on="k",
        windows="2ms",
        time="ts",
        where="A.v <= C.v",
        lateness={name: "500us" for name, frame in frames.items() if frame.isStreaming},
        algorithm=algorithm,
        buckets=2,
    )


@pytest.mark.parametrize("algorithm", ["MW", "GENERAL_NLJ"])
def test_streamed_with_a_restart_is_the_columnar_join(
    algorithm: str, spark: SparkSession, tmp_path: Path
) -> None:
    random = Random(algorithm)
    streams = {name: FileStream(tmp_path / name, DDL) for name in "ABC"}

    def run() -> None:
        frames = {name: stream.read(spark) for name, stream in streams.items()}
        run_to_end(join_of(frames, algorithm), tmp_path)

    for batch in range(BATCHES):
        for stream in streams.values():
            stream.add(rows_of(random, batch))
        if batch == 0:
            run()
    for stream in streams.values():
        stream.add(at_end())
    run()
    static = {name: spark.read.parquet(str(tmp_path / name)) for name in "ABC"}
    joined = [row for row in results(spark, tmp_path, IDS) if row[0] >= 0]
    for chosen in (None, algorithm):
        rows = join_of(static, chosen).where("A.id >= 0").selectExpr(*IDS).collect()
        assert joined == sorted(map(tuple, rows))
    assert len(joined) > ROWS


def test_a_checkpoint_knows_its_algorithm(spark: SparkSession) -> None:
    frames = {name: spark.createDataFrame([], DDL) for name in "AB"}
    inputs = {name: JoinInput(frame.schema, True) for name, frame in frames.items()}
    options = JoinOptions("1s", on="k", time="ts", algorithm="mw")
    plan = plan_window_join(inputs, options, SparkEngine(Inputs(spark, frames)), 1)
    query = join_query(plan, [given.schema for given in inputs.values()])
    assert query.description["algorithms"] == ["MW"]


def test_a_hint_in_sql(spark: SparkSession) -> None:
    db = nm.connect(spark)
    for name in "AB":
        frame = spark.createDataFrame(rows_of(Random(name), 0).to_pandas(), DDL)
        db.create_stream(name, frame, time="ts")
    query = "SELECT {} A.id, B.id FROM A, B WINDOW = 0.002 S WHERE A.k = B.k AND A.v <= B.v"
    expected = sorted(map(tuple, db.sql(query.format("")).collect()))
    assert sorted(map(tuple, db.sql(query.format("/*+ BEW_HASH */")).collect())) == expected
    assert expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "MX"}, "there is no algorithm 'MX'"),
        ({"algorithm": 7}, "there is no algorithm '7'"),
        ({"algorithm": "MW", "kernel": "hash"}, "a join is run by a kernel or by an algorithm"),
        ({"algorithm": "BEW_HASH", "on": None}, "BEW_HASH needs a key that all streams have"),
        ({"algorithm": "MW", "windows": {("A", "B"): "1s", ("B", "C"): "2s"}}, "MW cannot take"),
    ],
)
def test_what_an_algorithm_cannot_do_is_said_at_once(
    options: dict, message: str, spark: SparkSession
) -> None:
    frame = spark.createDataFrame([], DDL)
    given = {"on": "k", "windows": "1s", "time": "ts", **options}
    with pytest.raises(InputError, match=message):
        nm.window_join(dict.fromkeys("ABC", frame), **given)
