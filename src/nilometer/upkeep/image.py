"""An image of a database folder at one instant, even while queries run.

Nothing is stopped. Files that are written once and never changed are linked aside, so that they
stay while they are copied. The rest follows from an order:

1. The catalog, and the offsets of readers. Whatever they still need is linked.
2. The state of queries: which files of the engine exist, and which micro-batches of queries
   with an engine of their own are finished.
3. The ends of logs. So logs hold everything that the state has read.

Results that came since the second step are cut off: the copy computes them again from its input. If
another query may have read some of them, everything is done again.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from nilometer.alerts.kept import STATE_FILE
from nilometer.errors import InputError
from nilometer.log.head import HEAD, Head
from nilometer.log.local_storage import LocalStorage
from nilometer.log.position import Position
from nilometer.log.published import LAYOUT, read_head
from nilometer.log.sealed import unseal
from nilometer.log.segment_files import SegmentFile, parse_name, segment_files
from nilometer.log.segment_format import segment_name
from nilometer.log.stored_json import json_bytes
from nilometer.sensors.manager.kept_rates import RATES_FILE
from nilometer.upkeep.cut_log import LastBatch, cut_log
from nilometer.upkeep.format import FORMAT_FILE
from nilometer.upkeep.identity import IDENTITY_FILE, PLACE_FILE
from nilometer.upkeep.image_file import ImageFile
from nilometer.upkeep.kept_buckets import BUCKETS_FILE
from nilometer.upkeep.kept_catalog import (
    KeptCatalog,
    copy_catalog,
    dead_folder,
    log_folder,
    read_catalog,
)
from nilometer.upkeep.logs_place import logs_of
from nilometer.upkeep.places import CATALOG_FILE, CHECKPOINTS, DELIVERIES, ENGINE, LOGS, file_name
from nilometer.upkeep.query_state import EngineImage, checkpoint_image
from nilometer.upkeep.require_in_files import require_catalog, require_in_files

STAGING: Final = ".backup-"
_TRIES: Final = 40
_PAUSE: Final = 0.05
_READERS: Final = "readers"
_STATIC: Final = "static"
_PLANNED: Final = "planned.json"
_NOTED: Final = ("frontiers.json", "count.json", "dropped.json", STATE_FILE)
"""Metadata beside a log; an older version does no harm."""


class ChangedError(Exception):
    """The database has changed while it was read: another attempt may succeed."""


@contextmanager
def image_of(folder: Path, logs: Path | None = None) -> Iterator[list[ImageFile]]:
    """The files of an image; they can be read until the context ends."""
    require_in_files(folder)
    require_catalog(folder)
    remove_staging(folder)
    staging = folder / f"{STAGING}{os.getpid()}-{uuid4().hex[:8]}"
    try:
        yield _take(folder, logs or Path(logs_of(folder)), staging)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def remove_staging(folder: Path) -> None:
    """Delete the leftovers of backups whose processes were killed."""
    for one in folder.glob(f"{STAGING}*"):
        pid = one.name.removeprefix(STAGING).partition("-")[0]
        if not (pid.isdecimal() and Path(f"/proc/{pid}").exists()):
            shutil.rmtree(one, ignore_errors=True)


def _take(folder: Path, logs: Path, staging: Path) -> list[ImageFile]:
    why: Exception | None = None
    for attempt in range(_TRIES):
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(mode=0o700)
        try:
            return _Taking(folder, logs, staging).take()
        except (ChangedError, FileNotFoundError) as error:
            why = error
            time.sleep(_PAUSE * min(10, 1 + attempt))
    raise InputError(
        f"the database {folder} changes too quickly to be copied",
        detail=str(why),
        hint="try again while fewer statements run, or stop the queries that read other queries",
    )


class _Taking:
    """One attempt at reading a folder."""

    def __init__(self, folder: Path, logs: Path, staging: Path) -> None:
        self._folder = folder
        self._logs = logs
        self._staging = staging
        self._files: list[ImageFile] = []

    def take(self) -> list[ImageFile]:
        catalog = self._take_catalog()
        self._take_deliveries()
        there = [one for one in catalog.logs if (self._logs / one / LAYOUT).exists()]
        noted = {log: self._metadata(log) for log in there}
        for log in there:
            self._link_segments(log)
        engine = EngineImage.look(self._folder / ENGINE)
        finished = {
            one.name: checkpoint_image(self._folder / CHECKPOINTS / file_name(one.name))
            for one in catalog.queries
            if one.hosted is None
        }
        heads = {log: read_head(LocalStorage(self._logs / log)) for log in there}
        for log in there:
            self._link_new_segments(log)
        self._add_linked(engine.files(), Path(ENGINE))
        state = engine.read(self._staging / ENGINE)
        last = {one.hosted: state.get(one.hosted, 0) for one in catalog.queries if one.hosted}
        for name, checkpoint in finished.items():
            self._add_linked(checkpoint.files(), Path(CHECKPOINTS, file_name(name)))
        ends = {
            one.name: LastBatch(one.hosted, last[one.hosted])
            if one.hosted
            else finished[one.name].last
            for one in catalog.queries
        }
        cuts = self._cuts(catalog, heads, ends)
        self._files += engine.small_files(last)
        for log in there:
            self._take_log(log, cuts[log], noted[log])
        for name in (IDENTITY_FILE, PLACE_FILE, FORMAT_FILE, RATES_FILE, BUCKETS_FILE):
            if (self._folder / name).exists():
                self._add(name, (self._folder / name).read_bytes())
        if read_catalog(self._folder / CATALOG_FILE).names != catalog.names:
            raise ChangedError("something was created or dropped")
        return self._files

    def _take_catalog(self) -> KeptCatalog:
        copy = self._staging / CATALOG_FILE
        copy_catalog(self._folder / CATALOG_FILE, copy)
        self._files.append(ImageFile(CATALOG_FILE, copy, copy.stat().st_size))
        return read_catalog(copy)

    def _take_deliveries(self) -> None:
        """Take delivered files; before the readers' offsets, from which the next are delivered."""
        root = self._folder / DELIVERIES
        delivered = {
            one.relative_to(root): one
            for one in sorted(root.rglob("*"))
            if one.is_file() and not one.name.startswith(".")
        }
        self._add_linked(delivered, Path(DELIVERIES))

    def _metadata(self, log: str) -> dict[str, bytes]:
        """The readers' offsets, and other metadata of a log."""
        folder, contents = self._logs / log, {}
        for one in sorted((folder / _READERS).glob("*.json")):
            if not one.name.startswith("."):
                contents[f"{_READERS}/{one.name}"] = one.read_bytes()
        for name in _NOTED:
            if (folder / name).exists():
                contents[name] = (folder / name).read_bytes()
        return contents

    def _link_segments(self, log: str) -> None:
        """Link the files of a log that exist now, also those that are packed meanwhile."""
        folder = self._logs / log
        before: set[str] | None = None
        while before != (names := _segment_names(folder)):
            before = names  # a listing may miss a file that was being replaced
        for name in sorted(names):
            link(folder / name, self._staging / LOGS / log / name)

    def _link_new_segments(self, log: str) -> None:
        """Link segments that were begun since; those packed since are already linked unpacked."""
        staged = self._staging / LOGS / log
        known = _segment_names(staged)
        last = max((_parsed(name).last for name in known), default=-1)
        for name in sorted(_segment_names(self._logs / log) - known):
            if not (one := _parsed(name)).is_packed and one.first > last:
                link(self._logs / log / name, staged / name)

    def _cuts(
        self,
        catalog: KeptCatalog,
        heads: Mapping[str, Head | None],
        last: Mapping[str, LastBatch],
    ) -> dict[str, Head | None]:
        """The positions at which the copies of logs end."""
        cuts = dict(heads)
        for query in catalog.queries:
            for log in (log_folder(query.name), dead_folder(query.name)):
                head = heads.get(log)
                if head is None:
                    continue
                cut = cuts[log] = cut_log(self._staging / LOGS / log, head, last[query.name])
                if query.is_read and log == log_folder(query.name) and cut.end < head.end:
                    raise ChangedError(f"{query.name} has just had results that others read")
        return cuts

    def _take_log(self, log: str, head: Head | None, noted: Mapping[str, bytes]) -> None:
        """Take a log up to its cut."""
        place, staged = f"{LOGS}/{log}", self._staging / LOGS / log
        self._add(f"{place}/{LAYOUT}", (self._logs / log / LAYOUT).read_bytes())
        for one in segment_files(LocalStorage(staged)):
            if head is None or one.last < head.end.segment:
                size = (staged / one.name).stat().st_size
                self._files.append(ImageFile(f"{place}/{one.name}", staged / one.name, size, True))
            elif one.first == head.end.segment and not one.is_packed:
                self._files.append(
                    ImageFile(f"{place}/{one.name}", staged / one.name, head.end.byte)
                )
        if head is not None:
            end = head.end
            if not (staged / segment_name(end.segment)).exists():
                raise ChangedError(f"a segment of {log} was deleted")
            synced = (end.segment, end.byte)
            self._add(f"{place}/{HEAD}", Head(end, head.watermark, synced).to_bytes())
        for name, content in noted.items():
            is_reader = name.startswith(f"{_READERS}/")
            self._add(f"{place}/{name}", _at_rest(content, head) if is_reader else content)
        self._take_beside(log)

    def _take_beside(self, log: str) -> None:
        """Take static values of sensors, and Spark's plans: after the end of the log."""
        folder, place = self._logs / log, Path(LOGS, log)
        static = {
            Path(_STATIC, one.name): one
            for one in sorted((folder / _STATIC).glob("*.arrow"))
            if not one.name.startswith(".")
        }
        self._add_linked(static, place)
        if (folder / _PLANNED).exists():
            self._add(f"{place}/{_PLANNED}", (folder / _PLANNED).read_bytes())

    def _add(self, path: str, content: bytes) -> None:
        self._files.append(ImageFile(path, content, len(content)))

    def _add_linked(self, files: Mapping[Path, Path], place: Path) -> None:
        """Add linked files, which are replaced only by others of the same name, if at all."""
        for name, source in files.items():
            to = self._staging / place / name
            link(source, to)
            size = to.stat().st_size
            self._files.append(ImageFile((place / name).as_posix(), to, size, True))


def _segment_names(folder: Path) -> set[str]:
    """The files of a folder that hold segments."""
    names = os.listdir(folder) if folder.is_dir() else []
    return {name for name in names if parse_name(name) is not None}


def _parsed(name: str) -> SegmentFile:
    file = parse_name(name)
    assert file is not None
    return file


def link(source: Path, to: Path) -> None:
    """Hard-link a file under another name; where that is impossible, copy it."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, to)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, to)


def _at_rest(content: bytes, head: Head | None) -> bytes:
    """A reader's state as one that reads nothing at present, and has read no more than there is."""
    fields: dict[str, Any] = json.loads(unseal(content))
    position = Position.from_json(fields["position"])
    if head is not None and position > head.end:
        position = head.end
    about = dict(fields["about"])
    planned = about.get("planned")
    if planned is not None and head is not None and Position.from_json(planned) > head.end:
        about["planned"] = None
    at_rest = {"position": position.to_json(), "about": about, "active": False, "pid": None}
    return json_bytes(fields | at_rest)
