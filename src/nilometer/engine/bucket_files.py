"""The files of a bucket: one for every micro-batch in which something happened.

A file holds the changes of the queries' states, and their results. It gets its name once all of
it is on the disk, and only if no other process was faster: the first one wins, and any other
that has worked on the same micro-batch discards its work. So the files are authoritative,
whatever happens to tasks and workers.

At intervals a file holds the state of all queries; those before it are no longer needed once
their results are in the logs. Large chunks have files of their own.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from nilometer.engine.folder import Folder
from nilometer.errors import LogError

_MAGIC: Final = b"NiBk0001"
_HEAD: Final = struct.Struct("<8sQI")
_SUFFIX: Final = ".batch"
_CHUNK: Final = ".chunk"
_DIGITS: Final = 12
_LARGE: Final = 1 << 20
"""A chunk of at least this many bytes has a file of its own."""
_START: Final = 1 << 16
"""How many bytes of a file are read at once, which is usually all of its header."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Some bytes of a file."""

    file: str
    start: int
    length: int
    crc: int

    def to_json(self) -> list[Any]:
        return [self.file, self.start, self.length, self.crc]


@dataclass
class QueryEntry:
    """What one micro-batch did to one query."""

    query: str
    state: bytes | Extent | None = None
    """Its snapshot; None: unchanged."""
    about: bytes | Extent | None = None
    """The query's identity, when its state is stored for the first time."""
    chunks: dict[str, bytes | Extent] = field(default_factory=dict)
    """New chunks."""
    gone: list[str] = field(default_factory=list)
    """Chunks that are no longer needed."""
    frames: list[bytes] = field(default_factory=list)
    """Results, as frames of their log."""
    report: dict[str, Any] = field(default_factory=dict)
    """Other information about it, as JSON values."""
    subplan: str | None = None
    """The query whose sub-plan is also this one's, with its chunks; None: the snapshot has it."""


@dataclass(frozen=True)
class StoredEntry:
    """The same entry as read from a file."""

    query: str
    state: Extent | None
    subplan: str | None
    about: Extent | None
    chunks: Mapping[str, Extent]
    gone: tuple[str, ...]
    frames: tuple[Extent, ...]
    report: Mapping[str, Any]


@dataclass(frozen=True)
class BatchFile:
    """A file of a bucket."""

    number: int
    is_whole: bool
    """Whether it holds the state of all queries."""
    revision: int
    """The revision of the plan set that was followed."""
    now: int
    entries: tuple[StoredEntry, ...]
    size: int


