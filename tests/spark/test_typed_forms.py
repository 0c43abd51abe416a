"""Forms that people type, over Spark as a batch and streamed, beside the same without Spark."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import NilometerError
from tests.examples import some_of
from tests.spark.harness import FileStream, run_to_end

BEGIN = datetime(2026, 1, 31, 10, tzinfo=UTC)
SCHEMA = "ts TIMESTAMP, k INT, v DOUBLE, d DATE, s STRING"
STATEMENTS = (
    "SELECT k, d + 1 AS a, d - k AS b, DATE '2026-03-01' - d AS c, ts - d AS e FROM A",
    "SELECT k, d + INTERVAL 1 MONTH AS a, ts - INTERVAL '1-2' YEAR TO MONTH AS b, "
    "d + INTERVAL '36' HOURS AS c, d - INTERVAL '2' WEEKS AS e FROM A",
    "SELECT coalesce(d, ts) AS a, greatest(ts, d) AS b, if(k = 1, d, ts) AS c FROM A",
    "SELECT ts + INTERVAL k DAYS AS a, ts + k * INTERVAL '1' HOUR AS b FROM A",
    "SELECT initcap(s) AS a, to_char(ts, 'yyyy-MM-dd') AS b, to_char(d, 'dd.MM.') AS c FROM A",
    "SELECT a.k, b.d - a.d AS x, b.ts - INTERVAL '1' MONTH AS y, initcap(a.s || ' ' || b.s) AS z, "
    "coalesce(a.d, b.ts) AS m FROM A a, A b WINDOW = 2 MINUTES WHERE a.k = b.k AND a.d + 1 >= b.d",
    "SELECT k, MAX(d) + 1 AS x, MAX(d) - MIN(d) AS y, initcap(MAX(s)) AS z, MAX(ts) - INTERVAL '1' "
    "MONTH AS m FROM A [RANGE 5 MINUTES] GROUP BY k",
    "SELECT COUNT(DISTINCT (k, s)) AS x, COUNT(DISTINCT k, s) AS y FROM A [RANGE 5 MINUTES]",
    "SELECT DISTINCT ON (k) k, v, s FROM A [RANGE 5 MINUTES] ORDER BY k, v DESC",
    "SELECT time_bucket('5 minutes', ts) AS b, k, COUNT(*) AS n FROM A GROUP BY b, k",
    "SELECT time_bucket(INTERVAL '90' SECONDS, ts) AS b, group_concat(s) AS t FROM A GROUP BY 1",
    "SELECT time_bucket(INTERVAL '7' HOURS, ts) AS b, k FROM A",
    "SELECT k, v, s FROM A TABLESAMPLE (50 PERCENT) REPEATABLE (3)",
    "SELECT k, SUM(v) AS t FROM A TABLESAMPLE (50 PERCENT) [RANGE 5 MINUTES] GROUP BY k",
)


def table() -> pa.Table:
    words = ("hello world", None, "o'neil foo-bar", "x", "ÄRGER über")
    days = (date(2026, 1, 31), date(2026, 2, 1), None, date(2024, 2, 29))
    rows = [
        (BEGIN + timedelta(seconds=40 * n), n % 3, None if n % 7 == 5 else n % 4 / 2)
        for n in range(24)
    ]
    columns: list[Any] = [*zip(*rows, strict=True)]
    columns += [list(itertools.islice(itertools.cycle(many), 24)) for many in (days, words)]
    kinds = [pa.timestamp("us", tz="UTC"), pa.int32(), pa.float64(), pa.date32(), pa.string()]
    names = [one.split()[0] for one in SCHEMA.split(", ")]
    return pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names)


def net(table: pa.Table) -> Counter[str]:
    """The rows of an answer with the instants at which they come and go."""
    counted: Counter[str] = Counter()
    for row in table.to_pylist():
        counted[repr(sorted(row.items()))] += 1
    return counted


@pytest.mark.parametrize("statement", some_of(STATEMENTS))
def test_batch_is_stream_is_local(spark: SparkSession, tmp_path: Path, statement: str) -> None:
    here = nm.connect()
    here.create_stream("A", table(), time="ts")
    right = here.sql(statement)
    db = nm.connect(spark)
    stream = FileStream(tmp_path / "A", SCHEMA)
    for first in range(0, 24, 9):
        [part] = table().slice(first, 9).combine_chunks().to_batches()
        stream.add(part)
    db.create_stream("A", spark.read.schema(SCHEMA).parquet(str(tmp_path / "A")), time="ts")
    batch = db.sql(statement).toArrow()
    assert [one.type for one in batch.schema] == [one.type for one in right.schema]
    assert net(batch) == net(right)
    db.create_stream("B", stream.read(spark), time="ts")
    asked = db.sql(statement.replace("FROM A", "FROM B").replace(", A b", ", B b"))
    run_to_end(asked, tmp_path)
    streamed = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert not net(streamed) - net(right)
    assert net(streamed)


def test_a_question_has_one_instant(spark: SparkSession, tmp_path: Path) -> None:
    db, begin = nm.connect(spark), datetime.now(UTC)
    frame = spark.createDataFrame(table())
    db.create_stream("A", frame, time="ts")
    answer = db.sql("SELECT k, now() AS t, current_date AS d FROM A").toArrow()
    [asked] = set(answer["t"].to_pylist())
    assert begin <= asked <= datetime.now(UTC)
    assert set(answer["d"].to_pylist()) == {asked.date()}
    counted = "SELECT k, COUNT(*) AS n, MAX(now() - ts) AS t FROM A [RANGE 1 HOUR] GROUP BY k"
    assert len(db.sql(counted).collect()) > 3
    stream = FileStream(tmp_path / "B", SCHEMA)
    db.create_stream("B", stream.read(spark), time="ts")
    with pytest.raises(NilometerError) as error:
        db.sql("SELECT k, COUNT(*) + year(now()) AS n FROM B [RANGE 1 HOUR] GROUP BY k")
    assert "write A [RANGE 1 DAY]" in (error.value.hint or "")
