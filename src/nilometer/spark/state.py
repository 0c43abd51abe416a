"""Chunks in Spark's state store, with a copy in the executor's local directory.

Spark's Python state API is slow to read (about 25 MB a second), so a chunk that this machine
has written is read from a memory-mapped file. The store is authoritative: a file that is missing,
torn or foreign is replaced from there, and a full disk only costs time. Chunks have a running
number and their checksum for a name: every attempt of a task writes the same state, so it does not
matter which of several attempts was the last to write, and a file never stands in for another.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from pyspark import TaskContext

from nilometer.kernels.chunk import Chunk, Kernel, RowLayout
from nilometer.operators.chunk_codec import (
    decode_rows,
    encode_rows,
    read_chunk_file,
    write_chunk_file,
)
from nilometer.operators.chunk_store import ChunkRef

_ABANDONED: Final = 3600.0
"""After how many seconds a half-written file counts as abandoned."""


class MapState(Protocol):
    """The part of pyspark.sql.streaming.stateful_processor.MapState that is used."""

    def getValue(self, userKey: tuple[str]) -> tuple[bytes] | None: ...  # noqa: N802, N803

    def updateValue(self, userKey: tuple[str], value: tuple[bytes]) -> None: ...  # noqa: N802, N803

    def removeKey(self, userKey: tuple[str]) -> None: ...  # noqa: N802, N803


class SparkChunkStore:
    """The chunks of one bucket, of which there have been so many (`added`)."""

    def __init__(self, state: MapState, folder: Path) -> None:
        self.added = 0
        self._state = state
        self._folder = folder
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)

    def add(self, chunk: Chunk, level: int) -> ChunkRef:
        encoded = encode_rows(chunk)
        checksum = zlib.crc32(encoded)
        name = f"{self.added}-{checksum:08x}"
        self.added += 1
        self._state.updateValue((name,), (encoded,))
        self._keep(chunk, name, checksum)
        return ChunkRef(name, len(chunk), chunk.first, chunk.last, level, len(encoded), checksum)

    def load(self, ref: ChunkRef, layout: RowLayout, kernel: Kernel) -> Chunk:
        file = self._file(ref.id)
        chunk = read_chunk_file(file, ref.checksum, layout, kernel)
        if chunk is None:
            chunk = decode_rows(self._fetch(ref), layout, kernel)
            self._keep(chunk, ref.id, ref.checksum)
        return chunk

    def remove(self, ref: ChunkRef) -> None:
        self._state.removeKey((ref.id,))

    def sweep(self, refs: Iterable[ChunkRef]) -> None:
        """Delete the files that no state refers to: dropped chunks, and those of failed tasks.

        A file that is still being written belongs to another attempt, unless it is old.
        """
        wanted = {self._file(ref.id).name for ref in refs}
        names = os.listdir(self._folder) if self._folder.is_dir() else []
        for name in set(names) - wanted:
            file = self._folder / name
            if file.suffix == ".chunk" or _age(file) > _ABANDONED:
                file.unlink(missing_ok=True)

    def _keep(self, chunk: Chunk, name: str, checksum: int) -> None:
        """Keep a local copy, if there is room for it."""
        file = self._file(name)
        try:
            write_chunk_file(chunk, file, checksum)
        except OSError:
            with suppress(OSError):  # what was written so far takes room
                file.with_suffix(".part").unlink(missing_ok=True)

    def _fetch(self, ref: ChunkRef) -> bytes:
        value = self._state.getValue((ref.id,))
        if value is None or zlib.crc32(value[0]) != ref.checksum:
            raise RuntimeError(f"chunk {ref.id} is damaged or missing in Spark's state store")
        return bytes(value[0])

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.chunk"


def local_folder(*names: str) -> Path:
    """A folder of the running query on this executor, for as long as the query runs."""
    return _query_folder() / task_property("spark.jobGroup.id", "run") / Path(*names)


def remove_earlier_runs() -> None:
    """Delete what earlier runs of this query have left here."""
    current = local_folder()
    for run in _query_folder().glob("*"):
        if run != current:
            shutil.rmtree(run, ignore_errors=True)


def task_property(name: str, default: str) -> str:
    """A local property that Spark gives its tasks."""
    context = TaskContext.get()
    value = context.getLocalProperty(name) if context is not None else None
    return value or default


def _query_folder() -> Path:
    roots = os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    query = task_property("sql.streaming.queryId", "query")
    return Path(roots.split(",")[0].strip(), "nilometer", query)


def _age(file: Path) -> float:
    try:
        return time.time() - file.stat().st_mtime
    except FileNotFoundError:
        return 0.0
