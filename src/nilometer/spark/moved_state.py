"""The state of a query on its way to another number of buckets.

Spark fixes the number of partitions in a checkpoint, so the query goes on with a new one. Before
that its state is copied from Spark's store into files, a file for each bucket of each stage.
From these every new bucket takes what belongs to it when it is opened first. The catalog says
which copy a query goes on with: until that is written the old checkpoint counts, and from then on
the copy. What is left of the old one is deleted at the next start.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from nilometer.errors import CheckpointError
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout
from nilometer.kernels.routing import Routing
from nilometer.log.local_storage import sync_folder
from nilometer.log.sealed import seal, unseal
from nilometer.operators.chunk_codec import decode_rows
from nilometer.operators.chunk_store import ChunkRef
from nilometer.spark.ship import ship_function

MOVED: Final = "moved"
"""The folder of a checkpoint with copies of its state."""
MANIFEST: Final = "manifest"
_ABOUT: Final = "about.json"
_SETTLED: Final = "settled"
_SUFFIX: Final = ".bucket"
_FORMAT: Final = 1
_SCHEMA: Final = pa.schema([("name", pa.string()), ("content", pa.large_binary())])
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
        found: dict[str, Any] = json.loads(self._content(MANIFEST))
        return found

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
    return MovedBucket(Path(path))


@dataclass(frozen=True)
class _CopyState:
    """Copies state as Spark's store has it into files; tells the files and their manifests."""

    folder: str
    told = "bucket INT, file STRING, manifest STRING"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened: dict[int, tuple[Path, pa.OSFile, pa.ipc.RecordBatchFileWriter]] = {}
        manifests: dict[int, str] = {}
        for batch in batches:
            for bucket, name, content in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                if bucket not in opened:
                    path = Path(self.folder, f"{uuid4().hex}{_SUFFIX}")
                    sink = pa.OSFile(str(path), "wb")
                    opened[bucket] = (path, sink, pa.ipc.new_file(sink, _SCHEMA))
                row = [pa.array([name]), pa.array([content], pa.large_binary())]
                opened[bucket][2].write_batch(pa.RecordBatch.from_arrays(row, schema=_SCHEMA))
                if name == MANIFEST:
                    manifests[bucket] = content.decode()
        for bucket, (path, sink, writer) in opened.items():
            writer.close()
            sink.close()
            _sync(path)
            told = [[bucket], [path.name], [manifests.get(bucket)]]
            kinds = (pa.int32(), pa.string(), pa.string())
            arrays = [pa.array(one, kind) for one, kind in zip(told, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, ["bucket", "file", "manifest"])


def copy_state(
    session: SparkSession,
    checkpoint: Path,
    last: tuple[str, int],
    routings: Mapping[str, Routing],
    numbers: Mapping[str, Sequence[int]],
) -> str:
    """Copy the state after a micro-batch, the last one with results; returns the copy's name.

    `routings` and `numbers`: by stage, how its rows are routed, and what its buckets are called.
    """
    for old in (checkpoint / MOVED).glob("*"):
        if not (old / _SETTLED).exists():  # a change that was given up
            shutil.rmtree(old, ignore_errors=True)
    name = uuid4().hex
    folder = checkpoint / MOVED / name
    folder.mkdir(parents=True)
    found: dict[str, dict[int, str]] = {}
    for operator in sorted((checkpoint / "state").glob("*")):
        if not operator.name.isdecimal():
            continue
        stored = (
            session.read.format("statestore")
            .options(operatorId=operator.name, batchId=last[1], stateVarName="state")
            .load(str(checkpoint))
            .selectExpr("key.bucket", "user_map_key.name", "user_map_value.content")
        )
        copy = _CopyState(str(folder))
        for bucket, file, manifest in stored.mapInArrow(
            ship_function(copy), copy.told
        ).toLocalIterator():
            stage = json.loads(manifest or "{}").get("stage")
            if stage is not None:
                found.setdefault(stage, {})[bucket] = file
    for stage, wanted in numbers.items():
        if set(found.get(stage, ())) != set(wanted):
            raise CheckpointError(
                "the state of this query cannot be copied",
                detail=f"of stage {stage} it has the buckets {sorted(found.get(stage, ()))}, "
                f"and {sorted(wanted)} are wanted",
                hint="create the query anew with the number of buckets that you want",
            )
    stages = {
        stage: {
            "shares": routing.shares,
            "places": routing.places,
            "with nulls": routing.with_nulls,
            "files": [found[stage][number] for number in numbers[stage]],
        }
        for stage, routing in routings.items()
    }
    about = {"format": _FORMAT, "last": last, "stages": stages}
    (folder / _ABOUT).write_bytes(seal(json.dumps(about).encode()))
    _sync(folder / _ABOUT)
    for one in (folder, checkpoint / MOVED, checkpoint):
        sync_folder(one)
    return name


@dataclass(frozen=True)
class MovedState:
    """A copy of a query's state with which it goes on."""

    last: tuple[str, int]
    """The micro-batch after which it was made."""
    stages: Mapping[str, MovedStage]


def read_moved(checkpoint: Path, name: str) -> MovedState:
    """Read what is known about a copy."""
    folder = checkpoint / MOVED / name
    try:
        about = json.loads(unseal((folder / _ABOUT).read_bytes()))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            "the copied state of this query is damaged or missing",
            detail=f"{folder}: {error}",
            hint="restore the database from a backup, or drop the query and create it again",
        ) from None
    stages = {}
    for stage, one in about["stages"].items():
        places = tuple(
            tuple(None if columns is None else tuple(columns) for columns in own)
            for own in one["places"]
        )
        routing = Routing(tuple(one["shares"]), places, one["with nulls"])
        files = tuple(str(folder / file) for file in one["files"])
        stages[stage] = MovedStage(routing, files)
    return MovedState((about["last"][0], about["last"][1]), stages)


def is_settled(checkpoint: Path, name: str) -> bool:
    """Whether what came before a copy is deleted, so that the checkpoint goes on from it."""
    return (checkpoint / MOVED / name / _SETTLED).exists()


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
    (folder / _SETTLED).touch()
    sync_folder(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
