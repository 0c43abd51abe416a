"""`db.sql` on Spark, in batch and in streaming over random micro-batches, against DuckDB.

Several statements over the same data run in one Spark job, each as rows of JSON: a streaming
query costs seconds, however little it has to do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import nilometer as nm
from nilometer.database import Database
from nilometer.errors import SqlWindowError
from nilometer.spark.stage_inputs import union
from tests.generated import check_generated
from tests.queries import DDL, RELATIONS, Data, QueryCase, data, statements
from tests.query_oracle import answer
from tests.spark.harness import FileStream, run_to_end

TOGETHER = 9
SPARE = 5
ROUNDS = 1

WITHOUT_SHRINKING = (Phase.explicit, Phase.generate)
"""Every try costs many seconds."""


def micros(instant: str | None) -> str:
    return f"unix_micros({instant})"


def as_json(number: int, frame: DataFrame) -> DataFrame:
    """The rows of a statement's answer as JSON, times as microseconds, NULLs as they are."""
    columns = [
        f"'c{i}', {micros(f'c{i}') if kind == 'timestamp' else f'c{i}'}"
        for i, (_, kind) in enumerate(frame.dtypes)
    ]
    numbered = frame.toDF(*(f"c{i}" for i in range(len(frame.dtypes))))
    options = "map('ignoreNullFields', 'false')"
    values = f"to_json(named_struct({', '.join(columns)}), {options})"
    return numbered.selectExpr(f"{number} AS number", f"{values} AS value")


def rows_of(frame: DataFrame, count: int) -> list[list[tuple[Any, ...]]]:
    """The rows of each of so many statements, as the oracle sorts them."""
    by_case: list[list[tuple[Any, ...]]] = [[] for _ in range(count)]
    for number, value in frame.collect():
        by_case[number].append(tuple(json.loads(value).values()))
    return [sorted(rows, key=repr) for rows in by_case]


def database(spark: SparkSession, frames: dict[str, DataFrame], rows: Data, live: bool) -> Database:
    db = nm.connect(spark)
    for name, frame in frames.items():
        late = f"{rows.lateness[name]}us" if live else None
        db.create_stream(name, frame, time="ts", lateness=late)
    db.create_table("T", spark.createDataFrame(pa.Table.from_batches([rows.static()])))
    return db


def possible(db: Database, cases: Sequence[QueryCase]) -> list[QueryCase]:
    """The statements whose conditions on times do not contradict their windows."""
    kept = []
    for case in cases:
        try:
            db.explain(case.sql)
            kept.append(case)
        except SqlWindowError as error:
            assert "contradict" in error.message  # noqa: PT017
    return kept


def static_frames(spark: SparkSession, rows: Data) -> dict[str, DataFrame]:
    tables = {name: pa.Table.from_batches([rows.batch(name)]) for name in RELATIONS}
    return {name: spark.createDataFrame(table) for name, table in tables.items()}


def split(folder: Path, rows: Data, draw: st.DataObject) -> dict[str, FileStream]:
    """The streams as files, one per micro-batch."""
    batches = draw.draw(st.integers(1, 3))
    made = {}
    for name, own in rows.streams.items():
        cuts = sorted(draw.draw(st.integers(0, len(own))) for _ in range(batches - 1))
        made[name] = FileStream(folder / name, DDL)
        for first, last in zip([0, *cuts], [*cuts, len(own)], strict=True):
            made[name].add(rows.batch(name, first, last))
    return made


def check(draw: st.DataObject, spark: SparkSession, folder: Path) -> None:
    rows = draw.draw(data(max_rows=12))
    cases = [draw.draw(statements(max_streams=4)) for _ in range(TOGETHER + SPARE)]
    db = database(spark, static_frames(spark, rows), rows, live=False)
    cases = possible(db, cases)[:TOGETHER]
    assert len(cases) == TOGETHER
    answers = union([as_json(i, db.sql(case.sql)) for i, case in enumerate(cases)])
    expected = [answer(case, rows) for case in cases]
    for case, emitted, right in zip(cases, rows_of(answers, len(cases)), expected, strict=True):
        assert emitted == right, case.sql
    files = split(folder, rows, draw)
    frames = {name: stream.read(spark) for name, stream in files.items()}
    live = database(spark, frames, rows, live=True)
    run_to_end(union([as_json(i, live.sql(c.sql)) for i, c in enumerate(cases)]), folder)
    streamed = rows_of(spark.read.parquet(str(folder / "out")), len(cases))
    for case, emitted, right in zip(cases, streamed, expected, strict=True):
        settled = [row for row in right if is_settled(case, row, rows)]
        assert emitted == settled, case.sql


def is_settled(case: QueryCase, row: tuple[Any, ...], rows: Data) -> bool:
    """Whether a stream emits the row: every ROWS stream has passed its time."""
    return all(row[-1] < rows.watermark(name) for name in case.counted)


@pytest.mark.parametrize("part", range(ROUNDS))
def test_batch_is_stream_is_duckdb(
    part: int, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_generated(
        lambda draw: check(draw, spark, tmp_path_factory.mktemp("statements")),
        part,
        examples=1,
        phases=WITHOUT_SHRINKING,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.soak
@pytest.mark.limit(3000)
@settings(max_examples=10 * ROUNDS, derandomize=False, suppress_health_check=list(HealthCheck))
@given(draw=st.data())
def test_batch_is_stream_is_duckdb_for_ever_new_queries(
    draw: st.DataObject, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(draw, spark, tmp_path_factory.mktemp("statements"))
