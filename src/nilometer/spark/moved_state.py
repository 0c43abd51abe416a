"""The state of a query on its way to another number of buckets.

Spark fixes the number of partitions in a checkpoint, so the query goes on with a new one. Before
that its state is copied from Spark's store into files, a file for each bucket of each stage.
From these every new bucket takes what belongs to it when it is opened first. The catalog says
which copy a query goes on with: until that is written the old checkpoint counts, and from then on
the copy. What is left of the old one is deleted at the next start.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from nilometer.errors import CheckpointError
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout
from nilometer.kernels.routing import Routing
from nilometer.log.local_storage import sync_folder
from nilometer.log.sealed import unseal
from nilometer.operators.chunk_codec import decode_rows
from nilometer.operators.chunk_store import ChunkRef
from nilometer.spark.served_files import opened_file

MOVED: Final = "moved"
"""The folder of a checkpoint with copies of its state."""
MANIFEST: Final = "manifest"
ABOUT: Final = "about.json"
SETTLED: Final = "settled"
FORMAT: Final = 1
_PIECE: Final = 1 << 20
_OWN_OF_SPARK: Final = ("offsets", "commits", "sources", "state", "metadata")


@dataclass(frozen=True)
class MovedStage:
    """Where the buckets of a stage find the state of those before."""

    routing: Routing
    """How rows were routed."""
    files: tuple[str, ...]
    """A file for each bucket."""

    def open(self) -> list[MovedBucket]:
        """The states of all buckets."""
        return [_open(file) for file in self.files]


class MovedBucket:
    """The state of a bucket in a file: a manifest and chunks. It can only be read."""

    def __init__(self, path: Path) -> None:
        self._rows = pa.ipc.open_file(pa.memory_map(str(path)))
        count = self._rows.num_record_batches
        names = (self._rows.get_batch(i).column(0)[0].as_py() for i in range(count))
        self._places = {name: i for i, name in enumerate(names)}

    @property
    def manifest(self) -> dict[str, Any]:
        """What the state is, and everything of it but the chunks."""
        manifest: dict[str, Any] = json.loads(self._content(MANIFEST))
        return manifest

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """All chunks, encoded, by name."""
        return ((name, self._content(name)) for name in self._places if name != MANIFEST)

    def load(self, ref: ChunkRef, layout: RowLayout, kernel: Kernel) -> Chunk:
        return decode_rows(self._content(ref.id), layout, kernel)

    def add(self, chunk: Chunk, level: int) -> ChunkRef:
        raise AssertionError("a copy of a state is only read")

    def remove(self, ref: ChunkRef) -> None:
        raise AssertionError("a copy of a state is only read")

    def _content(self, name: str) -> bytes:
        content: bytes = self._rows.get_batch(self._places[name]).column(1)[0].as_py()
        return content


@lru_cache(maxsize=64)
def _open(path: str) -> MovedBucket:
    with opened_file(path) as file:
        return MovedBucket(file)


@dataclass(frozen=True)
class MovedState:
    """A copy of a query's state with which it goes on."""

    last: tuple[str, int]
    """The micro-batch after which it was made."""
    stages: Mapping[str, MovedStage]


def read_moved(checkpoint: Path, name: str, address: str | None = None) -> MovedState:
    """Read what is known about a copy.

    `address`: where executors find the checkpoint, if not by its path.
    """
    folder = checkpoint / MOVED / name
    try:
        about = json.loads(unseal((folder / ABOUT).read_bytes()))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            "the copied state of this query is damaged or missing",
            detail=f"{folder}: {error}",
            hint="restore the database from a backup, or drop the query and create it again",
        ) from None
    place = f"{checkpoint if address is None else address}/{MOVED}/{name}"
    stages = {}
    for stage, one in about["stages"].items():
        places = tuple(
            tuple(None if columns is None else tuple(columns) for columns in own)
            for own in one["places"]
        )
        routing = Routing(tuple(one["shares"]), places, one["with nulls"])
        files = tuple(f"{place}/{file}" for file in one["files"])
        stages[stage] = MovedStage(routing, files)
    return MovedState((about["last"][0], about["last"][1]), stages)


def crc_of(file: Path) -> int:
    """The checksum of a file of a copy."""
    crc = 0
    with open(file, "rb") as opened:
        while piece := opened.read(_PIECE):
            crc = zlib.crc32(piece, crc)
    return crc


def damaged_files(copy: Path) -> Iterator[Path]:
    """The files of a copy that are missing or are not as they were written."""
    try:
        crcs: dict[str, int] = json.loads(unseal((copy / ABOUT).read_bytes()))["crc"]
    except (OSError, ValueError, KeyError):
        yield copy / ABOUT
        return
    for name, crc in crcs.items():
        if not (copy / name).exists() or crc_of(copy / name) != crc:
            yield copy / name


def is_settled(checkpoint: Path, name: str) -> bool:
    """Whether what came before a copy is deleted, so that the checkpoint goes on from it."""
    return (checkpoint / MOVED / name / SETTLED).exists()


def settle(checkpoint: Path, name: str) -> None:
    """Delete what came before a copy: Spark begins a new checkpoint."""
    folder = checkpoint / MOVED / name
    for own in _OWN_OF_SPARK:
        shutil.rmtree(checkpoint / own, ignore_errors=True)
        for file in (checkpoint / own, checkpoint / f".{own}.crc"):
            with suppress(FileNotFoundError):
                file.unlink()
    for old in (checkpoint / MOVED).glob("*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    sync_folder(checkpoint)
    (folder / SETTLED).touch()
    sync_folder(folder)
