"""The operator on key graphs, static tables and ROWS windows, against the naive join and DuckDB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels import chunk
from nilometer.kernels.chunk import Kernel
from nilometer.local.memory_store import MemoryStore
from nilometer.local.run_stage import LocalStage
from nilometer.model.time import FOREVER
from nilometer.operators import stream_buffer
from nilometer.operators.stage import BucketRun, MicroBatch, Stage
from nilometer.operators.watermarks import NEVER
from tests import naive, oracle
from tests.cases import splits
from tests.graph_cases import GraphCase, graph_cases

CASES = 300


def results_of(batches: list[pa.RecordBatch]) -> list[naive.Result]:
    rows: list[naive.Result] = []
    for batch in batches:
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return sorted(rows)


def run(case: GraphCase, stage: Stage, parts, restart_at: int | None = None):
    """The results, and how far all ROWS windows have come."""
    running = LocalStage(stage)
    for stream in case.ended:
        running.hold(stream, case.batch(stream))
    results = []
    for number, cuts in enumerate(parts):
        if number == restart_at:
            running = running.resume(running.snapshot())
        fed = [None if s in case.ended else case.batch(s, *cut) for s, cut in enumerate(cuts)]
        results += running.feed(fed)
    marks = running.buckets[0].watermarks.marks
    settled = min((m for m, w in zip(marks, case.rows, strict=True) if w), default=FOREVER)
    return results_of(results), settled


def check_against_naive_join(data: st.DataObject, counted: bool) -> None:
    case = data.draw(graph_cases(counted=counted))
    parts = data.draw(splits(case, max_batches=8))
    restart = data.draw(st.none() | st.integers(0, len(parts) - 1))
    stage = case.stage(
        data.draw(st.sampled_from((Kernel.HASH, Kernel.HASH, Kernel.MERGE, Kernel.NESTED))),
        data.draw(st.sampled_from((1, 2, 4, 6))),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_buffer, "FANOUT", data.draw(st.sampled_from((2, 3, 16))))
        results, settled = run(case, stage, parts, restart)
    assert results == naive.graph_join(case, settled)


@settings(max_examples=CASES)
@given(st.data())
def test_any_key_graph_with_static_tables(data: st.DataObject) -> None:
    check_against_naive_join(data, counted=False)


@settings(max_examples=CASES)
@given(st.data())
def test_rows_windows_on_any_key_graph(data: st.DataObject) -> None:
    check_against_naive_join(data, counted=True)


@pytest.mark.soak
@pytest.mark.limit(1800)
@settings(max_examples=24 * CASES, derandomize=False)
@given(st.data(), st.booleans())
def test_ever_new_graphs(data: st.DataObject, counted: bool) -> None:
    check_against_naive_join(data, counted)


@settings(max_examples=CASES // 2)
@given(st.data())
def test_graphs_are_duckdb(data: st.DataObject) -> None:
    case = data.draw(graph_cases(max_streams=3))
    results, settled = run(case, case.stage(), data.draw(splits(case)))
    assert results == oracle.graph_join(case, settled)


@settings(max_examples=CASES // 2)
@given(st.data())
def test_keys_are_compared_where_hashes_are_not_exact(data: st.DataObject) -> None:
    """With hashes that are mostly equal only the comparison of values is left."""
    case = data.draw(graph_cases(counted=False))

    def poor(columns):
        return np.zeros(len(columns[0]), dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk, "key_hashes", poor)
        patch.setattr("nilometer.operators.window_join.is_exact", lambda types: False)
        results, _ = run(case, case.stage(), data.draw(splits(case)))
    assert results == naive.graph_join(case)


@settings(max_examples=CASES // 2)
@given(st.data())
def test_a_batch_run_in_the_order_of_time(data: st.DataObject) -> None:
    """All rows in the order of time, as Spark's batch job brings them; static tables alone, too."""
    case = data.draw(graph_cases(live=False))
    step = data.draw(st.integers(1, 6))
    stage = case.stage()
    bucket = BucketRun(stage, MemoryStore())
    arriving = _in_order(case)
    n = len(case.streams)
    results = []
    for first in range(0, max(1, len(arriving)), step):
        batch = MicroBatch.empty(n)
        for _, stream, place in arriving[first : first + step]:
            rows, _ = stage.operator.admit(stream, case.batch(stream, place, place + 1))
            batch.rows[stream].append(rows)
        after = arriving[first + step][0] if first + step < len(arriving) else FOREVER
        results += bucket.process_between(batch, [NEVER] * n, [after] * n)
    assert results_of(results) == naive.graph_join(case)


def _in_order(case: GraphCase) -> list[tuple[int, int, int]]:
    """(time, stream, place) of every row."""
    return sorted(
        (row[0], stream, place)
        for stream, rows in enumerate(case.streams)
        for place, row in enumerate(rows)
        if row[0] is not None
    )
