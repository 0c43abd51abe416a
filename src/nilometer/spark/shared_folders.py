"""Checks, before a query starts, the folders that the driver and all executors must share."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nilometer.errors import InputError
from nilometer.spark.exchange import is_on_one_machine
from nilometer.spark.ship import ship_function

_LOOKS: Final = 64
"""The number of checking tasks, if Spark does not say how many run at once."""
_LOOKS_PER_CORE: Final = 4
_NAMED: Final = 3


def require_shared(session: SparkSession, locations: Iterable[str]) -> None:
    """Raise InputError if a task on an executor does not find a folder of these locations.

    Locations in an object store are not checked: they are the same from everywhere.
    """
    if is_on_one_machine(session):
        return
    local = (one for one in map(_local_folder, locations) if one is not None)
    folders = sorted({str(_existing(Path(one))) for one in local})
    if not folders:
        return
    mark = f"shared-{uuid4().hex}"
    try:
        for folder in folders:
            (Path(folder) / mark).touch()
        looks = number_of_looks(session)
        frame = session.range(0, looks, 1, looks)
        look = ship_function(_Look(tuple(folders), mark))
        unseen = frame.mapInArrow(look, "folder STRING, host STRING").collect()
    finally:
        for folder in folders:
            (Path(folder) / mark).unlink(missing_ok=True)
    if unseen:
        hosts = sorted({row["host"] for row in unseen})
        raise InputError(
            f"executors do not share the folder {unseen[0]['folder']} with the driver",
            detail=f"it was not found on {names_of(hosts)}",
            hint="keep the database, its logs and its checkpoints where the driver and all "
            "executors find the same files: on a network file system, logs also in an object store",
        )


@dataclass(frozen=True)
class _Look:
    """A task that reports which folders are not the driver's."""

    folders: tuple[str, ...]
    mark: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            missing = [one for one in self.folders if not (Path(one) / self.mark).exists()]
            hosts = [socket.gethostname()] * len(missing)
            columns = [pa.array(missing, pa.string()), pa.array(hosts, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, ["folder", "host"])


def number_of_looks(session: SparkSession) -> int:
    """How many tasks reach every executor that is there."""
    try:
        return _LOOKS_PER_CORE * session.sparkContext.defaultParallelism
    except PySparkException:  # Spark Connect has no context
        return _LOOKS


def _local_folder(location: str) -> str | None:
    if "://" not in location and not location.startswith("file:"):
        return str(Path(location).absolute())
    parts = urlsplit(location)
    return unquote(parts.path) if parts.scheme == "file" else None


def _existing(folder: Path) -> Path:
    """A folder, or its nearest existing parent, in which the rest will be created."""
    return next(one for one in (folder, *folder.parents) if one.is_dir())


def names_of(hosts: list[str]) -> str:
    """The first of some machines, and how many more there are."""
    more = len(hosts) - _NAMED
    return ", ".join(hosts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
