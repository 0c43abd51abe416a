"""The rows of one stream that may still join, as a few immutable chunks.

New rows become a chunk of level 0; FANOUT chunks of one level are merged into one of the next,
so their number grows with the logarithm of the window and a row is rewritten that often at
most. Chunks are dropped whole when the horizon has passed them. A chunk is also rewritten, to
get rid of dead rows, when more rows are held than twice those alive and one micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Bools
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, keep_rows, merge_chunks
from nilometer.model.time import FOREVER
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.copied_rows import CopiedRows
from nilometer.operators.share import RowChooser

FANOUT: Final = 16
MOST_BYTES: Final = 128 << 20
"""A chunk of this size is no longer merged: Arrow and Spark's state are limited to 2 GiB."""

Survivors = Callable[[Chunk], Bools]
"""Selects the rows to keep of a chunk that is rewritten anyway."""


class StreamBuffer:
    """The chunks of one stream, oldest first."""

    def __init__(
        self, layout: RowLayout, kernel: Kernel, store: ChunkStore, max_rows: int = FOREVER
    ) -> None:
        """An empty buffer; chunks of this many rows are no longer merged."""
        self._max_rows = max_rows
        self.refs: list[ChunkRef] = []
        self._layout = layout
        self._kernel = kernel
        self._store = store
        self._loaded: dict[str, Chunk] = {}

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return sum(ref.rows for ref in self.refs)

    def chunks(self, before: int = FOREVER) -> tuple[Chunk, ...]:
        """All chunks that have a row strictly before an instant, oldest first."""
        return tuple(self._load(ref) for ref in self.refs if ref.first < before)

    def restore(self, refs: Iterable[ChunkRef]) -> None:
        """Continue with the chunks of a snapshot."""
        self.refs = list(refs)

    def take_over(
        self, old: Sequence[StreamBuffer], share: RowChooser, since: int = -FOREVER
    ) -> None:
        """Take over what belongs here of other buffers, as far as it is not older than `since`.

        Rows of one buffer stay in their order; of copies only one counts.
        """
        firsts = [share.first_copy(number) for number in range(len(old))]
        copies = CopiedRows() if len(set(firsts)) < len(old) else None
        for number, buffer in enumerate(old):
            if copies is not None:
                copies.begin(firsts[number])
            for ref in buffer.refs:
                chunk = buffer._load(ref)
                chosen = share.of(number, chunk.rows) & (chunk.times >= since)
                part = _keep(chunk, chosen if copies is None else copies.new(chunk.rows, chosen))
                if part is not None:
                    self._put(part, ref.level, len(self.refs))

    def add(self, chunk: Chunk) -> None:
        """Add a chunk of new rows."""
        self._put(chunk, level=0, place=len(self.refs))

    def revise(self, chunks: Sequence[Chunk], survivors: Survivors) -> None:
        """Replace stored chunks by changed ones; chunks of mostly dead rows are rewritten."""
        for ref, chunk in zip(tuple(self.refs), chunks, strict=True):
            alive = survivors(chunk)
            if chunk is not self._load(ref) or 2 * np.count_nonzero(alive) <= len(chunk):
                place = self.refs.index(ref)
                self._drop(ref)
                rest = _keep(chunk, alive)
                if rest is not None:
                    self._put(rest, ref.level, place)

    def replace(self, chunks: Iterable[Chunk]) -> None:
        """Replace all chunks by these."""
        level = max((ref.level for ref in self.refs), default=0)
        for ref in list(self.refs):
            self._drop(ref)
        for chunk in chunks:
            self._put(chunk, level, place=len(self.refs))

    def expire(self, horizon: int) -> None:
        """Drop the chunks all of whose rows are strictly older than the horizon."""
        for ref in [ref for ref in self.refs if ref.last < horizon]:
            self._drop(ref)

    def tidy(self, horizon: int, new_rows: int, survivors: Survivors) -> None:
        """Merge chunks of equal level, and rewrite those that hold too many dead rows."""
        while (group := self._full_level()) is not None:
            self._rewrite(group, survivors)
        dead = {ref.id: self._dead_rows(ref, horizon) for ref in self.refs}
        while sum(dead.values()) > self.rows - sum(dead.values()) + new_rows:
            worst = max(self.refs, key=lambda ref: dead[ref.id])
            del dead[worst.id]
            self._rewrite([worst], survivors)
            dead.update({ref.id: 0 for ref in self.refs if ref.id not in dead})

    def _full_level(self) -> list[ChunkRef] | None:
        small = [ref for ref in self.refs if ref.size < MOST_BYTES and ref.rows < self._max_rows]
        for level in {ref.level for ref in small}:
            group = [ref for ref in small if ref.level == level]
            if len(group) >= FANOUT:
                return group
        return None

    def _rewrite(self, group: list[ChunkRef], survivors: Survivors) -> None:
        """Merge the survivors of chunks into one of the next level (one alone keeps its level)."""
        level = max(ref.level for ref in group) + (1 if len(group) > 1 else 0)
        place = self.refs.index(group[0])
        parts = [self._load(ref) for ref in group]
        survived = [part for part in (_keep(part, survivors(part)) for part in parts) if part]
        for ref in group:
            self._drop(ref)
        if survived:
            merged = (
                survived[0]
                if len(survived) == 1
                else merge_chunks(survived, self._layout, self._kernel)
            )
            self._put(merged, level, place)

    def _dead_rows(self, ref: ChunkRef, horizon: int) -> int:
        if ref.first >= horizon:
            return 0
        return int(np.count_nonzero(self._load(ref).times < horizon))

    def _put(self, chunk: Chunk, level: int, place: int) -> None:
        ref = self._store.add(chunk, level)
        self._loaded[ref.id] = chunk
        self.refs.insert(place, ref)

    def _load(self, ref: ChunkRef) -> Chunk:
        if ref.id not in self._loaded:
            self._loaded[ref.id] = self._store.load(ref, self._layout, self._kernel)
        return self._loaded[ref.id]

    def _drop(self, ref: ChunkRef) -> None:
        self.refs.remove(ref)
        self._loaded.pop(ref.id, None)
        self._store.remove(ref)


def _keep(chunk: Chunk, keep: Bools) -> Chunk | None:
    if keep.all():
        return chunk
    return keep_rows(chunk, keep) if keep.any() else None
