"""The running leaves of a windowed plan: rows in, changes or periods out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from nilometer.operators.block import BlockSpec, RunningBlock
from nilometer.operators.change_operator import StoredChunks
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.content import Content
from nilometer.operators.last_rows import LastRowsSpec, RunningLastRows
from nilometer.operators.pending import Pending
from nilometer.operators.received import ReceivedSpec, changes_of
from nilometer.operators.share import Share, StreamShare

LeafSpec: TypeAlias = BlockSpec | LastRowsSpec | ReceivedSpec


class BlockOfChanges(RunningBlock):
    """A block that emits its rows as changes: it keeps the ends of their periods."""

    def __init__(self, spec: BlockSpec, store: ChunkStore) -> None:
        super().__init__(spec, store)
        self._pending = Pending(spec.types, store)

    @property
    def rows_held(self) -> list[int]:
        held = super().rows_held
        return [held[0] + self._pending.buffer.rows, *held[1:]]

    @property
    def stored(self) -> Sequence[StoredChunks]:
        return [*super().stored, self._pending.buffer]

    def process(
        self,
        rows: Sequence[pa.RecordBatch],
        before: Sequence[int],
        after: Sequence[int],
        frontier: int,
    ) -> list[pa.RecordBatch]:
        periods = super().process(rows, before, after, frontier)
        changes = [change for period in periods for change in changes_of(period)]
        return [self._pending.take(changes, frontier)]

    def snapshot(self) -> dict[str, Any]:
        return {"block": super().snapshot(), "pending": self._pending.snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        super().restore(snapshot["block"])
        self._pending.restore(snapshot["pending"])

    def content(self, marks: Sequence[int]) -> Content:
        return super().content(marks), self._pending.content()

    def take_over(
        self, old: Sequence[RunningBlock], shares: Sequence[StreamShare], output: Share
    ) -> None:
        super().take_over(old, shares, output)
        pending = [one._pending for one in old if isinstance(one, BlockOfChanges)]
        self._pending.take_over(pending, output.require())


class ReceivingLeaf:
    """A leaf that receives what another stage has sent."""

    streams = 1
    late = (0,)

    def __init__(self, spec: ReceivedSpec, store: ChunkStore) -> None:
        self._as_periods = spec.as_periods
        self._pending = Pending(spec.types, store)

    @property
    def rows_held(self) -> list[int]:
        return [self._pending.buffer.rows]

    @property
    def stored(self) -> Sequence[StoredChunks]:
        return [self._pending.buffer]

    def hold(self, stream: int, rows: pa.RecordBatch) -> None:
        raise AssertionError("a stage sends nothing before it has started")

    def process(
        self,
        rows: Sequence[pa.RecordBatch],
        before: Sequence[int],
        after: Sequence[int],
        frontier: int,
    ) -> list[pa.RecordBatch]:
        new = changes_of(rows[0]) if self._as_periods else [rows[0]]
        return [self._pending.take(new, frontier)]

    def snapshot(self) -> dict[str, Any]:
        return self._pending.snapshot()

    def restore(self, snapshot: dict[str, Any]) -> None:
        self._pending.restore(snapshot)

    def content(self, marks: Sequence[int]) -> Content:
        return self._pending.content()

    def take_over(
        self, old: Sequence[ReceivingLeaf], shares: Sequence[StreamShare], output: Share
    ) -> None:
        self._pending.take_over([one._pending for one in old], shares[0])


Leaf: TypeAlias = RunningBlock | RunningLastRows | ReceivingLeaf


def start_leaf(spec: LeafSpec, sends_periods: bool, store: ChunkStore) -> Leaf:
    """A leaf without any state yet; a block may emit its rows with their periods."""
    match spec:
        case BlockSpec():
            return RunningBlock(spec, store) if sends_periods else BlockOfChanges(spec, store)
        case ReceivedSpec():
            return ReceivingLeaf(spec, store)
        case LastRowsSpec():
            return RunningLastRows(spec, store)
