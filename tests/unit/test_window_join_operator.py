"""The operator against the naive join and DuckDB, for any split, order of arrival and restart."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels.chunk import Kernel
from nilometer.kernels.window_join import Residual
from nilometer.local.run_stage import LocalStage
from nilometer.operators import stream_buffer
from tests import naive, oracle
from tests.cases import JoinCase, join_cases, splits
from tests.generated import check_generated

CASES = 450
PARTS = 3


def results_of(batches: list[pa.RecordBatch]) -> list[naive.Result]:
    rows = []
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns[1:]]
        rows += list(zip(*columns, strict=True))
    return sorted(rows)


def run(case: JoinCase, micro_batches, stage, restart_at: int | None = None) -> list[naive.Result]:
    running = LocalStage(stage)
    results = []
    for number, parts in enumerate(micro_batches):
        if number == restart_at:
            running = running.resume(running.snapshot())
        rows = [case.batch(s, *part) for s, part in enumerate(parts)]
        before = [list(bucket.watermarks.marks) for bucket in running.buckets]
        joined = running.feed(rows)
        check_nothing_dead_joined(joined, case, before[0], parts)
        check_rows_held(running, rows)
        results += joined
    return results_of(results)


def check_nothing_dead_joined(joined, case: JoinCase, watermarks: list[int], parts) -> None:
    for result in results_of(joined):
        for stream, number in enumerate(result):
            is_old = number < parts[stream][0]
            time = case.streams[stream][number][0]
            assert not is_old or time >= case.network.horizon(stream, watermarks)


def check_rows_held(running: LocalStage, rows: list[pa.RecordBatch]) -> None:
    network = running.stage.operator.network
    for bucket in running.buckets:
        for stream, buffer in enumerate(bucket.operator.buffers):
            horizon = network.horizon(stream, bucket.watermarks.marks)
            alive = sum(int((chunk.times >= horizon).sum()) for chunk in buffer.chunks())
            assert buffer.rows <= 2 * alive + len(rows[stream])


def check_against_naive_join(data: st.DataObject) -> None:
    case = data.draw(join_cases())
    parts = data.draw(splits(case))
    restart = data.draw(st.none() | st.integers(0, len(parts) - 1))
    buckets = data.draw(st.sampled_from((1, 2, 3)))
    results = run(case, parts, case.stage(buckets=buckets), restart)
    assert results == naive.window_join(case.streams, case.network)


@pytest.mark.parametrize("part", range(PARTS))
def test_operator_is_naive_join_for_any_split_and_restart(part: int) -> None:
    check_generated(check_against_naive_join, part, CASES // PARTS)


@pytest.mark.soak
@pytest.mark.limit(1800)
@settings(max_examples=26 * CASES, derandomize=False)
@given(st.data())
def test_operator_is_naive_join_for_ever_new_cases(data: st.DataObject) -> None:
    check_against_naive_join(data)


@settings(max_examples=CASES // 3)
@given(st.data())
def test_operator_is_duckdb(data: st.DataObject) -> None:
    case = data.draw(join_cases(max_streams=4))
    results = run(case, data.draw(splits(case)), case.stage())
    assert results == oracle.window_join(case.streams, case.network)


@settings(max_examples=CASES // 3)
@given(st.data())
def test_merge_and_nested_without_a_key(data: st.DataObject) -> None:
    case = data.draw(join_cases(max_streams=3, max_rows=8))
    kernel = data.draw(st.sampled_from((Kernel.MERGE, Kernel.NESTED)))
    buckets = data.draw(st.sampled_from((1, 2, 4, 6)))

    def close(columns):
        a, b = (column.to_numpy() for column in columns)
        return abs(a - b) <= 1

    residuals = (Residual(((0, 2), (1, 2)), close),)
    results = run(case, data.draw(splits(case)), case.stage(kernel, buckets, residuals))
    expected = naive.window_join(
        case.streams,
        case.network,
        keyed=kernel is Kernel.NESTED,
        test=lambda rows: abs(rows[0][2] - rows[1][2]) <= 1,
    )
    assert results == expected


@settings(max_examples=CASES // 5)
@given(st.data())
def test_many_small_micro_batches_merge_chunks(data: st.DataObject) -> None:
    case = data.draw(join_cases(max_streams=3, max_rows=40))
    parts = data.draw(splits(case, max_batches=30))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_buffer, "FANOUT", 3)
        results = run(case, parts, case.stage(), restart_at=len(parts) // 2)
    assert results == naive.window_join(case.streams, case.network)
