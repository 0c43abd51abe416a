"""The columnar engine beside the pipelines: the same query, a micro-batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from time import process_time_ns
from typing import Final

import pyarrow as pa

from nilometer.local.database import LocalDatabase
from nilometer.local.run_changes import LocalChanges
from nilometer_papers.algorithms.nile.answer import Change
from nilometer_papers.algorithms.nile.pipeline import Arrival
from nilometer_papers.experiments.nile.queries import FAVOURITE_STORES, Query, favourite_items
from nilometer_papers.experiments.service import no_garbage_collection
from nilometer_papers.experiments.workloads.exponential import SECOND

EVERY: Final = SECOND // 2
"""How much of the streams a micro-batch has."""

_SCHEMA: Final = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        *((name, pa.int64()) for name in ("store", "item", "price", "quantity")),
    ]
)
_TIME, _DIFF = "_time", "_diff"

TimedChanges = list[tuple[Change, float]]
"""Changes of an answer, and the clock (microseconds) when each was emitted."""


class ColumnarQuery:
    """A running query of the columnar engine, and the CPU time that it took."""

    def __init__(self, query: Query) -> None:
        db = LocalDatabase()
        for stream in range(query.streams):
            db.create_stream(f"S{stream}", _SCHEMA.empty_table(), time="ts")
        db.create_table("FavoriteItems", _table("item", favourite_items(query.items)))
        db.create_table("FavoriteStores", _table("store", FAVOURITE_STORES))
        running = db.query(query.statement)
        assert isinstance(running, LocalChanges)
        self._query = running
        self.microseconds = 0.0

    def feed(self, arrivals: Sequence[Arrival]) -> list[Change]:
        """The changes from a micro-batch; rows become columns before the clock starts."""
        batches = _columns(arrivals)
        began = process_time_ns()
        table = self._query.feed(batches)
        self.microseconds += (process_time_ns() - began) / 1000
        return _changes(table)


def respond_columnar(
    query: Query, arrivals: Sequence[Arrival], since: int
) -> tuple[TimedChanges, float]:
    """The emitted changes, and the CPU time: up to an instant in one batch, then batch by batch.

    A batch is processed as soon as its time is over and the previous one is done.
    """
    running, timed, clock = ColumnarQuery(query), [], 0.0
    with no_garbage_collection():
        for end, part in _micro_batches(arrivals, since):
            spent = running.microseconds
            changes = running.feed(part)
            clock = max(clock, end) + running.microseconds - spent
            timed += [(one, clock) for one in changes]
    return timed, running.microseconds


def _micro_batches(arrivals: Sequence[Arrival], since: int) -> Iterator[tuple[int, list[Arrival]]]:
    """Each micro-batch, and the end of its time."""
    for end, part in groupby(
        arrivals, key=lambda one: max(one.clock // EVERY + 1, since // EVERY + 1) * EVERY
    ):
        yield end, list(part)


def _columns(arrivals: Sequence[Arrival]) -> dict[str, pa.RecordBatch]:
    lines: dict[str, list[tuple[int, ...]]] = {}
    for one in arrivals:
        lines.setdefault(f"S{one.stream}", []).append((one.time, *one.values))
    return {name: _record_batch(line) for name, line in lines.items()}


def _record_batch(rows: Sequence[tuple[int, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, f.type) for column, f in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _changes(table: pa.Table) -> list[Change]:
    rows = [table[name].to_pylist() for name in table.column_names if name not in (_TIME, _DIFF)]
    times = table[_TIME].cast(pa.int64()).to_pylist()
    signs = table[_DIFF].to_pylist()
    return [
        Change(values, time, sign)
        for values, time, sign in zip(zip(*rows, strict=True), times, signs, strict=True)
    ]


def _table(name: str, rows: Sequence[tuple[int, ...]]) -> pa.Table:
    return pa.table({name: pa.array([row[0] for row in rows], pa.int64())})
