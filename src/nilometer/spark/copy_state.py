"""Copies the state of a query from Spark's store, so that it goes on in other buckets."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from nilometer.errors import CheckpointError
from nilometer.kernels.routing import Routing
from nilometer.log.local_storage import sync_folder
from nilometer.log.sealed import seal
from nilometer.spark.buckets import bucket_numbers
from nilometer.spark.moved_state import ABOUT, FORMAT, MANIFEST, MOVED, crc_of, read_moved
from nilometer.spark.serve_checkpoints import address_of
from nilometer.spark.served_files import written_file
from nilometer.spark.ship import ship_function

_SUFFIX: Final = ".bucket"
_SCHEMA: Final = pa.schema([("name", pa.string()), ("content", pa.large_binary())])


@dataclass
class _Copy:
    """The state of a bucket on its way to a file."""

    file: str
    writer: pa.ipc.RecordBatchFileWriter
    crc: int = 0
    manifest: str | None = None


@contextmanager
def _copying(folder: str) -> Iterator[_Copy]:
    """A new file in a folder of a checkpoint; it is whole at the end."""
    name = f"{uuid4().hex}{_SUFFIX}"
    with written_file(f"{folder}/{name}") as path:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
            copy = _Copy(name, writer)
            yield copy
        copy.crc = crc_of(path)


@dataclass(frozen=True)
class _CopyState:
    """Copies state as Spark's store has it into files; tells the files and their manifests."""

    folder: str
    schema = "bucket INT, file STRING, crc LONG, manifest STRING"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        copies: dict[int, _Copy] = {}
        with ExitStack() as files:
            for batch in batches:
                columns = (one.to_pylist() for one in batch.columns)
                for bucket, name, content in zip(*columns, strict=True):
                    if bucket not in copies:
                        copies[bucket] = files.enter_context(_copying(self.folder))
                    chunk = [pa.array([name]), pa.array([content], pa.large_binary())]
                    rows = pa.RecordBatch.from_arrays(chunk, schema=_SCHEMA)
                    copies[bucket].writer.write_batch(rows)
                    if name == MANIFEST:
                        copies[bucket].manifest = content.decode()
        for bucket, one in copies.items():
            row = [bucket, one.file, one.crc, one.manifest]
            kinds = (pa.int32(), pa.string(), pa.int64(), pa.string())
            arrays = [pa.array([value], kind) for value, kind in zip(row, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, ["bucket", "file", "crc", "manifest"])


def copy_state(
    session: SparkSession,
    checkpoint: Path,
    last: tuple[str, int],
    routings: Mapping[str, Routing],
    before: str | None,
) -> str:
    """Copy the state after a micro-batch, the last one with results; returns the copy's name.

    `routings`: how rows are routed, by stage. `before`: the copy that the query went on with;
    stages of which no bucket was opened since then have their state there.
    """
    for old in (checkpoint / MOVED).glob("*"):
        if old.name != before:  # of a change that was given up
            shutil.rmtree(old, ignore_errors=True)
    name = uuid4().hex
    folder = checkpoint / MOVED / name
    folder.mkdir(parents=True)
    files_by_stage, crcs = _copy_all(session, checkpoint, last[1], folder)
    earlier = {} if before is None else read_moved(checkpoint, before).stages
    stages = {}
    for stage, routing in routings.items():
        numbers = bucket_numbers(routing.buckets)
        own = files_by_stage.get(stage, {})
        if own and set(own) != set(numbers):
            raise CheckpointError(
                "the state of this query cannot be copied",
                detail=f"stage {stage} has the buckets {sorted(own)}, not {sorted(numbers)}",
                hint="recreate the query with the number of buckets that you want",
            )
        if own:
            stages[stage] = _about(routing, [own[number] for number in numbers])
        elif stage in earlier:
            files = [Path(file) for file in earlier[stage].files]
            for file in files:
                os.link(file, folder / file.name)
                crcs[file.name] = crc_of(file)
            stages[stage] = _about(earlier[stage].routing, [file.name for file in files])
    about = {"format": FORMAT, "last": last, "stages": stages, "crc": crcs}
    (folder / ABOUT).write_bytes(seal(json.dumps(about).encode()))
    _sync(folder / ABOUT)
    for one in (folder, checkpoint / MOVED, checkpoint):
        sync_folder(one)
    return name


def _copy_all(
    session: SparkSession, checkpoint: Path, batch: int, folder: Path
) -> tuple[dict[str, dict[int, str]], dict[str, int]]:
    """Copy the state of all operators: files by stage and by what buckets are called, and CRCs."""
    files: dict[str, dict[int, str]] = {}
    crcs: dict[str, int] = {}
    address = address_of(session, checkpoint)
    copy = _CopyState(f"{address}/{folder.relative_to(checkpoint)}")
    for operator in sorted((checkpoint / "state").glob("*")):
        if not operator.name.isdecimal():
            continue
        stored = (
            session.read.format("statestore")
            .options(operatorId=operator.name, batchId=batch, stateVarName="state")
            .load(address)
            .selectExpr("key.bucket", "user_map_key.name", "user_map_value.content")
        )
        copies = stored.mapInArrow(ship_function(copy), copy.schema)
        for bucket, file, crc, manifest in copies.toLocalIterator():
            stage = json.loads(manifest).get("stage")
            if stage is None:
                raise CheckpointError(
                    "the state of this query cannot be redistributed to other buckets",
                    detail="it was created by an earlier release",
                    hint="recreate the query with the number of buckets that you want",
                )
            if crc_of(folder / file) != crc:
                raise CheckpointError(
                    "the copy of a query's state is not what was written",
                    detail=str(folder / file),
                    hint="try again: the query goes on as before",
                )
            _sync(folder / file)
            files.setdefault(stage, {})[bucket], crcs[file] = file, crc
    return files, crcs


def _about(routing: Routing, files: list[str]) -> dict[str, Any]:
    return {
        "shares": routing.shares,
        "places": routing.places,
        "with nulls": routing.with_nulls,
        "files": files,
    }


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
