"""ORDER BY … LIMIT: the first rows in an order, at every instant.

Rows are kept with their counts in two tables: the head has all rows up to a boundary, and more
copies than are shown; the tail has the rest. While the head has enough, changes behind the
boundary are only counted. When it may run low, rows are moved from the tail; when it has grown
large, its end is moved there. So a period costs its changes and the head, not the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.gather import take
from nilometer.kernels.order_codes import joint_codes, order_codes
from nilometer.kernels.row_groups import group_ids, row_groups
from nilometer.kernels.row_ids import join_ids
from nilometer.kernels.top_counts import RowEvents, TopCounts
from nilometer.operators.change_operator import (
    StoredChunks,
    diffs_of,
    make_changes,
    no_changes,
    row_columns,
    times_of,
)
from nilometer.operators.change_specs import SortKey
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.group_table import Groups, GroupTable
from nilometer.operators.net_changes import net_changes
from nilometer.operators.row_counts import COPIES, count_rows, first_copies, move_rows

_SPARE: Final = 4096
"""How many copies the head holds beyond twice those shown, when it is cut or filled."""
_LARGE: Final = 4
"""The head is cut when it exceeds this multiple of that."""


@dataclass(frozen=True, slots=True)
class TopRowsSpec:
    """At most `limit` rows after the first `offset` in an order.

    Ties are ordered by all columns, ascending, NULLs first.
    """

    order: tuple[SortKey, ...]
    limit: int
    offset: int
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> TopRows:
        return TopRows(self, store)

    @property
    def end(self) -> int:
        """The first position that is not shown."""
        return self.offset + self.limit

    def ranks(self, columns: Sequence[pa.Array], size: int) -> Int64s:
        """The positions of rows in the order; equal rows share one."""
        codes = [order_codes(column) for column in columns]
        return joint_codes([*(key.codes(codes[key.column]) for key in self.order), *codes], size)


class TopRows:
    """Keeps all rows with their counts: the head, the tail, and the boundary, if there is one."""

    def __init__(self, spec: TopRowsSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._head = GroupTable(spec.types, store)
        self._tail = GroupTable(spec.types, store)
        self._boundary = GroupTable(spec.types, store)

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        return tuple(self._tables.values())

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given those of the input."""
        changes = net_changes(inputs[0])
        near = self._before_boundary(row_columns(changes), len(changes))
        head = self._head.contents()
        removed = -int(np.minimum(diffs_of(changes)[near], 0).sum())
        if int(head.value(COPIES).sum()) - removed < self._spec.end and self._boundary.refs:
            self._fill_head(-int(np.minimum(diffs_of(changes), 0).sum()))
            near = self._before_boundary(row_columns(changes), len(changes))
            head = self._head.contents()
        if not near.all():
            count_rows(self._tail, changes.take(pa.array(np.flatnonzero(~near))))
            changes = changes.take(pa.array(np.flatnonzero(near)))
        if not len(changes):
            return no_changes(self._spec.types)
        count_rows(self._head, changes)
        shown = self._replay(head, changes)
        self._cut_head()
        return shown

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {name: [ref.to_json() for ref in table.refs] for name, table in self._tables.items()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        for name, table in self._tables.items():
            table.restore(ChunkRef(**ref) for ref in snapshot[name])

    @property
    def _tables(self) -> dict[str, GroupTable]:
        return {"head": self._head, "tail": self._tail, "boundary": self._boundary}

    @property
    def _enough(self) -> int:
        return 2 * self._spec.end + _SPARE

    def _before_boundary(self, columns: Sequence[pa.Array], size: int) -> Bools:
        """Which rows belong to the head."""
        boundary = self._boundary.contents()
        if not len(boundary):
            return np.ones(size, np.bool_)
        together = [pa.concat_arrays(pair) for pair in zip(boundary.keys, columns, strict=True)]
        ranks = self._spec.ranks(together, 1 + size)
        near: Bools = ranks[1:] <= ranks[0]
        return near

    def _replay(self, head: Groups, changes: pa.RecordBatch) -> pa.RecordBatch:
        """How the shown rows change, given the head before the changes."""
        new = row_groups(row_columns(changes), len(changes))
        all_rows = group_ids(join_ids([head.ids, new.ids]))
        pairs = zip(head.keys, row_columns(changes), strict=True)
        rows = [
            take(pa.concat_arrays([old, take(column, new.firsts)]), all_rows.firsts)
            for old, column in pairs
        ]
        ranks = self._spec.ranks(rows, len(all_rows))
        counts = np.zeros(len(all_rows), np.int64)
        counts[ranks[all_rows.numbers[: len(head)]]] = head.value(COPIES)
        order = np.argsort(times_of(changes))
        events = RowEvents(
            ranks[all_rows.numbers[len(head) :][new.numbers[order]]],
            times_of(changes)[order],
            diffs_of(changes)[order],
        )
        shown = TopCounts(self._spec.offset, self._spec.end).changes(counts, events)
        places = np.argsort(ranks)[shown.rows]
        return make_changes([take(column, places) for column in rows], shown.times, shown.diffs)

    def _fill_head(self, removals: int) -> None:
        """Move enough rows from the tail for a period with this many removals."""
        tail = self._tail.contents()
        ranks = self._spec.ranks(tail.keys, len(tail))
        fetched = first_copies(ranks, tail.value(COPIES), self._enough + removals)
        self._set_boundary(tail, ranks, fetched)
        move_rows(tail.only(np.flatnonzero(fetched)), self._tail, self._head)

    def _cut_head(self) -> None:
        """Move the end of the head to the tail if it has grown large."""
        if sum(ref.rows for ref in self._head.refs) <= _LARGE * self._enough:
            return
        head = self._head.contents()
        ranks = self._spec.ranks(head.keys, len(head))
        stays = first_copies(ranks, head.value(COPIES), self._enough)
        if not stays.all():
            self._set_boundary(head, ranks, stays)
            move_rows(head.only(np.flatnonzero(~stays)), self._head, self._tail)

    def _set_boundary(self, rows: Groups, ranks: Int64s, before: Bools) -> None:
        """Set the boundary to the last row of the head; none if no rows are left beyond it."""
        self._boundary.clear()
        if not before.all():
            last = np.flatnonzero(before)[[np.argmax(ranks[before])]]
            self._boundary.update(rows.only(last))