class BucketFolder:
    """The files of one bucket."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    @property
    def location(self) -> str:
        """Where the files are, for people."""
        return self._folder.location

    def close(self) -> None:
        """Close the file that was last read from."""
        self._folder.close()

    def numbers(self) -> list[int]:
        """The numbers of the existing files, in order."""
        names = (name for name in self._folder.names() if name.endswith(_SUFFIX))
        return sorted(int(name.removesuffix(_SUFFIX)) for name in names)

    def write(
        self, number: int, revision: int, now: int, entries: Iterable[QueryEntry], *, is_whole: bool
    ) -> BatchFile | None:
        """Write the file of a micro-batch; None if another process has written it already."""
        blobs = _Blobs(self, number)
        # Those that have their own sub-plan come before others that have the same.
        try:
            listed = [blobs.listed(one) for one in sorted(entries, key=_has_subplan_of_another)]
        except LogError:
            if not self._folder.has(_name(number)):
                raise
            return None  # the one that was faster has deleted what it replaces
        header = {"whole": is_whole, "revision": revision, "now": now, "entries": listed}
        head = json.dumps(header, separators=(",", ":")).encode()
        start = _HEAD.pack(_MAGIC, len(head), zlib.crc32(head))
        size = self._folder.create(_name(number), [start, head, *blobs.contents])
        if size is None:
            return None
        return _batch_file(number, header, _HEAD.size + len(head), size)

    def read_batch(self, number: int) -> BatchFile:
        """Read a file; raises FileNotFoundError if it is missing, LogError if it is damaged."""
        name = _name(number)
        start, size = self._folder.start_of(name, _START)
        if len(start) < _HEAD.size:
            raise self._damaged(name)
        magic, length, crc = _HEAD.unpack_from(start)
        end = _HEAD.size + length
        head = start[_HEAD.size : end]
        if len(start) < end <= size:
            head += self._folder.read(name, len(start), end - len(start))
        if magic != _MAGIC or len(head) != length or zlib.crc32(head) != crc:
            raise self._damaged(name)
        return _batch_file(number, json.loads(head), end, size)

    def read(self, extent: Extent) -> bytes:
        """Read bytes that were written; raises LogError if they are missing or differ."""
        try:
            content = self._folder.read(extent.file, extent.start, extent.length)
        except FileNotFoundError:
            raise self._damaged(extent.file) from None
        if len(content) != extent.length or zlib.crc32(content) != extent.crc:
            raise self._damaged(extent.file)
        return content

    def write_chunk(self, content: bytes, number: int) -> str:
        """Write bytes to a file of their own, for the file of this number; returns its name."""
        name = f"{number:0{_DIGITS}d}-{uuid4().hex}{_CHUNK}"
        self._folder.add(name, content)
        return name

    def delete_before(self, number: int, last: int, wanted: Iterable[Extent]) -> None:
        """Delete older files, and chunks that are no longer needed.

        Chunks for a file after the last one belong to a process that is about to write it.
        """
        needed = {one.file for one in wanted}

        def is_old(name: str) -> bool:
            file_number = int(name[:_DIGITS])
            if name.endswith(_SUFFIX):
                return file_number < number
            return name.endswith(_CHUNK) and file_number <= last and name not in needed

        self._folder.delete([name for name in self._folder.names() if is_old(name)])

    def in_order(self, numbers: Sequence[int], first: int | None = None) -> Iterator[BatchFile]:
        """Files without a gap between them, or before the first one."""
        begin = numbers[0] if first is None and numbers else first or 0
        for expected, one in enumerate(numbers, begin):
            if one != expected:
                raise self._damaged(_name(expected))
            yield self.read_batch(one)

    def _damaged(self, name: str) -> LogError:
        return LogError(
            "a file of the engine is damaged or missing",
            detail=f"{self.location}/{name}",
            hint="restore the database's folder from a copy",
        )


class _Blobs:
    """The bytes that follow the header of a file."""

    def __init__(self, folder: BucketFolder, number: int) -> None:
        self._folder = folder
        self._number = number
        self._end = 0
        self.contents: list[bytes] = []

    def listed(self, one: QueryEntry) -> dict[str, Any]:
        """An entry as listed in the header."""
        return {
            "query": one.query,
            "state": self.put(one.state),
            "base": one.subplan,
            "about": self.put(one.about),
            "chunks": {key: self.put(value) for key, value in one.chunks.items()},
            "gone": one.gone,
            "frames": [self.put_here(frame) for frame in one.frames],
            "told": one.report,
        }

    def put(self, content: bytes | Extent | None) -> list[Any] | None:
        """Place bytes: where they are already, in this file, or in a file of their own."""
        if content is None:
            return None
        if isinstance(content, Extent):
            if content.file.endswith(_CHUNK):
                return content.to_json()
            content = self._folder.read(content)
        if len(content) < _LARGE:
            return self.put_here(content)
        name = self._folder.write_chunk(content, self._number)
        return Extent(name, 0, len(content), zlib.crc32(content)).to_json()

    def put_here(self, content: bytes) -> list[Any]:
        """Place bytes in this file."""
        extent = Extent(_name(self._number), self._end, len(content), zlib.crc32(content))
        self.contents.append(content)
        self._end += len(content)
        return extent.to_json()


@dataclass
class KeptQuery:
    """What the files of a bucket hold of one query."""

    state: Extent | None = None
    subplan: Extent | None = None
    """The snapshot that has its sub-plan: its own, or that of a query that had the same."""
    about: Extent | None = None
    chunks: dict[str, Extent] = field(default_factory=dict)
    number: int = -1
    """The last file that changed its state."""
    failed: int | None = None
    """The number of the last attempt, if it failed."""

    @property
    def extents(self) -> Iterator[Extent]:
        """The extents of everything it consists of."""
        yield from (one for one in (self.state, self.subplan, self.about) if one is not None)
        yield from self.chunks.values()

    def take(self, entry: StoredEntry, number: int, others: Mapping[str, KeptQuery]) -> None:
        """Apply what a file says; others are as they were before this entry."""
        self.failed = entry.report.get("attempt")
        if entry.state is not None:
            self.state, self.subplan, self.number = entry.state, entry.state, number
        if entry.about is not None:
            self.about = entry.about
        if entry.subplan is not None:
            self.subplan, self.chunks = (
                others[entry.subplan].subplan,
                dict(others[entry.subplan].chunks),
            )
        for gone in entry.gone:
            self.chunks.pop(gone, None)
        self.chunks.update(entry.chunks)


def take_entries(kept: dict[str, KeptQuery], batch: BatchFile) -> None:
    """Apply a file to what is kept of all queries."""
    if batch.is_whole:
        kept.clear()
    for entry in batch.entries:
        kept.setdefault(entry.query, KeptQuery()).take(entry, batch.number, kept)


def read_state(folder: BucketFolder, kept: KeptQuery) -> bytes:
    """The snapshot of a query with its sub-plan, wherever that is."""
    assert kept.state is not None
    own = folder.read(kept.state)
    if kept.subplan is None or kept.subplan == kept.state:
        return own
    run = json.loads(folder.read(kept.subplan))["run"]
    return json.dumps({**json.loads(own), "run": run}, separators=(",", ":")).encode()


def batches_after(folder: BucketFolder, number: int) -> Iterator[BatchFile]:
    """The files that follow this one, in order, as needed to know the state.

    If some are deleted already, the sequence restarts at the next whole one.
    """
    numbers = [one for one in folder.numbers() if one > number]
    if numbers and numbers[0] != number + 1:
        while numbers and not folder.read_batch(numbers[0]).is_whole:
            numbers.pop(0)
        if not numbers:
            raise LogError(
                "the files of the engine are damaged",
                detail=f"{folder.location} has no complete state after {number}",
                hint="restore the database's folder from a copy",
            )
    yield from folder.in_order(numbers)


def results_after(folder: BucketFolder, number: int) -> Iterator[BatchFile]:
    """The files that follow this one, as needed for all results; -1: all existing files."""
    numbers = [one for one in folder.numbers() if one > number]
    yield from folder.in_order(numbers, None if number < 0 else number + 1)


def _batch_file(number: int, header: dict[str, Any], begin: int, size: int) -> BatchFile:
    """A file, given its header and where the header ends."""
    name = _name(number)

    def extent(fields: list[Any] | None) -> Extent | None:
        if fields is None:
            return None
        file, start, length, crc = fields
        return Extent(file, start + begin if file == name else start, length, crc)

    def all_of(listed: Iterable[list[Any]]) -> Iterator[Extent]:
        return (stored for one in listed if (stored := extent(one)) is not None)

    entries = tuple(
        StoredEntry(
            one["query"],
            extent(one["state"]),
            one.get("base"),
            extent(one["about"]),
            dict(zip(one["chunks"], all_of(one["chunks"].values()), strict=True)),
            tuple(one["gone"]),
            tuple(all_of(one["frames"])),
            one["told"],
        )
        for one in header["entries"]
    )
    return BatchFile(number, header["whole"], header["revision"], header["now"], entries, size)


def _has_subplan_of_another(entry: QueryEntry) -> bool:
    return entry.subplan is not None


def _name(number: int) -> str:
    return f"{number:0{_DIGITS}d}{_SUFFIX}"
