"""A join of changelogs: a result changes when one of its rows does.

Matching rows of all inputs make a result that takes effect at the latest of their changes, with
the product of their counts; so counts multiply at every instant. The state is all changes
so far, netted whenever more than half of them cancel. Static rows all come first, so that what is
joined with nothing else meets them at once, and need not be kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from nilometer.errors import PredicateError
from nilometer.kernels.arrays import Int64s, UInt64s, as_int64, validity
from nilometer.kernels.canonical import canonical
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, StreamKeys, make_chunk
from nilometer.kernels.key_hashes import is_exact
from nilometer.kernels.row_errors import Rows, compute, leaving_out
from nilometer.kernels.row_groups import row_groups
from nilometer.kernels.window_join import JoinRule, Residual, Side, join_new_rows, pick
from nilometer.model.expressions import Expression
from nilometer.model.join_cost import StreamLoad
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
from nilometer.operators.share import Share
from nilometer.operators.stream_buffer import StreamBuffer

_UNBOUND: Final = 1 << 61
"""A bound that excludes nothing, and can be added to any time."""
_FEW: Final = 1 << 12
"""Up to this many changes are kept without netting."""
_FEW_PAIRS: Final = 1 << 14
"""Up to this many pairs of changes are joined without cutting the period."""
_PAIRS_EACH: Final = 32
"""The number of pairs per new change below which another piece does not pay."""


@dataclass(frozen=True)
class ChangeJoinSpec:
    """Inputs, the keys and predicates that join them, and the values of results."""

    inputs: tuple[tuple[pa.DataType, ...], ...]
    keys: tuple[StreamKeys, ...]
    """The columns of every key in each input."""
    residuals: tuple[Residual, ...]
    output: tuple[tuple[int, int], ...]
    """(input, column) of each argument of the values."""
    values: tuple[Expression, ...]
    types: tuple[pa.DataType, ...]
    passing: int | None = None
    """The input that is not stored, since all others are static."""
    names: tuple[str, ...] = ()
    """What the arguments of the values are called."""

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
        self._orders = JoinOrders(loads, spec.links, spec.kernel, spec.residuals)

    @property
    def stored(self) -> Sequence[StreamBuffer]:
        return self._buffers

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given those of all inputs.

        A period with additions and retractions is cut where rows would meet others long retracted:
        rows retracted by the end of a piece are absent from the next one.
        """
        results = [no_changes(self._spec.types)]
        waiting = [list(inputs)]
        while waiting:
            piece = waiting.pop()
            sides = [self._side(i, changes) for i, changes in enumerate(piece)]
            if self._meet_in_vain(sides) and (middle := _middle(piece)) is not None:
                earlier, later = zip(*(_split(one, middle) for one in piece), strict=True)
                waiting += [list(later), list(earlier)]
                continue
            joined = self._join_all(sides)
            for i, side in enumerate(sides):
                self._retain(i, side, is_cut=bool(waiting))
            results += [net_changes(pa.concat_batches(joined))] if waiting and joined else joined
        return pa.concat_batches(results)

    def _join_all(self, sides: Sequence[Side]) -> list[pa.RecordBatch]:
        try:
            with leaving_out(None):  # errors may come from rows that never held together
                return [self._finish(one) for one in self._join(sides, self._rule)]
        except (PredicateError, pa.ArrowInvalid):
            return [self._join_netted(sides)]

    def _meet_in_vain(self, sides: Sequence[Side]) -> bool:
        """Whether new changes would meet each other much more often than stored rows.

        Then most of them belong to rows that come and go within the period, at different times.
        """
        new = [0 if side.new is None else len(side.new) for side in sides]
        fewest = max(_PAIRS_EACH * sum(new), _FEW_PAIRS)
        if not all(new) or _pairs_at_most(new) <= fewest:
            return False
        key = next((k for k in range(len(self._spec.keys[0])) if self._is_common(k)), None)
        counts = [_counts([side.new] if side.new else [], key) for side in sides]
        among = sum(_pairs(a, b) for a, b in combinations(counts, 2))
        if among <= fewest:
            return False
        old = [_counts(side.old, key) for side in sides]
        with_old = sum(
            _pairs(a, b) for i, a in enumerate(counts) for j, b in enumerate(old) if i != j
        )
        return among > with_old

    def _is_common(self, key: int) -> bool:
        return all(own[key] is not None for own in self._spec.keys)

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
        """The same, but nothing is tested or computed for rows that never held together.

        A retracted row still meets others, as an addition and a retraction; these
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
            columns = [changes.column(place) for place in range(first, last)]
            passed = one.test(columns, diffs_of(changes) > 0)
            changes = changes.take(pa.array(np.flatnonzero(passed)))
            first = last
        return self._finish(changes)

    def _finish(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        first = changes.select(list(range(len(self._spec.output))))
        rows = Rows(first.columns, len(changes), self._spec.names, counted=diffs_of(changes) > 0)
        wanted = list(zip(self._spec.values, self._spec.types, strict=True))
        values, computable = compute(wanted, rows)
        if computable is not None:
            changes = changes.take(pa.array(computable))
        return make_changes(values, times_of(changes), diffs_of(changes))

    def _side(self, number: int, changes: pa.RecordBatch) -> Side:
        """The input to the join: its changes so far and these; NULL never joins."""
        layout = self._layouts[number]
        columns = [canonical(column) for column in row_columns(changes)]
        changes = make_changes(columns, times_of(changes), diffs_of(changes))
        for column in layout.key_columns:
            valid = validity(changes.column(column))
            if valid is not None:
                changes = changes.take(pa.array(np.flatnonzero(valid)))
        chunk = make_chunk(changes, layout, self._spec.kernel) if len(changes) else None
        return Side(self._buffers[number].chunks(), chunk)

    def _retain(self, number: int, side: Side, *, is_cut: bool) -> None:
        """Store new changes; retracted rows are dropped soon, or at once in a cut period."""
        if side.new is None or number == self._spec.passing:
            return
        buffer = self._buffers[number]
        buffer.add(side.new)
        self._alive[number] += int(diffs_of(side.new.rows).sum())
        spare = 0 if is_cut else len(side.new) + _FEW
        if buffer.rows > 2 * self._alive[number] + spare:
            self._net(number)
        else:
            buffer.tidy(-_UNBOUND, 0, lambda chunk: np.ones(len(chunk), np.bool_))

    def _net(self, number: int) -> None:
        """Keep one change per row, and none for retracted rows."""
        buffer = self._buffers[number]
        changes = pa.concat_batches([chunk.rows for chunk in buffer.chunks()])
        groups = row_groups(row_columns(changes), len(changes))
        counts = np.zeros(len(groups), np.int64)
        np.add.at(counts, groups.numbers, diffs_of(changes))
        alive = np.flatnonzero(counts)
        netted = changes.take(pa.array(groups.firsts[alive]))
        netted = netted.set_column(
            netted.num_columns - 1, netted.schema[-1], pa.array(counts[alive])
        )
        buffer.replace(
            [make_chunk(netted, self._layouts[number], self._spec.kernel)] if len(netted) else []
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

    def take_over(self, old: Sequence[ChangeJoin], shares: Sequence[Share]) -> None:
        """Take over, without any state yet, the rows that belong to this bucket."""
        for i, (buffer, share) in enumerate(zip(self._buffers, shares, strict=True)):
            buffer.take_over([one._buffers[i] for one in old], share.require())
            held = (int(diffs_of(chunk.rows).sum()) for chunk in buffer.chunks())
            self._alive[i] = sum(held)
        self._orders.restore(old[0]._orders.to_json())


def _middle(inputs: Sequence[pa.RecordBatch]) -> int | None:
    """The median instant of the changes; None if all are at one instant."""
    times = np.concatenate([times_of(changes) for changes in inputs])
    first, middle = int(times.min()), int(np.partition(times, len(times) // 2)[len(times) // 2])
    if middle > first:
        return middle
    later = times[times > first]
    return int(later.min()) if len(later) else None


def _split(changes: pa.RecordBatch, middle: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The changes before an instant, and those from it on."""
    earlier = times_of(changes) < middle
    before, after = (pa.array(np.flatnonzero(one)) for one in (earlier, ~earlier))
    return changes.take(before), changes.take(after)


_Counts: TypeAlias = tuple[UInt64s, Int64s] | int
"""The number of rows with each hash, or of all rows, where there is no key."""


def _counts(chunks: Sequence[Chunk], key: int | None) -> _Counts:
    if key is None:
        return sum(map(len, chunks))
    if not chunks:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    hashes, counts = np.unique(np.concatenate([c.hashes[key] for c in chunks]), return_counts=True)
    return hashes, counts


def _pairs(left: _Counts, right: _Counts) -> int:
    """The number of pairs of rows with the same key."""
    if isinstance(left, int) or isinstance(right, int):
        assert isinstance(left, int)
        assert isinstance(right, int)
        return left * right
    _, mine, theirs = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
    return int((left[1][mine].astype(np.float64) * right[1][theirs]).sum())


def _pairs_at_most(sizes: Sequence[int]) -> int:
    return sum(a * b for a, b in combinations(sizes, 2))
