"""Functions of single rows in a windowed plan: their results are emitted with the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from nilometer.mining.hosted import WORKERS, FunctionCall, StaticTables
from nilometer.mining.registry import find_function
from nilometer.mining.table_function import RowFunction, RowResults, RowWorker
from nilometer.operators.change_operator import (
    StoredChunks,
    diffs_of,
    make_changes,
    no_changes,
    row_columns,
    times_of,
)
from nilometer.operators.chunk_store import ChunkStore


@dataclass(frozen=True)
class RowsSpec:
    """A function of rows; results: the first columns of its input, its own, the time."""

    function: FunctionCall
    passed: int
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> HostedRows:
        return HostedRows(self, store)


class HostedRows:
    """A running function of rows."""

    def __init__(self, spec: RowsSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._tables = StaticTables(spec.function, store)

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """Everything that it keeps in the store."""
        return tuple(self._tables.buffers)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given new rows."""
        self._tables.take(inputs[1:])
        changes = inputs[0]
        if not len(changes):
            return no_changes(self._spec.types)
        results = self._worker().look(self._spec.function.columns(row_columns(changes)))
        return passed_on(changes, results, self._spec.passed, self._spec.types)

    def _worker(self) -> RowWorker:
        spec = self._spec.function
        key = (spec.name, repr(spec.call), self._tables.key)
        worker = cast("RowWorker | None", WORKERS.find(key))
        if worker is None:
            function = cast(RowFunction, find_function(spec.name))
            worker = function.row_worker(spec.call, self._tables.read())
            WORKERS.keep(key, worker)
        return worker

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {"tables": self._tables.snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot, with the same store."""
        self._tables.restore(snapshot["tables"])


def passed_on(
    changes: pa.RecordBatch, results: RowResults, passed: int, types: Sequence[pa.DataType]
) -> pa.RecordBatch:
    """The first columns of rows that have results, the results, and the rows' time."""
    rows = pa.array(results.rows)
    own = [column.take(rows) for column in row_columns(changes)[:passed]]
    times, diffs = times_of(changes)[results.rows], diffs_of(changes)[results.rows]
    typed = zip(results.columns, types[passed:-1], strict=True)
    columns = [*own, *(column.cast(kind) for column, kind in typed)]
    columns.append(pa.array(times).cast(types[-1]))
    return make_changes(columns, times, np.asarray(diffs))
