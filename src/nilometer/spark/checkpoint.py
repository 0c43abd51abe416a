"""Spark's checkpoint of a query: durable before its results count, repaired after a power cut.

Spark writes its checkpoint without forcing it to the disk; our logs are forced. After a power cut
a log may hold a micro-batch that the checkpoint does not know: Spark would plan another one
under the same number, and its results would be mistaken for those in the log. So before a
micro-batch is appended, its checkpoint is forced to the disk, and Spark's plan of it is kept
beside the results. Before a query starts, what is cut off or lost is restored from there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit
from zipfile import BadZipFile, ZipFile

from nilometer.errors import CheckpointError
from nilometer.log.storage import Storage
from nilometer.log.stored_json import json_bytes, read_json
from nilometer.spark.state_paths import point_state_here

_KEPT: Final = "planned.json"
_FORMAT: Final = 1
_KEPT_BATCHES: Final = 2
"""Spark reads the plans of the micro-batch that it repeats and of the one before it."""
_SHORTEST_PLAN: Final = 3
"""In lines: a version, settings, and at least one source."""
_SHORTEST_NOTE: Final = 2
_CHECKSUM_HEAD: Final = 8
_CHECKSUM: Final = 4
_CHECKED_BYTES: Final = 512
"""Hadoop stores, after a header, a checksum of every 512 bytes of a file."""
_RESTORE_BOTH: Final = (
    "restore both from copies of the same time, or drop the query and create it again"
)
_NOTE: Final = {"nextBatchWatermarkMs": 0}
"""What Spark writes for a finished micro-batch, unless its own watermarks are used."""
_SLACK: Final = 5.0
"""File systems may round file times by seconds."""


class Checkpoint:
    """The checkpoint of a query in a local folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._metadata = folder / "metadata"
        self._offsets = folder / "offsets"
        self._commits = folder / "commits"

    @classmethod
    def at(cls, location: str) -> Checkpoint | None:
        """The checkpoint at a path or URI; None if it is not local, where writes are durable."""
        if ":" not in location.partition("/")[0]:
            return cls(Path(location).absolute())
        parts = urlsplit(location)
        return cls(Path(unquote(parts.path))) if parts.scheme == "file" else None

    def keep(self, storage: Storage, key: tuple[str, int], last: tuple[str, int] | None) -> None:
        """Force all of a micro-batch to the disk, and keep its plan beside the results.

        Raises CheckpointError if the log has this one (`last`), but with a different plan.
        """
        query, batch = key
        if not (self._offsets / str(batch)).exists():
            return  # for Spark the path is not in the local file system
        if key == last:
            self._compare(_kept(storage, last), None)
            return
        if last is not None and last[0] == query and batch < last[1]:
            raise CheckpointError(
                "the checkpoint of this query is older than its results",
                detail=f"micro-batch {batch} is repeated, but the log ends with {last[1]}",
                hint=_RESTORE_BOTH,
            )
        before = read_json(storage, _KEPT) or {}
        now = time.time()
        synced = before.get("synced", 0.0)
        self._sync(batch, synced - _SLACK if synced <= now else 0.0)
        planned = {
            number: text
            for number, text in before.get("planned", {}).items()
            if int(number) < batch and before.get("query") == query
        }
        planned[str(batch)] = (self._offsets / str(batch)).read_text()
        newest = sorted(planned, key=int)[-_KEPT_BATCHES:]
        content = {
            "format": _FORMAT,
            "query": query,
            "synced": now,
            "planned": {number: planned[number] for number in newest},
        }
        storage.write(_KEPT, [json_bytes(content)])

    def mend(
        self, storage: Storage, last: tuple[str, int] | None, address: str | None = None
    ) -> None:
        """Repair the checkpoint after a power cut, given the last micro-batch in the log.

        `address`: where executors find it, if not by its path.

        Raises CheckpointError if results would be lost or duplicated.
        """
        plans = _kept(storage, last)
        if plans and not self._folder.is_dir():
            raise CheckpointError(
                f"the log {storage.location} holds the results of another query, "
                "or the checkpoint of this one is gone",
                detail=f"there is no folder {self._folder}",
                hint="give every query a log and a checkpoint of its own; restore what is gone "
                "from a copy, or drop the query and create it again",
            )
        if not self._folder.is_dir():
            return
        point_state_here(self._folder, address)
        self._mend_metadata(last)
        self._mend_offsets(plans, last)
        self._mend_commits()
        self._compare(plans, last)
        self._mend_state(last)
        self._finish(plans, last)
        self._forget_unfinished()
        _remove_lone_checksums(self._offsets)
        _remove_lone_checksums(self._commits)

    def _mend_metadata(self, last: tuple[str, int] | None) -> None:
        if _is_metadata(self._metadata):
            _checksum_of(self._metadata).unlink(missing_ok=True)
        elif last is not None:
            _write(self._metadata, json.dumps({"id": last[0]}))
        else:  # nothing was appended: the query starts anew
            _remove(self._metadata)

    def _mend_offsets(self, plans: dict[int, str], last: tuple[str, int] | None) -> None:
        """Remove truncated plans that have no results; restore others."""
        lines = self._lines_of_plans(plans)
        for number in reversed(_numbers(self._offsets)):
            file = self._offsets / str(number)
            if _is_plan(file, lines):
                _checksum_of(file).unlink(missing_ok=True)
                break
            if last is not None and number <= last[1] and number not in plans:
                raise CheckpointError(
                    "the checkpoint of this query is damaged",
                    detail=f"{file} is truncated, and its results are in the log",
                    hint="restore it from a copy, or drop the query and create it again",
                )
            _remove(file)
        for number, text in plans.items():
            file = self._offsets / str(number)
            if _is_plan(file, lines):
                _checksum_of(file).unlink(missing_ok=True)
            else:
                _write(file, text)

    def _lines_of_plans(self, plans: dict[int, str]) -> int:
        """The number of lines of a whole plan: one for each source, as in those before it."""
        files = [self._offsets / str(number) for number in _numbers(self._offsets)]
        whole = [one.read_text() for one in files if _is_plan(one, _SHORTEST_PLAN)]
        return max((_lines(one) for one in plans.values() or whole), default=_SHORTEST_PLAN)

    def _mend_commits(self) -> None:
        """Remove truncated commit files; their micro-batches are repeated."""
        for number in reversed(_numbers(self._commits)):
            file = self._commits / str(number)
            if _is_plan(file, _SHORTEST_NOTE):
                _checksum_of(file).unlink(missing_ok=True)
                break
            _remove(file)

    def _mend_state(self, last: tuple[str, int] | None) -> None:
        """Have the last micro-batch repeated if the state that it wrote is incomplete.

        Its results are in the log, so only the state is made again. Spark repeats the last one that
        is planned, so a plan without results is dropped. A truncated snapshot is removed: an
        earlier one and the changes after it give the same.
        """
        finished = max(_numbers(self._commits), default=-1)
        for versions in self._versions_of_state():
            snapshots = [one for one in versions if one.suffix == ".zip"]
            for file in snapshots[1:]:
                if not _is_archive(file):
                    _remove(file)
            newest = [one for one in versions if _version(one) == finished + 1]
            if finished >= 0 and not any(one.exists() and _is_whole(one) for one in newest):
                _remove(self._commits / str(finished))
                for number in _numbers(self._offsets):
                    if number > finished and (last is None or number > last[1]):
                        _remove(self._offsets / str(number))
                return

    def _finish(self, plans: dict[int, str], last: tuple[str, int] | None) -> None:
        """Mark the last micro-batch as finished if its results and its state exist.

        Otherwise Spark would repeat it, but the rows that it read may have been deleted since.
        """
        if last is None or last[1] not in plans or last[1] in _numbers(self._commits):
            return
        before = self._commits / str(last[1] - 1)
        if not before.exists() or json.loads(before.read_text().splitlines()[1]) != _NOTE:
            return
        for versions in self._versions_of_state():
            newest = [one for one in versions if _version(one) == last[1] + 1]
            if not any(map(_is_whole, newest)):
                return
        if last[1] + 1 not in _numbers(self._offsets):  # otherwise its rows still exist
            _write(self._commits / str(last[1]), before.read_text())

    def _forget_unfinished(self) -> None:
        """Remove the state that comes of the next micro-batch, which Spark may have begun before.

        Another attempt may write another state. Spark would read a snapshot of the first one, with
        later changes that follow from the second.
        """
        planned = _numbers(self._offsets)
        if not planned:
            return
        following = planned[-1] + (planned[-1] in _numbers(self._commits))
        for versions in self._versions_of_state():
            for file in versions:
                if _version(file) > following:
                    _remove(file)

    def _versions_of_state(self) -> Iterator[list[Path]]:
        """The files that make up the versions of each bucket's state, oldest first."""
        versions: dict[Path, list[Path]] = {}
        for file in _files_in(self._folder / "state"):
            if file.suffix in (".zip", ".changelog") and file.stem.isdecimal():
                versions.setdefault(file.parent, []).append(file)
        for files in versions.values():
            yield sorted(files, key=_version)

    def _compare(self, plans: dict[int, str], last: tuple[str, int] | None) -> None:
        """Refuse a checkpoint and a log if one is older than the other."""
        for number, text in plans.items():
            if (self._offsets / str(number)).read_text() != text:
                raise CheckpointError(
                    "the checkpoint of this query does not belong to its results",
                    detail=f"micro-batch {number} was planned differently from what the log says",
                    hint=_RESTORE_BOTH,
                )
        finished = max(_numbers(self._commits), default=-1)
        if plans and last is not None and finished > last[1]:
            raise CheckpointError(
                "the results of this query are older than its checkpoint",
                detail=f"the log ends with micro-batch {last[1]}, but {finished} is finished",
                hint=_RESTORE_BOTH,
            )

    def _sync(self, batch: int, since: float) -> None:
        """Force to the disk what this micro-batch depends on, as far as it is newer than this."""
        _sync(self._offsets / str(batch))
        _sync(self._offsets)
        folders: set[Path] = set()
        for file in [self._metadata, *_files_in(self._folder / "state")]:
            try:
                if file.stat().st_mtime >= since:
                    _sync(file)
                    folders.update((file.parent, file.parent.parent))
            except FileNotFoundError:  # Spark removes old files
                continue
        for folder in folders:
            _sync(folder)


