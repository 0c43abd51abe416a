"""Where an operator keeps its chunks: the operator decides what, the host where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from nilometer.kernels.chunk import Chunk, Kernel, RowLayout


@dataclass(frozen=True, slots=True)
class ChunkRef:
    """A chunk in a store. All its times lie in the closed period [first, last]."""

    id: str
    rows: int
    first: int
    last: int
    level: int
    size: int
    checksum: int

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "rows": self.rows,
            "first": self.first,
            "last": self.last,
            "level": self.level,
            "size": self.size,
            "checksum": self.checksum,
        }


class ChunkStore(Protocol):
    """Keeps chunks from one micro-batch to the next."""

    def add(self, chunk: Chunk, level: int) -> ChunkRef:
        """Store a chunk; its level says how often its rows were merged."""

    def load(self, ref: ChunkRef, layout: RowLayout, kernel: Kernel) -> Chunk:
        """Load a stored chunk of rows of this layout."""

    def remove(self, ref: ChunkRef) -> None:
        """Delete a chunk."""
