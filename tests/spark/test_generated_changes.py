"""Queries whose answer changes on Spark, in random micro-batches with a restart, against DuckDB.

Several statements over the same data run in one streaming query, each as rows of JSON: a
streaming query costs seconds, however little it has to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import nilometer as nm
from nilometer.database import Database
from nilometer.local.database import LocalDatabase
from nilometer.operators.stage import Execution
from nilometer.spark.stage_inputs import union
from nilometer.sql.physical.stages import cut_into_stages
from nilometer.sql.plan.changes_plan import ChangesPlan
from tests.change_data import DDL, STREAMS, ChangeData, Parts, change_data, splits
from tests.change_oracle import Change, changes_of, check_against, check_net, settled
from tests.change_queries import ChangeCase, change_cases
from tests.generated import check_generated
from tests.spark.harness import FileStream, run_to_end
from tests.unit.test_generated_changes import check_same
from tests.unit.test_generated_changes import database as local_database

TOGETHER = 6
IN_BATCH = 1
ROUNDS = 1

MOST_STAGES = 2
"""Every stage costs Spark a second per start, and some tenths per micro-batch."""

STREAMING_CASES = change_cases().filter(lambda case: bool(case.streams))
WITHOUT_SHRINKING = (Phase.explicit, Phase.generate)
"""Every try costs many seconds."""

Decoders = Sequence[Callable[[Any], Any]]


def as_json(number: int, frame: DataFrame) -> DataFrame:
    """The rows of a changelog as JSON: times as microseconds, inexact and long numbers as text."""
    written = {"timestamp": "unix_micros({})", "double": "CAST({} AS STRING)"}
    values = [
        f"'c{i}', {written.get(_plain(kind), '{}').format(f'c{i}')}"
        for i, (_, kind) in enumerate(frame.dtypes)
    ]
    numbered = frame.toDF(*(f"c{i}" for i in range(len(frame.dtypes))))
    options = "map('ignoreNullFields', 'false')"
    value = f"to_json(named_struct({', '.join(values)}), {options})"
    return numbered.selectExpr(f"{number} AS number", f"{value} AS value")


def _plain(kind: str) -> str:
    return "double" if kind.startswith("decimal") else kind


def decoders(frame: DataFrame) -> Decoders:
    """What makes values of JSON those that they were."""
    return [
        Decimal if kind.startswith("decimal") else float if kind == "double" else _same
        for _, kind in frame.dtypes
    ]


def _same(value: Any) -> Any:
    return value


def changes_in(frame: DataFrame, decoding: Sequence[Decoders]) -> list[list[Change]]:
    """The changelog of each statement."""
    by_case: list[list[Change]] = [[] for _ in decoding]
    for number, value in frame.collect():
        values = json.loads(value).values()
        row = [
            None if one is None else decode(one)
            for decode, one in zip(decoding[number], values, strict=True)
        ]
        by_case[number].append((tuple(row[:-2]), row[-2], row[-1]))
    return by_case


def database(
    spark: SparkSession, frames: Mapping[str, DataFrame], rows: ChangeData, execution: Execution
) -> Database:
    db = nm.connect(spark, execution=execution)
    for name, frame in frames.items():
        late = f"{rows.lateness[name]}us" if frame.isStreaming else None
        db.create_stream(name, frame, time="ts", lateness=late)
    db.create_table("T", spark.createDataFrame(pa.Table.from_batches([rows.static()])))
    return db


class Streams:
    """The streams as files, one per micro-batch."""

    def __init__(self, folder: Path, rows: ChangeData) -> None:
        self._rows = rows
        self._files = {name: FileStream(folder / name, DDL) for name in STREAMS}

    def add(self, batches: Sequence[Parts]) -> None:
        for parts in batches:
            for name, part in parts.items():
                self._files[name].add(self._rows.batch(name, *part))

    def read(self, spark: SparkSession) -> dict[str, DataFrame]:
        return {name: files.read(spark) for name, files in self._files.items()}


def check(draw: st.DataObject, spark: SparkSession, folder: Path) -> None:
    rows = draw.draw(change_data(max_rows=12))
    execution = draw.draw(st.sampled_from(Execution))
    local = local_database(rows)
    small = STREAMING_CASES.filter(lambda case: _stages(local, case) <= MOST_STAGES)
    cases = [draw.draw(small) for _ in range(TOGETHER)]
    whole = [changes_of(local.sql(case.sql)) for case in cases]
    for case, changes in zip(cases, whole, strict=True):
        check_against(case, rows, changes)
    check_batch(spark, rows, cases[:IN_BATCH], whole, execution)
    for case, emitted, changes in zip(
        cases, streamed(draw, spark, folder, rows, cases, execution), whole, strict=True
    ):
        check_net(emitted)
        check_same(emitted, settled(changes, case, rows), execution, case)


def _stages(db: LocalDatabase, case: ChangeCase) -> int:
    plan = db.plan(case.sql)
    assert isinstance(plan, ChangesPlan)
    return len(cut_into_stages(plan).stages)


def check_batch(
    spark: SparkSession,
    rows: ChangeData,
    cases: Sequence[ChangeCase],
    whole: Sequence[list[Change]],
    execution: Execution,
) -> None:
    tables = {name: pa.Table.from_batches([rows.batch(name)]) for name in STREAMS}
    frames = {name: spark.createDataFrame(table) for name, table in tables.items()}
    db = database(spark, frames, rows, execution)
    answers = [db.sql(case.sql) for case in cases]
    together = union([as_json(i, frame) for i, frame in enumerate(answers)])
    emitted = changes_in(together, [decoders(frame) for frame in answers])
    for case, changes, right in zip(cases, emitted, whole, strict=False):
        check_net(changes)
        check_same(changes, right, Execution.TPA, case)


def streamed(
    draw: st.DataObject,
    spark: SparkSession,
    folder: Path,
    rows: ChangeData,
    cases: Sequence[ChangeCase],
    execution: Execution,
) -> list[list[Change]]:
    """The changes of all micro-batches, with a restart between two of them."""
    batches = draw.draw(splits(rows, least=2, most=2))
    cut = draw.draw(st.integers(1, len(batches) - 1))
    streams = Streams(folder, rows)
    decoding: list[Decoders] = []
    for part in (batches[:cut], batches[cut:]):
        streams.add(part)
        db = database(spark, streams.read(spark), rows, execution)
        answers = [db.sql(case.sql) for case in cases]
        decoding = [decoders(frame) for frame in answers]
        run_to_end(union([as_json(i, frame) for i, frame in enumerate(answers)]), folder)
    return changes_in(spark.read.parquet(str(folder / "out")), decoding)


@pytest.mark.parametrize("part", range(ROUNDS))
def test_at_every_instant_the_answer_is_that_of_the_plain_query(
    part: int, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_generated(
        lambda draw: check(draw, spark, tmp_path_factory.mktemp("changes")),
        part,
        examples=1,
        phases=WITHOUT_SHRINKING,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.soak
@pytest.mark.limit(3000)
@settings(
    max_examples=20 * ROUNDS,
    derandomize=False,
    phases=WITHOUT_SHRINKING,
    suppress_health_check=list(HealthCheck),
)
@given(draw=st.data())
def test_ever_new_queries(
    draw: st.DataObject, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(draw, spark, tmp_path_factory.mktemp("changes"))