def _kept(storage: Storage, last: tuple[str, int] | None) -> dict[int, str]:
    """The plans of the last micro-batches in the log."""
    stored = read_json(storage, _KEPT)
    if stored is None or last is None or stored["query"] != last[0]:
        return {}
    if stored["format"] != _FORMAT:
        raise CheckpointError(
            "the results of this query were written by another release of Nilometer",
            detail=f"{_KEPT} has format {stored['format']}, this release reads {_FORMAT}",
        )
    planned = {int(number): text for number, text in stored["planned"].items()}
    return {n: text for n, text in planned.items() if n <= last[1]} if last[1] in planned else {}


def _is_metadata(file: Path) -> bool:
    try:
        return bool(json.loads(file.read_text())["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _is_plan(file: Path, lines: int) -> bool:
    """Whether a file is whole: a version, then lines of JSON, or `-` for nothing."""
    try:
        version, *rest = file.read_text().splitlines()
        for one in rest:
            _ = one == "-" or json.loads(one)
    except (OSError, ValueError):
        return False
    return version.startswith("v") and len(rest) + 1 >= lines


def _version(file: Path) -> int:
    return int(file.stem)


def _is_whole(file: Path) -> bool:
    """Whether a file is as long as its checksums say, if there are any."""
    if file.suffix == ".zip":
        return _is_archive(file)
    size, checksums = file.stat().st_size, _checksum_of(file)
    expected = _CHECKSUM_HEAD + _CHECKSUM * -(-size // _CHECKED_BYTES)
    return size > 0 and (not checksums.exists() or checksums.stat().st_size == expected)


def _is_archive(file: Path) -> bool:
    try:
        with ZipFile(file) as archive:
            return archive.testzip() is None
    except (OSError, BadZipFile):
        return False


def _lines(text: str) -> int:
    return len(text.splitlines())


def _numbers(folder: Path) -> list[int]:
    names = os.listdir(folder) if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdecimal())


def _files_in(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            if not name.endswith(".tmp"):
                yield Path(parent, name)


def _checksum_of(file: Path) -> Path:
    """The file with Hadoop's checksums of a file, which may be truncated, too."""
    return file.with_name(f".{file.name}.crc")


def _remove_lone_checksums(folder: Path) -> None:
    for checksum in folder.glob(".*.crc"):
        if not checksum.with_name(checksum.name[1 : -len(".crc")]).exists():
            checksum.unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    _checksum_of(file).unlink(missing_ok=True)
    aside = file.with_name(f".{file.name}.tmp")
    aside.write_text(text)
    _sync(aside)
    aside.replace(file)
    _sync(file.parent)


def _remove(file: Path) -> None:
    _checksum_of(file).unlink(missing_ok=True)
    file.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
