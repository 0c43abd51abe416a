"""The join alone, in memory and on one core, beside a plain sort of the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.loads import Load
from nilometer.kernels.chunk import Kernel, RowLayout
from nilometer.kernels.routing import route_by_keys
from nilometer.local.run_stage import LocalStage
from nilometer.model.network import TimeNetwork
from nilometer.model.windows import UniformWindow
from nilometer.operators.stage import Stage
from nilometer.operators.watermarks import StreamClock
from nilometer.operators.window_join import WindowJoinSpec


def measure_kernel(load: Load, warm_up: int) -> dict[str, Any]:
    """Seconds and rows per second of the join, including buffers, and of the sort."""
    stage = _stage(load)
    running = LocalStage(stage)
    batches = [_read(load, number, stage) for number in range(load.batches)]
    results = 0
    join_seconds, sort_seconds = [], []
    for rows in batches:
        joined: list[pa.RecordBatch] = []
        join_seconds.append(_time(lambda r=rows, f=joined: f.extend(running.feed(r))))
        sort_seconds.append(_time(lambda r=rows: [_sort(part) for part in r]))
        results += sum(map(len, joined))
    timed, sorted_in = join_seconds[warm_up:], sort_seconds[warm_up:]
    return {
        "results": results,
        "rows_per_second": load.rows_per_batch / float(np.median(timed)),
        "sort_rows_per_second": load.rows_per_batch / float(np.median(sorted_in)),
        "times_the_sort": float(np.median(timed)) / float(np.median(sorted_in)),
    }


def _stage(load: Load) -> Stage:
    n = load.streams
    network = TimeNetwork(load.names, (UniformWindow(load.window * 1_000_000),))
    schema = _table(load, load.names[0], 0).schema
    output = tuple((s, c) for s in range(n) for c in range(3) if c != 1 or s == 0)
    spec = WindowJoinSpec(network, (schema,) * n, (RowLayout(0, ((1,),)),) * n, output, Kernel.HASH)
    return Stage(spec, (StreamClock(),) * n, route_by_keys((((1,),),) * n, 1))


def _read(load: Load, number: int, stage: Stage) -> list[pa.RecordBatch]:
    return [_table(load, name, number) for name in stage.names]


def _table(load: Load, name: str, number: int) -> pa.RecordBatch:
    table = pq.read_table(load.folder(name, "parquet") / f"{number:05d}.parquet")
    return table.combine_chunks().to_batches()[0]


def _sort(rows: pa.RecordBatch) -> Any:
    """Sort rows by key and time, and reorder every column."""
    keys, times = rows.column("k").to_numpy(), rows.column("ts").cast(pa.int64()).to_numpy()
    order = np.argsort((keys << 44) | (times - times.min()))
    return rows.take(pa.array(order))


def _time(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
