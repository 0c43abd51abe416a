"""Chunks in Spark's state store, with a copy in the executor's local directory.

Spark's Python state API is slow to read (about 25 MB a second), so a chunk that this machine
has written is read from a memory-mapped file. The store is the truth: a file that is missing,
torn or foreign is replaced from there. Chunks are named at random for every attempt of a task,
so a failed attempt's file never stands in for the retry's.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from nilometer.kernels.chunk import Chunk, Kernel, RowLayout
from nilometer.operators.chunk_codec import (
    decode_rows,
    encode_rows,
    read_chunk_file,
    write_chunk_file,
)
from nilometer.operators.chunk_store import ChunkRef


class MapState(Protocol):
    """What is used of pyspark.sql.streaming.stateful_processor.MapState."""

    def getValue(self, userKey: tuple[str]) -> tuple[bytes] | None: ...  # noqa: N802, N803

    def updateValue(self, userKey: tuple[str], value: tuple[bytes]) -> None: ...  # noqa: N802, N803

    def removeKey(self, userKey: tuple[str]) -> None: ...  # noqa: N802, N803


class SparkChunkStore:
    """The chunks of one bucket."""

    def __init__(
        self, state: MapState, folder: Path, layouts: tuple[RowLayout, ...], kernel: Kernel
    ) -> None:
        self._state = state
        self._folder = folder
        self._layouts = layouts
        self._kernel = kernel
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, chunk: Chunk, level: int) -> ChunkRef:
        name = uuid4().hex
        encoded = encode_rows(chunk)
        checksum = zlib.crc32(encoded)
        self._state.updateValue((name,), (encoded,))
        write_chunk_file(chunk, self._file(name), checksum)
        return ChunkRef(name, len(chunk), chunk.first, chunk.last, level, len(encoded), checksum)

    def load(self, ref: ChunkRef, stream: int) -> Chunk:
        layout, file = self._layouts[stream], self._file(ref.id)
        chunk = read_chunk_file(file, ref.checksum, layout, self._kernel)
        if chunk is None:
            chunk = decode_rows(self._fetch(ref), layout, self._kernel)
            write_chunk_file(chunk, file, ref.checksum)
        return chunk

    def remove(self, ref: ChunkRef) -> None:
        self._state.removeKey((ref.id,))

    def sweep(self, refs: Iterable[ChunkRef]) -> None:
        """Delete the files that no state refers to: dropped chunks, and those of failed tasks."""
        wanted = {self._file(ref.id).name for ref in refs}
        for name in set(os.listdir(self._folder)) - wanted:
            (self._folder / name).unlink(missing_ok=True)

    def _fetch(self, ref: ChunkRef) -> bytes:
        value = self._state.getValue((ref.id,))
        if value is None or zlib.crc32(value[0]) != ref.checksum:
            raise RuntimeError(f"chunk {ref.id} is damaged or missing in Spark's state store")
        return bytes(value[0])

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.chunk"


def local_folder() -> Path:
    """Where this executor may keep files for a while."""
    roots = os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    return Path(roots.split(",")[0].strip(), "nilometer")
