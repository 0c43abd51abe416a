"""What stands between scans and the operators of changes: selections, joins, ROWS windows.

Each takes rows as a scan or a selection sends them, with `_time` and `_diff` behind their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, as_int64, as_type
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.window_join import Residual
from nilometer.local.memory_store import MemoryStore
from nilometer.model.expressions import Argument
from nilometer.model.time import FOREVER
from nilometer.operators.block import Block, BlockSpec
from nilometer.operators.change_join import ChangeJoin, ChangeJoinSpec
from nilometer.operators.change_operator import (
    diffs_of,
    make_changes,
    no_changes,
    row_columns,
    times_of,
)
from nilometer.operators.last_rows import LastRows, LastRowsSpec
from nilometer.operators.source_reader import SourceReader
from nilometer.operators.watermarks import NEVER


class Select:
    """Selection and projection of a stream: the columns that travel, of rows that matter."""

    def __init__(
        self, reader: SourceReader, spec: BlockSpec | LastRowsSpec, stream: int, by_arrival: bool
    ) -> None:
        self._reader = reader
        self._spec = spec
        self._stream = stream
        self._by_arrival = by_arrival

    @property
    def types(self) -> list[pa.DataType]:
        return list(self._spec.schemas[self._stream].types)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The rows of a scan as they travel on; negative ones as their positive ones did."""
        (rows,) = inputs
        arrivals = as_int64(rows.column(rows.num_columns - 3))
        if not self._by_arrival or not len(rows):
            return self._select(rows, None)
        parts = [
            self._select(rows.take(pa.array(np.flatnonzero(arrivals == now))), int(now))
            for now in np.unique(arrivals)
        ]
        return pa.concat_batches(parts)

    def _select(self, rows: pa.RecordBatch, now: int | None) -> pa.RecordBatch:
        own = rows.select(range(rows.num_columns - 3))
        carried, selected = self._reader.read(own, now)
        changes = make_changes(carried.columns, times_of(rows), diffs_of(rows))
        admitted, _ = self._spec.admit(self._stream, changes, selected)
        return admitted


class SelectPeriods:
    """A block of one stream: its rows with their periods, or signed if their scan signs them."""

    def __init__(self, select: Select, spec: BlockSpec, signed: bool) -> None:
        self._select = select
        self._spec = spec
        self._block = Block(spec, MemoryStore())
        self._signed = signed

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The rows of a scan as rows of the block."""
        rows = self._select.process(inputs, frontier)
        plain = rows.select(range(rows.num_columns - 2))
        periods = self._block.process([plain], [NEVER], [frontier], frontier)
        if not periods:
            return no_changes(self._spec.types)
        if not self._signed:
            return pa.concat_batches(periods)
        return make_changes(row_columns(periods[0]), times_of(rows), diffs_of(rows))


class JoinPeriods:
    """A window join: results with the periods in which they hold."""

    def __init__(self, spec: BlockSpec) -> None:
        self._block = Block(spec, MemoryStore())
        self._spec = spec
        self._static = spec.join.static

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The results of new rows."""
        rows = [given.select(range(given.num_columns - 2)) for given in inputs]
        streams = range(len(rows))
        after = [FOREVER if i in self._static else frontier for i in streams]
        results = self._block.process(rows, [NEVER for _ in streams], after, frontier)
        return pa.concat_batches(results) if results else no_changes(self._spec.types)


class JoinSigned:
    """A window join of positive and negative tuples: each joins what is there (Nile 4.6)."""

    def __init__(self, spec: BlockSpec) -> None:
        self._spec = spec
        join = spec.join
        kinds = tuple(join.schemas[stream].field(column).type for stream, column in join.output)
        self._join = ChangeJoin(
            ChangeJoinSpec(
                tuple(tuple(schema.types) for schema in join.schemas),
                tuple(layout.keys for layout in join.layouts),
                (*join.residuals, *_bounds(spec)),
                join.output,
                tuple(Argument(number) for number in range(len(kinds))),
                kinds,
            ),
            MemoryStore(),
        )
        timed = [i for i in range(len(join.layouts)) if i not in join.static]
        times = {(i, join.layouts[i].time) for i in timed}
        self._times = [number for number, place in enumerate(join.output) if place in times]

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The results that come and go."""
        changes = self._join.process(inputs, frontier)
        columns = row_columns(changes)
        times = np.max([as_int64(columns[number]) for number in self._times], axis=0)
        given = [pa.array(times), *columns]
        values = [
            as_type(evaluate(value, given, len(changes)), kind)
            for value, kind in zip(self._spec.values, self._spec.types, strict=True)
        ]
        return make_changes(values, times_of(changes), diffs_of(changes))


class RowsWindowed:
    """A ROWS window: rows come, and go when later ones displace them."""

    def __init__(self, spec: LastRowsSpec) -> None:
        self._leaf = LastRows(spec, MemoryStore())

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes of the window."""
        (rows,) = inputs
        plain = rows.select(range(rows.num_columns - 2))
        return pa.concat_batches(self._leaf.process([plain], [NEVER], [frontier], frontier))


@dataclass(frozen=True)
class _Within:
    """Whether the second time is at most so much later than the first."""

    limit: int

    def __call__(self, columns: Sequence[pa.Array]) -> Bools:
        earlier, later = map(as_int64, columns)
        within: Bools = later - earlier <= self.limit
        return within


def _bounds(spec: BlockSpec) -> list[Residual]:
    """The windows of a join as predicates on the times of its rows."""
    layouts, closed = spec.join.layouts, spec.join.network.closed
    return [
        Residual(((i, layouts[i].time), (j, layouts[j].time)), _Within(limit))
        for i, row in enumerate(closed)
        for j, limit in enumerate(row)
        if i != j and limit < FOREVER
    ]
