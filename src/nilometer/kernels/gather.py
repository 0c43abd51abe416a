"""Picking rows out of several chunks as if they were one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arrays import Int64s, as_int64

_CHEAP: Final = 2


class Gatherer:
    """Rows of several record batches of one schema, numbered consecutively from zero."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self._batches = batches
        self._ends = np.cumsum([len(batch) for batch in batches], dtype=np.int64)
        self._whole: pa.RecordBatch | None = batches[0] if len(batches) == 1 else None

    def columns(self, columns: Sequence[int], rows: Int64s) -> list[pa.Array]:
        """The values of some columns in the given rows."""
        if self._whole is None and self._ends[-1] <= _CHEAP * len(rows):
            self._whole = join_batches(self._batches)
        if self._whole is not None:
            return [take(self._whole.column(c), rows) for c in columns]
        pieces = self._pieces(rows)
        return [self._column(c, pieces, len(rows)) for c in columns]

    def _pieces(self, rows: Int64s) -> list[tuple[pa.RecordBatch, Int64s, Int64s]]:
        """(batch, positions in the given rows, positions in the batch) of each batch with rows."""
        owner = np.searchsorted(self._ends, rows, "right").astype(np.int16)
        order = np.argsort(owner, kind="stable")
        edges = np.searchsorted(owner[order], np.arange(len(self._batches) + 1))
        pieces = []
        for number, batch in enumerate(self._batches):
            places = order[edges[number] : edges[number + 1]]
            if len(places):
                pieces.append((batch, places, rows[places] - (self._ends[number] - len(batch))))
        return pieces

    def _column(
        self, column: int, pieces: Sequence[tuple[pa.RecordBatch, Int64s, Int64s]], rows: int
    ) -> pa.Array:
        parts = [batch.column(column) for batch, _, _ in pieces]
        if not parts:
            return self._batches[0].column(column).slice(0, 0)
        if all(map(_is_plain, parts)):
            values = np.empty(rows, dtype=np.int64)
            for part, (_, places, chosen) in zip(parts, pieces, strict=True):
                values[places] = as_int64(part)[chosen]
            return _plain(parts[0].type, values)
        taken = [part.take(pa.array(p[2])) for part, p in zip(parts, pieces, strict=True)]
        back = np.empty(rows, dtype=np.int64)
        back[np.concatenate([places for _, places, _ in pieces])] = np.arange(rows)
        return pa.concat_arrays(taken).take(pa.array(back))


def join_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of at least one batch, in one; a single batch is not copied."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def take(column: pa.Array, rows: Int64s) -> pa.Array:
    """The values in the given rows; numbers by numpy, which is faster."""
    if _is_plain(column):
        return _plain(column.type, as_int64(column)[rows])
    return column.take(pa.array(rows))


def _is_plain(column: pa.Array) -> bool:
    kind = column.type
    return bool(pat.is_primitive(kind) and kind.bit_width == 64 and column.null_count == 0)


def _plain(kind: pa.DataType, values: Int64s) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
