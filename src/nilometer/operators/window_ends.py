"""The answers of windows, appended: what holds at the instants at which windows end.

Rows come at such an instant and go a microsecond later. So whatever holds at an instant belongs
to windows that end there, also if equal rows held an instant before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.errors import InternalError
from nilometer.kernels.row_groups import row_groups
from nilometer.kernels.timeline import run_timeline
from nilometer.operators.change_operator import (
    EmitsWithoutInput,
    StoredChunks,
    diffs_of,
    make_changes,
    no_changes,
    row_columns,
    times_of,
)
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.net_changes import shown_rows
from nilometer.operators.pending import Pending
from nilometer.operators.share import Share

_LONGEST: Final = 1_000_000
"""No row may hold for this many instants in a row: it would not be a window's answer."""


@dataclass(frozen=True, slots=True)
class WindowEndsSpec(EmitsWithoutInput):
    """Rows of these types, one for each copy and instant."""

    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> WindowEnds:
        return WindowEnds(self, store)


class WindowEnds:
    """Emits what holds, instant by instant."""

    def __init__(self, spec: WindowEndsSpec, store: ChunkStore) -> None:
        self._types = spec.types
        self._held = Pending(spec.types, store)
        """The rows known to hold at the frontier."""

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        return (self._held.buffer,)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The rows of all instants strictly before a frontier, given the changes."""
        changes = self._held.take(inputs, frontier)
        if not len(changes):
            return no_changes(self._types)
        groups = row_groups(row_columns(changes), len(changes))
        nothing = np.zeros(len(groups), np.int64)
        line = run_timeline(groups.numbers, times_of(changes), [diffs_of(changes)], [nothing])
        copies = line.after[0]
        if (copies < 0).any():
            raise InternalError("a window was told to remove rows that are not there")
        until = np.append(line.times[1:], frontier)
        until[line.lasts] = frontier
        rows = groups.firsts[line.groups]
        still = line.lasts[copies[line.lasts] > 0]
        self._carry(changes, rows[still], copies[still], frontier)
        lengths = np.where(copies > 0, until - line.times, 0)
        if (lengths > _LONGEST).any():
            raise InternalError("a row holds between the ends of windows")
        shown = np.repeat(np.arange(len(lengths)), lengths)
        since = np.arange(len(shown)) - (np.cumsum(lengths) - lengths)[shown]
        each = np.repeat(np.arange(len(shown)), copies[shown])
        times = (line.times[shown] + since)[each]
        columns = shown_rows([changes], rows[shown[each]])
        return make_changes(columns, times, np.ones(len(times), np.int64))

    def _carry(
        self, changes: pa.RecordBatch, rows: np.ndarray, copies: np.ndarray, frontier: int
    ) -> None:
        """Keep what still holds at the frontier: it may be retracted there."""
        if len(rows):
            taken = [column.take(pa.array(rows)) for column in row_columns(changes)]
            instants = np.full(len(rows), frontier)
            self._held.take([make_changes(taken, instants, copies)], frontier)

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return self._held.snapshot()

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._held.restore(snapshot)

    def take_over(self, old: Sequence[WindowEnds], shares: Sequence[Share]) -> None:
        """Take over, without any state yet, the rows that belong to this bucket."""
        self._held.take_over([one._held for one in old], shares[0].require())
