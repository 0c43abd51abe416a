"""The values of groups, with the count of each: runs sorted by group and value.

Every update becomes a run of added or removed counts. FANOUT runs of one level are merged into
one of the next, and all into one when more entries are held than twice the values there are and
what came last; what has come and gone vanishes in a merge. So a period costs its own changes and
a logarithmic number of rewrites.

Values of at most eight bytes are kept as integers of the same order. Others are kept as they
are, and what is held of the groups that are asked for is ranked when it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arrays import Bools, Int64s, as_int64
from nilometer.kernels.chunk import SORTED_LAYOUT, Chunk, Kernel, sorted_chunk
from nilometer.kernels.order_codes import joint_codes, order_codes
from nilometer.kernels.order_keys import has_order_keys, order_keys, values_of_keys
from nilometer.kernels.row_groups import row_groups
from nilometer.kernels.value_runs import GroupRuns, ValueRun, make_run
from nilometer.operators.change_specs import SortKey
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.group_table import joint_numbers

_FANOUT: Final = 8
_MOST_ROWS: Final = 4 << 20


@dataclass(frozen=True)
class Content:
    """The stored values of some groups, and new values, as integers of one order."""

    runs: GroupRuns
    keys: Int64s
    """Of the new values."""
    values: Callable[[Int64s, Bools], pa.Array]
    """The values that integers stand for, NULL where they are not valid."""


class ValueTable:
    """Values of one type. Groups are numbered by the user of the table."""

    def __init__(
        self, kind: pa.DataType, store: ChunkStore, order: tuple[SortKey, ...] = ()
    ) -> None:
        """`order`: the fields by which structs are ordered before all of them."""
        self.refs: list[ChunkRef] = []
        self._kind = kind
        self._order = order
        self._has_keys = has_order_keys(kind)
        self._store = store
        self._loaded: dict[str, Chunk] = {}

    def restore(self, refs: Iterable[ChunkRef]) -> None:
        """Continue with the chunks of a snapshot."""
        self.refs = list(refs)

    def take_over(self, old: Sequence[ValueTable], numbers: Int64s) -> None:
        """Take over from other tables the values of the groups that have these numbers here."""
        groups, values, counts = [], [], []
        for place, table in enumerate(old):
            for ref in table.refs:
                rows = table._load(ref).rows
                own = joint_numbers(as_int64(rows.column(0)), place, len(old))
                held = _as_run(rows).counts if self._has_keys else as_int64(rows.column(2))
                keep = np.isin(own, numbers)
                groups.append(own[keep])
                values.append(rows.column(1).filter(pa.array(keep)))
                counts.append(held[keep])
        if groups:
            column = pa.concat_arrays(values)
            run = self._net(np.concatenate(groups), column, np.concatenate(counts))
            self._write(*run, level=0)

    def content(self, numbers: Int64s, new: pa.Array) -> Content:
        """The stored values of groups with these numbers, and new values, none of them NULL."""
        chunks = [self._load(ref).rows for ref in self.refs]
        if self._has_keys:
            runs = GroupRuns([_as_run(rows) for rows in chunks], numbers)
            return Content(runs, order_keys(new), lambda k, v: values_of_keys(k, self._kind, v))
        held = [_of_groups(rows, numbers) for rows in chunks]
        values = pa.concat_arrays([new, *(rows.column(1) for rows in held)])
        ranks, distinct = self._rank(values)
        run, _ = make_run(
            np.concatenate([np.zeros(0, np.int64), *(as_int64(r.column(0)) for r in held)]),
            ranks[len(new) :],
            np.concatenate([np.zeros(0, np.int64), *(as_int64(r.column(2)) for r in held)]),
        )
        return Content(
            GroupRuns([run], numbers),
            ranks[: len(new)],
            lambda keys, valid: distinct.take(pa.array(keys, mask=~valid)),
        )

    def update(self, numbers: Int64s, values: pa.Array, diffs: Int64s) -> None:
        """Apply changes of counts; none of the values is NULL."""
        column = pa.array(order_keys(values)) if self._has_keys else values
        self._write(*self._net(numbers, column, diffs), level=0)
        while (group := self._full_level()) is not None:
            self._merge(group, group[0].level + 1)
        held = sum(ref.rows for ref in self.refs)
        if len(self.refs) > 1 and held > 2 * self._alive() + len(numbers):
            self._merge(list(self.refs), max(ref.level for ref in self.refs))

    def _full_level(self) -> list[ChunkRef] | None:
        for level in {ref.level for ref in self.refs}:
            group = [ref for ref in self.refs if ref.level == level and ref.rows < _MOST_ROWS]
            if len(group) >= _FANOUT:
                return group
        return None

    def _alive(self) -> int:
        """How many values there are, including copies."""
        if self._has_keys:
            return sum(int(as_int64(self._load(ref).rows.column(2))[-1]) for ref in self.refs)
        return sum(int(as_int64(self._load(ref).rows.column(2)).sum()) for ref in self.refs)

    def _merge(self, refs: Sequence[ChunkRef], level: int) -> None:
        parts = [self._load(ref).rows for ref in refs]
        numbers = np.concatenate([as_int64(rows.column(0)) for rows in parts])
        values = pa.concat_arrays([rows.column(1) for rows in parts])
        counts = [_as_run(r).counts if self._has_keys else as_int64(r.column(2)) for r in parts]
        for ref in refs:
            self.refs.remove(ref)
            self._loaded.pop(ref.id, None)
            self._store.remove(ref)
        self._write(*self._net(numbers, values, np.concatenate(counts)), level)

    def _net(self, numbers: Int64s, column: pa.Array, diffs: Int64s) -> tuple[ValueRun, pa.Array]:
        keys = as_int64(column) if self._has_keys else self._rank(column)[0]
        run, places = make_run(numbers, keys, diffs)
        return run, pa.array(run.values) if self._has_keys else column.take(pa.array(places))

    def _rank(self, values: pa.Array) -> tuple[Int64s, pa.Array]:
        """The ranks of values, none of them NULL, and the distinct values in order."""
        if pat.is_struct(values.type):
            return _rank_structs(values, self._order)
        distinct = values.unique()
        distinct = distinct.take(pc.sort_indices(distinct))
        ranks = pc.index_in(values, distinct)
        return np.asarray(ranks, dtype=np.int64), distinct

    def _write(self, run: ValueRun, column: pa.Array, level: int) -> None:
        counts = run.counts
        for begin in range(0, len(counts), _MOST_ROWS):
            part = slice(begin, begin + _MOST_ROWS)
            stored_counts = np.cumsum(counts[part]) if self._has_keys else counts[part]
            arrays = [pa.array(run.groups[part]), column[part], pa.array(stored_counts)]
            rows = pa.RecordBatch.from_arrays(arrays, ["group", "value", "count"])
            chunk = sorted_chunk(rows)
            ref = self._store.add(chunk, level)
            self._loaded[ref.id] = chunk
            self.refs.append(ref)

    def _load(self, ref: ChunkRef) -> Chunk:
        if ref.id not in self._loaded:
            self._loaded[ref.id] = self._store.load(ref, SORTED_LAYOUT, Kernel.MERGE)
        return self._loaded[ref.id]


def _as_run(rows: pa.RecordBatch) -> ValueRun:
    return ValueRun(*(as_int64(rows.column(i)) for i in range(3)))


def _of_groups(rows: pa.RecordBatch, numbers: Int64s) -> pa.RecordBatch:
    """The rows of groups of these numbers."""
    groups = as_int64(rows.column(0))
    begins, ends = np.searchsorted(groups, numbers), np.searchsorted(groups, numbers, "right")
    lengths = ends - begins
    first = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)
    return rows.take(pa.array(first + np.arange(len(first))))


def _rank_structs(values: pa.Array, order: tuple[SortKey, ...]) -> tuple[Int64s, pa.Array]:
    """The ranks of structs: by these fields, then by one after the other, NULLs first."""
    groups = row_groups([values], len(values))
    distinct = values.take(pa.array(groups.firsts))
    fields = [order_codes(one) for one in distinct.flatten()]
    codes = joint_codes([*(key.codes(fields[key.column]) for key in order), *fields], len(distinct))
    places = np.argsort(codes, kind="stable")
    ranks = np.empty(len(groups), np.int64)
    ranks[places] = np.arange(len(groups))
    return ranks[groups.numbers], distinct.take(pa.array(places))
