"""DISTINCT and the set operators: counts over time as functions of counts over time.

Per distinct row there are s copies in the first input and r in the second. The timeline of both
counts gives the count of the result before and after every instant; where these differ there is a
change. Rows that come and go within a period leave no state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.row_groups import RowGroups, group_ids
from nilometer.kernels.row_ids import identify_rows, join_ids
from nilometer.kernels.timeline import Timeline, run_timeline
from nilometer.operators.change_operator import (
    StoredChunks,
    diffs_of,
    make_changes,
    no_changes,
    row_columns,
    times_of,
)
from nilometer.operators.change_specs import SetFunction
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.content import Content
from nilometer.operators.group_table import Groups, GroupTable
from nilometer.operators.net_changes import shown_rows
from nilometer.operators.row_counts import check_counts
from nilometer.operators.share import ROUTE, Columns, Share, routes


@dataclass(frozen=True, slots=True)
class SetCountsSpec:
    """A set operator over rows of these types."""

    function: SetFunction
    types: tuple[pa.DataType, ...]
    routed_by: Columns = None
    """The columns by which rows are together in buckets."""

    def start(self, store: ChunkStore) -> SetCounts:
        return SetCounts(self, store)


class SetCounts:
    """Keeps how many copies of each distinct row the inputs hold, but not the rows."""

    def __init__(self, spec: SetCountsSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._table = GroupTable((), store)

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        return (self._table,)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given those of all inputs."""
        if not any(map(len, inputs)):
            return no_changes(self._spec.types)
        groups = group_ids(join_ids([identify_rows(row_columns(i), len(i)) for i in inputs]))
        line = self._count(groups, inputs)
        function = self._spec.function
        diffs = _count_of(function, line.after) - _count_of(function, line.before)
        some = np.flatnonzero(diffs)
        rows = groups.firsts[line.groups[some]]
        return make_changes(shown_rows(inputs, rows), line.times[some], diffs[some])

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {"counts": [ref.to_json() for ref in self._table.refs]}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._table.restore(ChunkRef(**ref) for ref in snapshot["counts"])

    def content(self, marks: Sequence[int]) -> Content:
        """What its state says."""
        return self._table.content()

    def take_over(self, old: Sequence[SetCounts], shares: Sequence[Share]) -> None:
        """Take over, without any state yet, the rows that belong to this bucket."""
        share = shares[0].require()
        self._table.take_over([one._table for one in old], share)

    def _count(self, groups: RowGroups, inputs: Sequence[pa.RecordBatch]) -> Timeline:
        """The counts of this period's rows over time; they are stored."""
        names, deltas = _deltas(self._spec.function, inputs)
        known = Groups(groups.ids, (), self._table.lookup(groups.ids))
        initial = [known.value(name) for name in names]
        times = np.concatenate([times_of(changes) for changes in inputs])
        line = run_timeline(groups.numbers, times, deltas, initial)
        check_counts(line, self._spec.function)
        totals = [counts[line.lasts] for counts in line.after]
        differ = [total != first for total, first in zip(totals, initial, strict=True)]
        changed = np.flatnonzero(np.logical_or.reduce(differ))
        values = {name: total[changed] for name, total in zip(names, totals, strict=True)}
        routed_by = self._spec.routed_by
        rows = shown_rows(inputs, groups.firsts[changed]) if routed_by else ()
        route = routes(rows, routed_by)
        if route is not None:
            alive = np.logical_or.reduce([total != 0 for total in values.values()])
            values[ROUTE] = np.where(alive, route, 0)
        self._table.update(Groups(groups.ids.only(changed), (), values))
        return line


def _deltas(
    function: SetFunction, inputs: Sequence[pa.RecordBatch]
) -> tuple[tuple[str, ...], list[Int64s]]:
    """The stored counts, and what each change adds to them."""
    diffs = [diffs_of(changes) for changes in inputs]
    if function in (SetFunction.DISTINCT, SetFunction.UNION):
        return ("s",), [np.concatenate(diffs)]
    first, second = diffs
    zeros = np.zeros_like
    return ("s", "r"), [
        np.concatenate([first, zeros(second)]),
        np.concatenate([zeros(first), second]),
    ]


def _count_of(function: SetFunction, counts: Sequence[Int64s]) -> Int64s:
    """The number of copies in the result."""
    s, r = counts[0], counts[-1]
    match function:
        case SetFunction.DISTINCT | SetFunction.UNION:
            return np.minimum(s, 1)
        case SetFunction.INTERSECT:
            return np.minimum(np.minimum(s, r), 1)
        case SetFunction.INTERSECT_ALL:
            return np.minimum(s, r)
        case SetFunction.EXCEPT:
            return np.where(r == 0, np.minimum(s, 1), np.int64(0))
        case SetFunction.EXCEPT_ALL:
            return s - np.minimum(s, r)
        case SetFunction.WITHOUT:
            return np.where(r == 0, s, np.int64(0))
        case SetFunction.WITH:
            return np.where(r > 0, s, np.int64(0))
