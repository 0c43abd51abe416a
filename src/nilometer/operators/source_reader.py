"""Rows of a source as they travel: expressions that Spark would compute are computed here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nilometer.kernels.expand_arrays import expand_arrays
from nilometer.kernels.row_errors import Rows, compute
from nilometer.log.layout import TIMESTAMP
from nilometer.model.expressions import Expression
from nilometer.model.time import EARLIEST


@dataclass(frozen=True)
class SourceReader:
    """Turns a source's rows into the columns that travel, and marks the selected rows.

    Rows that cannot be computed are left out where that is allowed.

    Its expressions are over the columns of the relation, followed by the arrival time.
    """

    relation: str
    is_table: bool
    columns: tuple[tuple[Expression, pa.DataType], ...]
    selection: Expression | None
    arrays: tuple[tuple[Expression, pa.DataType], ...] = ()
    """Arrays whose items make rows; an item and its number are appended as columns."""

    def read(self, rows: pa.RecordBatch, now: int | None) -> tuple[pa.RecordBatch, pa.Array | None]:
        """The columns of rows that arrived at the time `now`, and which of them are selected."""
        for array, kind in self.arrays:
            rows = self._expanded(rows, array, kind)
        all_columns = [*rows.columns, self._clock(len(rows), now)]
        wanted = list(self.columns)
        if self.selection is not None:
            wanted.append((self.selection, pa.bool_()))
        inputs = Rows(all_columns, len(rows), rows.schema.names, self.relation)
        columns, _ = compute(wanted, inputs)
        selected = None if self.selection is None else columns.pop()
        names = [f"c{i}" for i in range(len(columns))]
        return pa.RecordBatch.from_arrays(columns, names), selected

    def _expanded(
        self, rows: pa.RecordBatch, array: Expression, kind: pa.DataType
    ) -> pa.RecordBatch:
        inputs = Rows(rows.columns, len(rows), rows.schema.names, self.relation)
        (arrays,), computable = compute([(array, kind)], inputs)
        columns = rows.columns if computable is None else rows.take(pa.array(computable)).columns
        wider = expand_arrays(columns, arrays)
        names = [f"c{i}" for i in range(len(columns), len(wider))]
        return pa.RecordBatch.from_arrays(wider, [*rows.schema.names, *names])

    def _clock(self, size: int, now: int | None) -> pa.Array:
        instant = EARLIEST if self.is_table else now
        if instant is None:
            return pa.nulls(size, TIMESTAMP)
        return pa.array(np.full(size, instant)).view(TIMESTAMP)
