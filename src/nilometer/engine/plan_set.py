"""The set of plans that an engine runs: a small file, and a file for each plan.

Those that run queries check the revision, and reread the set when it has changed.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from nilometer.engine.bucket_files import BucketFolder
from nilometer.engine.folder import LocalFolder
from nilometer.errors import LogError
from nilometer.log.local_storage import sync_folder
from nilometer.log.sealed import seal, unseal

PLANS_FILE: Final = "plans.json"
_PLANS: Final = "plans"
BUCKETS: Final = "buckets"
APART: Final = 1000
"""Buckets from this number on hold one query each, which had kept others waiting."""


def is_together(bucket: int, other: int) -> bool:
    """Whether two buckets are run in the same micro-batches."""
    return bucket == other or max(bucket, other) < APART


@dataclass(frozen=True)
class PlanEntry:
    """One query of the set."""

    query: str
    """Its id, which is never given to another query."""
    bucket: int
    plan: str | None
    """The name of its plan's file; None: it is stopped, and its state is kept."""
    attempt: int = 0
    """A new number means a retry after a failure."""
    results: str = ""
    """The log of its results,"""
    log_id: str = ""
    """the id of that log, which a log that replaces it does not share, and"""
    fsync: str = "replayed"
    disk: int | None = None
    history: int = 0
    """how long its rows are kept."""
    dead_letters: str | None = None
    """The log of dead letters; None: a row that cannot be computed fails the query."""
    logs: Sequence[tuple[str, str]] = ()
    """The logs that it reads, with its reader names."""
    needs_now: bool = False
    """Whether it needs the time."""
    sub_plan: str | None = None
    """What it has in common with queries that can share state with it; None: nothing."""


@dataclass(frozen=True)
class PlanSet:
    """All queries of an engine, by their ids."""

    revision: int = 0
    entries: Mapping[str, PlanEntry] = field(default_factory=dict)
    """Includes stopped queries: the state of a query that is not here is dropped."""

    def in_bucket(self, bucket: int) -> list[PlanEntry]:
        """The queries that run in a bucket."""
        entries = self.entries.values()
        return [one for one in entries if one.bucket == bucket and one.plan is not None]


class PlanFolder:
    """The folder of the set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def bucket(self, number: int) -> Path:
        """The folder of a bucket's files."""
        return self.folder / BUCKETS / str(number)

    def files(self, number: int) -> BucketFolder:
        """The files of a bucket."""
        return BucketFolder(LocalFolder(self.bucket(number)))

    def buckets(self) -> list[int]:
        """The buckets that have files."""
        folder = self.folder / BUCKETS
        return sorted(int(one.name) for one in folder.iterdir()) if folder.is_dir() else []

    def stamp(self) -> tuple[int, int]:
        """A value that differs whenever the set differs."""
        try:
            status = (self.folder / PLANS_FILE).stat()
        except FileNotFoundError:
            return (0, 0)
        return (status.st_ino, status.st_mtime_ns)

    def read(self) -> PlanSet:
        """The current set; an empty one if none was ever written."""
        path = self.folder / PLANS_FILE
        try:
            return read_plan_set(path.read_bytes())
        except FileNotFoundError:
            return PlanSet()
        except ValueError as error:
            raise LogError("the set of plans is damaged", detail=f"{path}: {error}") from None

    def read_written(self) -> PlanSet:
        """The current set, for those who run it: its writer has written one before they start.

        Without it, every query would count as dropped, with its state and its results.
        """
        if not (self.folder / PLANS_FILE).exists():
            raise LogError(
                "the set of plans that the engine should run is not here",
                detail=f"{self.folder} on host {socket.gethostname()}",
                hint="keep the database where the driver and all executors find the same files",
            )
        return self.read()

    def write(self, plans: PlanSet) -> None:
        """Replace the set."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "revision": plans.revision,
            "entries": [vars(one) for one in plans.entries.values()],
        }
        aside = self.folder / f".{PLANS_FILE}.{uuid4().hex}"
        with open(aside, "wb") as file:
            file.write(seal(json.dumps(content).encode()))
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self.folder / PLANS_FILE)
        sync_folder(self.folder)

    def add_plan(self, content: bytes) -> str:
        """Store a plan, pickled, and return its name; it lasts only as long as the engine runs."""
        name = uuid4().hex
        folder = self.folder / _PLANS
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        return name

    def plan(self, name: str) -> bytes:
        """A stored plan."""
        return (self.folder / _PLANS / name).read_bytes()

    def keep_plans(self, names: set[str]) -> None:
        """Delete all other plans."""
        folder = self.folder / _PLANS
        for one in folder.iterdir() if folder.is_dir() else ():
            if one.name not in names:
                one.unlink(missing_ok=True)


def read_plan_set(content: bytes) -> PlanSet:
    """Read a set from bytes; raises ValueError if they are not a set."""
    try:
        fields: dict[str, Any] = json.loads(unseal(content))
        entries = [PlanEntry(**one) for one in fields["entries"]]
        return PlanSet(int(fields["revision"]), {one.query: one for one in entries})
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is not a set of plans: {error}") from None
