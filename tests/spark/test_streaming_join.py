"""`nm.window_join` over streaming DataFrames, against the naive join."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import nilometer as nm
from tests import naive
from tests.cases import JoinCase, join_cases, splits
from tests.spark.harness import FileStream, results, run_to_end

DDL = "ts TIMESTAMP, k BIGINT, v BIGINT, id BIGINT"


def join_of(case: JoinCase, spark: SparkSession, streams: dict[str, FileStream], **options):
    return nm.window_join(
        {name: stream.read(spark) for name, stream in streams.items()},
        windows=case.network.windows,
        time="ts",
        lateness={n: f"{late}us" for n, late in zip(streams, case.lateness, strict=True)},
        **options,
    )


def run_case(case: JoinCase, parts, spark: SparkSession, folder: Path, **options):
    names = case.network.streams
    streams = {name: FileStream(folder / name, DDL) for name in names}
    restart = len(parts) // 2
    for number, micro_batch in enumerate(parts):
        for (name, stream), part in zip(streams.items(), micro_batch, strict=True):
            stream.add(case.batch(names.index(name), *part))
        if number == restart:
            run_to_end(join_of(case, spark, streams, **options), folder)
    run_to_end(join_of(case, spark, streams, **options), folder)
    return results(spark, folder, [f"{name}.id" for name in names])


def check_against_naive_join(
    data: st.DataObject, spark: SparkSession, folders: pytest.TempPathFactory
) -> None:
    case = data.draw(join_cases(max_streams=4, max_rows=60, keys=8))
    parts = data.draw(splits(case, max_batches=4))
    joined = run_case(case, parts, spark, folders.mktemp("case"), on="k")
    assert joined == naive.window_join(case.streams, case.network)


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_streamed_with_a_restart_is_naive_join(
    data: st.DataObject, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_against_naive_join(data, spark, tmp_path_factory)


@pytest.mark.soak
@pytest.mark.limit(1800)
@settings(max_examples=60, derandomize=False, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_streamed_with_a_restart_is_naive_join_for_ever_new_cases(
    data: st.DataObject, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_against_naive_join(data, spark, tmp_path_factory)
