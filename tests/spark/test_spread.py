"""How the rows of running queries are spread over buckets, and which key is hot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import SqlError
from nilometer.kernels.routing import Routing
from tests.patience import wait_for

ROWS = 100_000
BUCKETS = 4
TEXT = "SELECT sensor_id, COUNT(*) AS n FROM A [RANGE 1 SECOND] GROUP BY sensor_id"
KEYS = ["a17" if n % 100 < 83 else f"b{n % 1009}" for n in range(ROWS)]


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[nm.Database]:
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"sensor_id": key}) + "\n" for key in KEYS))
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", BUCKETS)
    with nm.connect(spark, path=tmp_path / "plant") as opened:
        opened.execute(
            "CREATE STREAM A (sensor_id STRING, HISTORY FOREVER) FROM file "
            f"WITH (address = '{file}', speed = 'max', follow = true)"
        )
        yield opened
    spark.conf.set("spark.sql.shuffle.partitions", before)


def test_a_hot_key_is_reported_of_a_query_with_buckets_and_not_of_one_without(
    db: nm.Database,
) -> None:
    db.execute(f"CREATE QUERY own WITH (engine = 'own') AS {TEXT} FROM START")
    wait_for(lambda: _rows(db, "own") == ROWS)
    [spread] = db.query_status("own").spreads
    routing = Routing((BUCKETS,), (((0,),),), with_nulls=True)
    parts = routing.split(pa.RecordBatch.from_arrays([pa.array(KEYS)], ["c0"]), 0)
    assert spread.bucket_rows == tuple(map(len, parts))
    assert spread.key == "sensor_id = 'a17'"
    assert spread.key_rows == pytest.approx(0.83 * ROWS, rel=0.03)
    assert spread.is_uneven
    db.execute(f"CREATE QUERY shared AS {TEXT} FROM START")
    wait_for(lambda: _rows(db, "shared") == ROWS)
    [alone] = db.query_status("shared").spreads
    assert alone.bucket_rows == (ROWS,)
    assert alone.key == "sensor_id = 'a17'"
    assert not alone.is_uneven
    plan = db.execute("EXPLAIN QUERY own").rows
    assert plan is not None
    words = "\n".join(plan.column("plan").to_pylist())
    assert f"{BUCKETS} buckets, rows partitioned by A.sensor_id" in words
    assert "Engine: own" in words
    assert "one key, sensor_id = 'a17', has 8" in words
    assert "one bucket of 4 does most of the work, and more cores do not help" in words
    plan = db.execute("EXPLAIN QUERY shared").rows
    assert plan is not None
    assert "Engine: shared" in plan.column("plan").to_pylist()
    with pytest.raises(SqlError, match="there is no query nothing"):
        db.execute("EXPLAIN QUERY nothing")


def _rows(db: nm.Database, name: str) -> int:
    return sum(one.rows for one in db.query_status(name).spreads)
