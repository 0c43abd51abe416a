"""A leaf of a windowed plan: input from another stage, as signed rows or as periods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nilometer.kernels.admit import Punctuation
from nilometer.kernels.arrays import as_int64
from nilometer.kernels.chunk import RowLayout
from nilometer.model.time import FOREVER
from nilometer.operators.block import UNTIL
from nilometer.operators.change_operator import DIFF, TIME, make_changes, row_columns, times_of


@dataclass(frozen=True)
class ReceivedSpec:
    """Rows of these types, each with the time of a change and its count, or with a period."""

    types: tuple[pa.DataType, ...]
    as_periods: bool

    @property
    def schema(self) -> pa.Schema:
        columns = [(f"c{i}", kind) for i, kind in enumerate(self.types)]
        return pa.schema([*columns, (TIME, pa.int64()), (self._last, pa.int64())])

    @property
    def schemas(self) -> tuple[pa.Schema, ...]:
        return (self.schema,)

    @property
    def layouts(self) -> tuple[RowLayout, ...]:
        return (RowLayout(len(self.types), ()),)

    @property
    def _last(self) -> str:
        return UNTIL if self.as_periods else DIFF

    def admit(
        self, stream: int, rows: pa.RecordBatch, selected: pa.Array | None = None
    ) -> tuple[pa.RecordBatch, Punctuation]:
        """All rows: their sender has checked them."""
        times = times_of(rows)
        return rows, Punctuation(None, len(rows), 0, int(times.max()) if len(times) else None)


def changes_of(periods: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Rows that hold for a period, as changes: each is added, and retracted if its period ends."""
    columns, ends = row_columns(periods), as_int64(periods.column(periods.num_columns - 1))
    ones = np.ones(len(periods), np.int64)
    comings = make_changes(columns, times_of(periods), ones)
    if len(ends) and ends.max() >= FOREVER:
        ending = np.flatnonzero(ends < FOREVER)
        taken: Sequence[pa.Array] = [column.take(pa.array(ending)) for column in columns]
        return [comings, make_changes(taken, ends[ending], -ones[: len(ending)])]
    return [comings, make_changes(columns, ends, -ones)]
