"""The columnar engine beside the papers' algorithms: the same joins, a micro-batch at a time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from time import process_time_ns
from typing import Final

import pyarrow as pa

from nilometer.errors import InputError
from nilometer.kernels.chunk import RowLayout
from nilometer.kernels.routing import route_by_keys
from nilometer.local.run_stage import LocalStage
from nilometer.operators.stage import Stage
from nilometer.operators.watermarks import StreamClock
from nilometer.operators.window_join import WindowJoinSpec
from nilometer_papers.algorithms.conditions import SameKey
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.service import (
    Block,
    Service,
    add_fingerprints,
    fingerprint_of_numbers,
    no_garbage_collection,
)

COLUMNAR: Final = "columnar"
"""The engine's name among those of the algorithms."""

_SCHEMA: Final = pa.schema(
    [("ts", pa.timestamp("us", tz="UTC")), ("key", pa.int64()), ("number", pa.int64())]
)

MicroBatch = list[pa.RecordBatch | None]


def serve_columnar(task: JoinTask, arrivals: Sequence[StreamTuple], batch: int = 1000) -> Service:
    """Process all arrivals in micro-batches of `batch` tuples, each timed as a block.

    Arrivals become columns before the clock starts: the engine reads columns, not tuples. Work that
    is done only once, when a process first joins, is also done before.
    Comparisons are not counted: none are made one by one.
    """
    stage = LocalStage(stage_of(task))
    codes: dict[Hashable, int] = {}
    parts = [arrivals[first : first + batch] for first in range(0, len(arrivals), batch)]
    batches = [to_columns(part, task.streams, codes) for part in parts]
    if batches:
        LocalStage(stage_of(task)).feed(batches[0])
    blocks: list[Block] = []
    results = processed = fingerprint = 0
    with no_garbage_collection():
        for part, columns in zip(parts, batches, strict=True):
            began = process_time_ns()
            output = stage.feed(columns)
            spent = process_time_ns() - began
            processed += len(part)
            came = sum(map(len, output))
            blocks.append(Block(processed, spent / 1000 / len(part), 0.0, came))
            results += came
            fingerprint = add_fingerprints(fingerprint, _fingerprint(output))
    return Service(tuple(blocks), results, fingerprint)


class RunningColumns:
    """The running engine: takes micro-batches, and returns the CPU time that they took."""

    def __init__(self, task: JoinTask) -> None:
        self._stage = LocalStage(stage_of(task))
        self._streams = task.streams
        self._codes: dict[Hashable, int] = {}

    def feed(self, arrivals: Sequence[StreamTuple]) -> float:
        """Process some arrivals at once; return the microseconds since they became columns."""
        columns = to_columns(arrivals, self._streams, self._codes)
        began = process_time_ns()
        self._stage.feed(columns)
        return (process_time_ns() - began) / 1000


def stage_of(task: JoinTask) -> Stage:
    """The engine's window join for a task, in one bucket; a result is its tuples' numbers."""
    if task.rows is not None or not isinstance(task.condition, SameKey):
        raise InputError("the columnar peer joins on one key under time windows")
    streams = task.streams
    spec = WindowJoinSpec(
        task.network,
        (_SCHEMA,) * streams,
        (RowLayout(0, ((1,),)),) * streams,
        tuple((stream, 2) for stream in range(streams)),
    )
    return Stage(spec, (StreamClock(),) * streams, route_by_keys((((1,),),) * streams, 1))


def to_columns(
    arrivals: Iterable[StreamTuple], streams: int, codes: dict[Hashable, int]
) -> MicroBatch:
    """Arrivals as a record batch per stream; keys become numbers, known from `codes` or new."""
    lines: list[list[StreamTuple]] = [[] for _ in range(streams)]
    for one in arrivals:
        lines[one.stream].append(one)
    return [_record_batch(line, codes) if line else None for line in lines]


def _record_batch(line: Sequence[StreamTuple], codes: dict[Hashable, int]) -> pa.RecordBatch:
    columns = (
        [one.time for one in line],
        [codes.setdefault(one.key, len(codes)) for one in line],
        [one.number for one in line],
    )
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _fingerprint(batches: Iterable[pa.RecordBatch]) -> int:
    """As for the algorithms' results: the first column is the time of a result."""
    rows = (
        numbers
        for batch in batches
        for numbers in zip(*(column.to_pylist() for column in batch.columns[1:]), strict=True)
    )
    return fingerprint_of_numbers(rows)
