"""A chunk store in the memory of this process."""

from __future__ import annotations

from itertools import count
from typing import Final

from nilometer.kernels.chunk import Chunk, Kernel, RowLayout
from nilometer.operators.chunk_store import ChunkRef

_IDS: Final = count()
"""No two chunks of a process share a name: data derived from a chunk is cached by name."""


class MemoryStore:
    """A chunk store that is a dictionary."""

    def __init__(self) -> None:
        self.chunks: dict[str, Chunk] = {}

    def add(self, chunk: Chunk, level: int) -> ChunkRef:
        name = str(next(_IDS))
        self.chunks[name] = chunk
        size = chunk.rows.nbytes
        return ChunkRef(name, len(chunk), chunk.first, chunk.last, level, size, 0)

    def load(self, ref: ChunkRef, layout: RowLayout, kernel: Kernel) -> Chunk:
        return self.chunks[ref.id]

    def remove(self, ref: ChunkRef) -> None:
        del self.chunks[ref.id]
