"""A join of changelogs: a result changes when one of its rows does.

Rows of all inputs that fit make a result that takes effect at the latest of their changes, with
the product of their counts; so counts multiply at every instant. What is kept are all changes
so far, netted whenever more than half of them cancel. Static rows all come first, so that what is
joined with nothing else meets them at once, and need not be kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.errors import PredicateError
from nilometer.kernels.arrays import as_int64, as_type, validity
from nilometer.kernels.canonical import canonical
from nilometer.kernels.chunk import Kernel, RowLayout, StreamKeys, make_chunk
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.key_hashes import is_exact
from nilometer.kernels.row_groups import row_groups
from nilometer.kernels.window_join import JoinRule, Residual, Side, join_new_rows, pick
from nilometer.model.expressions import Expression
from nilometer.model.join_order import StreamLoad
from nilometer.operators.change_operator import (
    diffs_of,
    make_changes,
    no_changes,
    row_columns,
    times_of,
)
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.join_orders import ASSUMED_DISTINCT, ASSUMED_TABLE, JoinOrders
from nilometer.operators.net_changes import net_changes
from nilometer.operators.stream_buffer import StreamBuffer

_UNBOUND: Final = 1 << 61
"""A bound that binds nothing, and can be added to any time."""
_FEW: Final = 1 << 12
"""So many changes are kept without thinking of netting them."""


@dataclass(frozen=True)
class ChangeJoinSpec:
    """Inputs, the keys and predicates that join them, and what is computed of results."""

    inputs: tuple[tuple[pa.DataType, ...], ...]
    keys: tuple[StreamKeys, ...]
    """The columns of every key in each input."""
    residuals: tuple[Residual, ...]
    output: tuple[tuple[int, int], ...]
    """(input, column) of each argument of the values."""
    values: tuple[Expression, ...]
    types: tuple[pa.DataType, ...]
    passing: int | None = None
    """The input that is not kept, since all others are static."""

    @property
    def kernel(self) -> Kernel:
        return Kernel.HASH if self.keys[0] else Kernel.MERGE

    @property
    def rule(self) -> JoinRule:
        n = len(self.inputs)
        exact = tuple(self._is_exact(key) for key in range(len(self.keys[0])))
        return JoinRule(((_UNBOUND,) * n,) * n, self.keys, exact, self.residuals)

    @property
    def links(self) -> list[frozenset[int]]:
        """The inputs that each key links."""
        return [
            frozenset(i for i, own in enumerate(self.keys) if own[key] is not None)
            for key in range(len(self.keys[0]))
        ]

    def _is_exact(self, key: int) -> bool:
        for types, own in zip(self.inputs, self.keys, strict=True):
            columns = own[key]
            if columns is not None:
                return is_exact([types[c] for c in columns])
        return False

    def start(self, store: ChunkStore) -> ChangeJoin:
        return ChangeJoin(self, store)


class ChangeJoin:
    """A running join of changelogs."""

    def __init__(self, spec: ChangeJoinSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._rule = spec.rule
        self._layouts = [
            RowLayout(len(types), keys) for types, keys in zip(spec.inputs, spec.keys, strict=True)
        ]
        self._buffers = [StreamBuffer(layout, spec.kernel, store) for layout in self._layouts]
        self._alive = [0] * len(spec.inputs)
        distinct = (ASSUMED_DISTINCT,) * len(spec.links)
        loads = [StreamLoad.of_table(ASSUMED_TABLE, distinct) for _ in spec.inputs]
        self._orders = JoinOrders(loads, spec.links, spec.kernel)

    @property
    def stored(self) -> Sequence[StreamBuffer]:
        return self._buffers

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given those of all inputs."""
        sides = [self._side(i, changes) for i, changes in enumerate(inputs)]
        try:
            results = [self._finish(one) for one in self._join(sides, self._rule)]
        except PredicateError:
            results = [self._join_netted(sides)]
        for i, side in enumerate(sides):
            self._retain(i, side)
        return pa.concat_batches([no_changes(self._spec.types), *results])

    def _join(
        self, sides: Sequence[Side], rule: JoinRule, more: Sequence[tuple[int, int]] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Changes of the arguments of values, and of more columns."""
        counts = [(i, len(types) + 1) for i, types in enumerate(self._spec.inputs)]
        for tuples in join_new_rows(sides, rule, self._orders.update(sides)):
            diffs = reduce(np.multiply, map(as_int64, pick(counts, tuples, sides)))
            columns = pick((*self._spec.output, *more), tuples, sides)
            yield make_changes(columns, tuples.latest, diffs)

    def _join_netted(self, sides: Sequence[Side]) -> pa.RecordBatch:
        """The same, but nothing is asked or computed of rows that were never there together.

        A row that has gone still meets others, as a change that comes and one that goes; they
        cancel, but an expression over the two may fail.
        """
        more = [place for one in self._spec.residuals for place in one.columns]
        parts = list(self._join(sides, replace(self._rule, residuals=()), more))
        if not parts:
            return no_changes(self._spec.types)
        changes = net_changes(pa.concat_batches(parts))
        first = len(self._spec.output)
        for one in self._spec.residuals:
            last = first + len(one.columns)
            passed = one.test([changes.column(place) for place in range(first, last)])
            changes = changes.take(pa.array(np.flatnonzero(passed)))
            first = last
        return self._finish(changes)

    def _finish(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        columns = row_columns(changes)
        values = [
            as_type(evaluate(value, columns, len(changes)), kind)
            for value, kind in zip(self._spec.values, self._spec.types, strict=True)
        ]
        return make_changes(values, times_of(changes), diffs_of(changes))

    def _side(self, number: int, changes: pa.RecordBatch) -> Side:
        """What an input brings into the join: its changes so far and these; NULL never joins."""
        layout = self._layouts[number]
        columns = [canonical(column) for column in row_columns(changes)]
        changes = make_changes(columns, times_of(changes), diffs_of(changes))
        for column in layout.key_columns:
            valid = validity(changes.column(column))
            if valid is not None:
                changes = changes.take(pa.array(np.flatnonzero(valid)))
        chunk = make_chunk(changes, layout, self._spec.kernel) if len(changes) else None
        return Side(self._buffers[number].chunks(), chunk)

    def _retain(self, number: int, side: Side) -> None:
        if side.new is None or number == self._spec.passing:
            return
        buffer = self._buffers[number]
        buffer.add(side.new)
        self._alive[number] += int(diffs_of(side.new.rows).sum())
        if buffer.rows > 2 * self._alive[number] + len(side.new) + _FEW:
            self._net(number)
        else:
            buffer.tidy(-_UNBOUND, 0, lambda chunk: np.ones(len(chunk), np.bool_))

    def _net(self, number: int) -> None:
        """Keep one change per row, and none of rows that are gone."""
        buffer = self._buffers[number]
        changes = pa.concat_batches([chunk.rows for chunk in buffer.chunks()])
        groups = row_groups(row_columns(changes), len(changes))
        counts = np.zeros(len(groups), np.int64)
        np.add.at(counts, groups.numbers, diffs_of(changes))
        alive = np.flatnonzero(counts)
        kept = changes.take(pa.array(groups.firsts[alive]))
        kept = kept.set_column(kept.num_columns - 1, kept.schema[-1], pa.array(counts[alive]))
        buffer.replace(
            [make_chunk(kept, self._layouts[number], self._spec.kernel)] if len(kept) else []
        )

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "inputs": [[ref.to_json() for ref in buffer.refs] for buffer in self._buffers],
            "alive": list(self._alive),
            "orders": self._orders.to_json(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        for buffer, refs in zip(self._buffers, snapshot["inputs"], strict=True):
            buffer.restore(ChunkRef(**ref) for ref in refs)
        self._alive = list(snapshot["alive"])
        self._orders.restore(snapshot["orders"])
