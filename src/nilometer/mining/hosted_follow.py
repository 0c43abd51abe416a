"""Functions that follow the rows of each key in a windowed plan: the state of a key is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.row_ids import RowIds
from nilometer.mining.hosted import FunctionCall, KeyRows, StaticTables, only, rows_by_key
from nilometer.mining.hosted_rows import passed_on
from nilometer.mining.registry import find_function
from nilometer.mining.saved_state import decode, encode
from nilometer.mining.table_function import Columns, FollowFunction, RowResults
from nilometer.operators.change_operator import StoredChunks, no_changes, row_columns
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.group_table import Groups, GroupTable
from nilometer.operators.watermarks import NEVER

_UNTIL: Final = "until"
"""Until when the state of a key is needed; never 0, which marks a removed key."""


@dataclass(frozen=True)
class FollowSpec:
    """A function that follows keys; results: the first columns of its input, its own, the time."""

    function: FunctionCall
    passed: int
    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> HostedFollow:
        return HostedFollow(self, store)


class HostedFollow:
    """A running function that follows keys."""

    def __init__(self, spec: FollowSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._tables = StaticTables(spec.function, store)
        self._states = GroupTable([pa.large_binary()], store)
        self._sweep_at = NEVER
        """Once the frontier reaches this, many states are no longer needed."""

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """Everything that it keeps in the store."""
        return (*self._tables.buffers, self._states)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given new rows."""
        self._tables.take(inputs[1:])
        changes = inputs[0]
        if not len(changes):
            return no_changes(self._spec.types)
        groups, keys = rows_by_key(changes, self._spec.function.keys)
        columns = self._spec.function.columns(row_columns(changes))
        results = self._follow(groups.ids, keys, columns)
        self._sweep(frontier)
        return passed_on(changes, results, self._spec.passed, self._spec.types)

    def _follow(self, ids: RowIds, keys: Sequence[KeyRows], columns: Columns) -> RowResults:
        function = cast(FollowFunction, find_function(self._spec.function.name))
        tables = self._tables.read()
        known = self._known(ids)
        parts: list[tuple[KeyRows, RowResults]] = []
        states: list[bytes] = []
        untils = np.zeros(len(ids), np.int64)
        for key in keys:
            saved = known.get((int(ids.h1[key.number]), int(ids.h2[key.number])))
            follower = function.follower(
                self._spec.function.call, tables, None if saved is None else decode(saved)
            )
            parts.append((key, follower.follow(key.times, only(columns, key.places))))
            until = follower.dead_after()
            untils[key.number] = 0 if until is None else (until or 1)
            states.append(b"" if until is None else encode(follower.save()))
        self._states.update(Groups(ids, [pa.array(states, pa.large_binary())], {_UNTIL: untils}))
        return self._together(parts)

    def _known(self, ids: RowIds) -> dict[tuple[int, int], bytes]:
        held = self._states.find(ids)
        names = zip(held.ids.h1.tolist(), held.ids.h2.tolist(), strict=True)
        return dict(zip(names, (one.as_py() for one in held.keys[0]), strict=True))

    def _together(self, parts: Sequence[tuple[KeyRows, RowResults]]) -> RowResults:
        """The results of all keys, by the positions of rows in the input."""
        rows = [key.places[results.rows] for key, results in parts]
        kinds = self._spec.types[self._spec.passed : -1]
        columns = tuple(
            pa.concat_arrays([results.columns[i].cast(kind) for _, results in parts])
            for i, kind in enumerate(kinds)
        )
        return RowResults(np.concatenate(rows) if rows else np.zeros(0, np.int64), columns)

    def _sweep(self, frontier: int) -> None:
        """Drop keys whose states are no longer needed, once they are at least half of all."""
        if frontier <= self._sweep_at:
            return
        held = self._states.contents()
        untils: Int64s = held.value(_UNTIL)
        dead = held.only(np.flatnonzero(untils < frontier))
        self._states.update(Groups(dead.ids, dead.keys, {}))
        alive = untils[untils >= frontier]
        self._sweep_at = int(np.sort(alive)[len(alive) // 2]) if len(alive) else frontier

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "tables": self._tables.snapshot(),
            "states": [ref.to_json() for ref in self._states.refs],
            "sweep_at": self._sweep_at,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot, with the same store."""
        self._tables.restore(snapshot["tables"])
        self._states.restore(ChunkRef(**ref) for ref in snapshot["states"])
        self._sweep_at = snapshot["sweep_at"]
