"""The chunks of a query's sub-plan in a bucket, in memory and in the bucket's files."""

from __future__ import annotations

from collections.abc import Callable, Container
from uuid import uuid4

from nilometer.kernels.chunk import Chunk, Kernel, RowLayout
from nilometer.operators.chunk_codec import decode_rows, encode_rows
from nilometer.operators.chunk_store import ChunkRef

Fetch = Callable[[str], bytes]
"""Reads the encoded bytes of a chunk, given its name."""


class HeldChunks:
    """A chunk store whose changes take effect once they are saved.

    A chunk is encoded when it is first saved, so one that is replaced before costs nothing.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._prefix = f"{uuid4().hex}-"
        self._count = 0
        self._chunks: dict[str, Chunk] = {}
        self._new: set[str] = set()
        self._gone: set[str] = set()

    def add(self, chunk: Chunk, level: int) -> ChunkRef:
        self._count += 1
        name = f"{self._prefix}{self._count:x}"
        self._chunks[name] = chunk
        self._new.add(name)
        return ChunkRef(name, len(chunk), chunk.first, chunk.last, level, chunk.rows.nbytes, 0)

    def load(self, ref: ChunkRef, layout: RowLayout, kernel: Kernel) -> Chunk:
        chunk = self._chunks.get(ref.id)
        if chunk is None:
            chunk = self._chunks[ref.id] = decode_rows(self._fetch(ref.id), layout, kernel)
        return chunk

    def remove(self, ref: ChunkRef) -> None:
        if ref.id in self._new:
            self._new.discard(ref.id)
            self._chunks.pop(ref.id, None)
        else:
            self._gone.add(ref.id)

    def changes(self) -> tuple[dict[str, bytes], list[str]]:
        """The new chunks, encoded, and the names of deleted ones, since the last save."""
        return {name: encode_rows(self._chunks[name]) for name in self._new}, sorted(self._gone)

    def saved(self) -> None:
        """Note that the last `changes` are in the bucket's files."""
        for name in self._gone:
            self._chunks.pop(name, None)
        self._new.clear()
        self._gone.clear()

    def know(self, other: HeldChunks, saved: Container[str]) -> None:
        """Take in what another one has decoded of these chunks, which were saved."""
        self._chunks |= {name: one for name, one in other._chunks.items() if name in saved}
