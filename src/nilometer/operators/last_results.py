"""A ROWS window over results: the last n append-only rows, until later ones arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.errors import InternalError
from nilometer.kernels.rows_window import RowsWindow
from nilometer.operators.change_operator import (
    TIME,
    StoredChunks,
    diffs_of,
    make_changes,
    no_changes,
)
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.open_rows import OpenRows
from nilometer.operators.share import Share


@dataclass(frozen=True)
class LastResultsSpec:
    """How many results are kept per partition; ties are ordered by all columns."""

    count: int
    partition: tuple[int, ...]
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> LastResults:
        return LastResults(self, store)


class LastResults:
    """A running ROWS window over results."""

    def __init__(self, spec: LastResultsSpec, store: ChunkStore) -> None:
        self._types = spec.types
        columns = [(f"c{i}", kind) for i, kind in enumerate(spec.types)]
        schema = pa.schema([*columns, (TIME, pa.int64())])
        order = tuple(range(len(columns)))
        window = RowsWindow(spec.count, spec.partition, order, None)
        self._open = OpenRows(schema, len(columns), window, store)

    @property
    def stored(self) -> Sequence[StoredChunks]:
        return [self._open.buffer]

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given the results that have arrived."""
        diffs = diffs_of(inputs[0])
        if (diffs != 1).any():
            raise InternalError("results under a ROWS window only come, one by one")
        rows = inputs[0].remove_column(inputs[0].num_columns - 1)
        changes = [no_changes(self._types)]
        for moved, times, diff in self._open.slide(rows):
            columns = moved.columns[: len(self._types)]
            changes.append(make_changes(columns, times, np.full(len(moved), diff)))
        return pa.concat_batches(changes)

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {"open": self._open.snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._open.restore(snapshot["open"])

    def take_over(self, old: Sequence[LastResults], shares: Sequence[Share]) -> None:
        """Take over, without any state yet, the partitions that belong to this bucket."""
        self._open.take_over([one._open for one in old], shares[0].require())
