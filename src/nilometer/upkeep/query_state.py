"""The state of queries as files: those of the shared engine, and Spark checkpoints."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nilometer.engine.bucket_files import BucketFolder, KeptQuery, batches_after, take_entries
from nilometer.engine.plan_set import BUCKETS, PLANS_FILE, PlanFolder, read_plan_set
from nilometer.engine.stuck_results import STUCK
from nilometer.log.sealed import unseal
from nilometer.spark.moved_state import ABOUT, MOVED
from nilometer.upkeep.cut_log import LastBatch
from nilometer.upkeep.image_file import ImageFile
from nilometer.upkeep.places import ENGINE

_VERSION: Final = re.compile(r"(\d+)(_[0-9a-f-]+)?\.(zip|changelog|delta|snapshot)")


@dataclass(frozen=True)
class EngineImage:
    """The files of the engine at one instant."""

    folder: Path
    plans: bytes | None
    names: tuple[Path, ...]
    """Files of buckets, which never change."""
    stuck: Mapping[Path, bytes]
    """Results that could not be appended to their logs."""

    @classmethod
    def look(cls, folder: Path) -> EngineImage:
        """List the files that exist; this is quick, and they are linked later."""
        try:
            plans = (folder / PLANS_FILE).read_bytes()
        except FileNotFoundError:
            return cls(folder, None, (), {})
        stuck = {
            one.relative_to(folder): one.read_bytes()
            for one in sorted((folder / STUCK).glob("*/*"))
            if not one.name.startswith(".")
        }
        names = [
            Path(BUCKETS, bucket, name)
            for bucket in sorted(_listed(folder / BUCKETS))
            for name in sorted(_listed(folder / BUCKETS / bucket))
        ]
        return cls(folder, plans, tuple(names), stuck)

    def files(self) -> dict[Path, Path]:
        return {name: self.folder / name for name in self.names}

    def read(self, copy: Path) -> dict[str, int]:
        """How many results each query has had, by its id, in a copy of the files.

        FileNotFoundError, or LogError, if they do not fit together.
        """
        results: dict[str, int] = {}
        if self.plans is None:
            return results
        plans = read_plan_set(self.plans)
        copied = PlanFolder(copy)
        for number in copied.buckets():
            files = copied.files(number)
            for query, stored in kept_queries(files).items():
                entry = plans.entries.get(query)
                is_here = entry is None or entry.bucket == number
                if is_here and stored.state is not None:
                    results[query] = json.loads(files.read(stored.state))["results"]
            files.close()
        return results

    def small_files(self, results: Mapping[str, int]) -> list[ImageFile]:
        """The set of plans and pending results, limited to those that the state has produced."""
        if self.plans is None:
            return []
        files = [ImageFile(f"{ENGINE}/{PLANS_FILE}", self.plans, len(self.plans))]
        for name, content in self.stuck.items():
            if int(name.name) <= results.get(name.parent.name, 0):
                files.append(ImageFile(f"{ENGINE}/{name.as_posix()}", content, len(content)))
        return files


def kept_queries(files: BucketFolder) -> dict[str, KeptQuery]:
    """The queries stored in a bucket's files, by their ids."""
    queries: dict[str, KeptQuery] = {}
    for batch in batches_after(files, -1):
        take_entries(queries, batch)
    return queries


@dataclass(frozen=True)
class CheckpointImage:
    """A Spark checkpoint at one instant: as if the process had been killed then.

    Spark commits a micro-batch after its results are in the log. So the log may hold one more than
    is committed, which is already planned, and whose state exists.
    """

    folder: Path
    committed: int
    """The last micro-batch that is finished; -1: none."""
    query: str | None
    """The id that Spark gave the query; None: it has not begun."""
    follows: LastBatch | None = None
    """The last micro-batch in another number of buckets, from which the query resumes."""

    @property
    def last(self) -> LastBatch:
        """The last micro-batch whose results fit this checkpoint."""
        if self.query is None and self.follows is not None:
            return self.follows
        return LastBatch(self.query, self.committed + 1)

    def files(self) -> dict[Path, Path]:
        """The files that belong to it. Files of a version are listed before what they refer to."""
        return {one.relative_to(self.folder): one for one in self._belonging()}

    def _belonging(self) -> Iterator[Path]:
        for parent, folders, names in os.walk(self.folder):
            folders.sort()
            for name in sorted(names):
                if name.startswith(".") or name.endswith(".tmp"):
                    continue
                ahead = self._ahead(Path(parent, name))
                if ahead <= 1:
                    yield Path(parent, name)
                if ahead <= 0 and f".{name}.crc" in names:  # a file written again has another
                    yield Path(parent, f".{name}.crc")

    def _ahead(self, file: Path) -> int:
        """By how many micro-batches a file is ahead of the committed one."""
        folder, name = file.parent.name, file.name
        if file.parent.parent == self.folder and folder in ("offsets", "commits"):
            number = int(name) if name.isdecimal() else self.committed + 2
            return number - self.committed + (folder == "commits" and number > self.committed)
        version = _VERSION.fullmatch(name)
        return 0 if version is None else int(version[1]) - (self.committed + 1)


def checkpoint_image(folder: Path) -> CheckpointImage:
    """The state of a checkpoint."""
    commits = [int(one) for one in _listed(folder / "commits") if one.isdecimal()]
    try:
        query = str(json.loads((folder / "metadata").read_bytes())["id"])
    except (OSError, ValueError, KeyError, TypeError):
        query = None
    return CheckpointImage(folder, max(commits, default=-1), query, _follows(folder))


def _follows(folder: Path) -> LastBatch | None:
    """The micro-batch after which the state of a query was copied; None: it was not."""
    for about in sorted(folder.glob(f"{MOVED}/*/{ABOUT}")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            return LastBatch(*json.loads(unseal(about.read_bytes()))["last"])
    return None


def _listed(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]
    except FileNotFoundError:
        return []
