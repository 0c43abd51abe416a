"""A log in an object store: objects cannot be appended to, so every append is a segment.

An object exists as a whole or not at all. Where a file system shows files that are still being
written, the length in the segment's header shows that one is incomplete.

There are no locks, and a write can arrive late. So every writer has a term, objects carry the term
in their names, and no writer ever overwrites an object of another:

    000000000012-TERM.seg      a segment
    …pack, …base               packed segments, which count once there is
    …pack.whole, …base.whole   an empty object of this name
    terms/TERM                 the writer of this term has taken over
    terms/TERM.000000000012    from this number on, its segments count and earlier writers' do not
    heads/TERM                 the last segment that it has published

The newest term wins. A writer acknowledges rows only if no later term exists after they were
written: a new writer looks for segments after its own term exists, so it finds them. The previous
writer finds out at its next append.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain, islice, pairwise
from typing import Final

import pyarrow as pa
from pyarrow import fs

from nilometer.errors import LogError, LogTakenError
from nilometer.log.block_cache import BlockCache
from nilometer.log.frame_format import Chunks
from nilometer.log.object_names import WHOLE, counts, object_name, parsed_name
from nilometer.log.remote_file import HeldFile, RemoteFile
from nilometer.log.segment_files import is_packed_name
from nilometer.log.segment_format import segment_name, segment_number
from nilometer.log.storage import Item, Returned

REQUESTS_AT_ONCE: Final = 16
_FEW: Final = 3
_SMALL: Final = 1 << 16
"""So large may an object be that is read as a whole although only a part of it may be wanted,"""
_LARGE: Final = 16 << 20
"""and so large one of which all is wanted; objects of collected appends have half of that."""
_ROOM_AHEAD: Final = 32 << 20
"""How many bytes are read ahead at a time."""
_read_before: Final[BlockCache[HeldFile]] = BlockCache(64 << 20)
"""Objects that were read lately, for other readers in this process."""
_TERMS: Final = "terms"
_HEADS: Final = "heads"
_NO_END: Final = 1 << 62
_HEAD_TRIES: Final = 40
_HEAD_SECONDS: Final = 0.05


class RemoteStorage:
    """A folder in any `pyarrow.fs` file system."""

    publishes: Final = False

    def __init__(self, location: str, system: fs.FileSystem, folder: str) -> None:
        self.location = location
        self._system = system
        self._folder = folder.rstrip("/")
        self._terms = Terms(self)
        self._term: str | None = None
        """The term of the writer that this storage belongs to, if any."""
        self._has_begun = False
        self._objects: dict[str, str] = {}

    def remove(self) -> None:
        if self._system.get_file_info(self._folder).type != fs.FileType.NotFound:
            self._system.delete_dir(self._folder)

    def make(self) -> None:
        self._system.create_dir(self._folder, recursive=True)

    def is_empty(self) -> bool:
        selector = fs.FileSelector(self._folder, allow_not_found=True)
        return not self._system.get_file_info(selector)

    def files(self, folder: str = "") -> list[tuple[str, int]]:
        objects = self._list(folder)
        if folder:
            return sorted(objects.items())
        self._objects = self._visible(objects)
        own = {name: size for name, size in objects.items() if counts(name, objects)}
        return sorted([*own.items(), *((n, objects[one]) for n, one in self._objects.items())])

    def _list(self, folder: str) -> dict[str, int]:
        where = f"{self._folder}/{folder}".rstrip("/")
        infos = self._system.get_file_info(fs.FileSelector(where, allow_not_found=True))
        return {one.base_name: one.size or 0 for one in infos if one.type == fs.FileType.File}

    @contextmanager
    def open(self, name: str) -> Iterator[RemoteFile]:
        with self._system.open_input_file(f"{self._folder}/{self._object_of(name)}") as file:
            yield RemoteFile(file)

    def open_each(
        self, files: Iterable[tuple[str, int]], *, whole: bool = False
    ) -> Iterator[RemoteFile | HeldFile]:
        waiting, at_once = deque(files), 1
        while waiting:
            ahead = self.map(self._whole_object, _read_ahead(islice(waiting, at_once), whole=whole))
            for held in ahead:
                name, _ = waiting.popleft()
                if held is None:
                    raise FileNotFoundError(name)
                yield held
            if not ahead:
                with self.open(waiting.popleft()[0]) as file:
                    yield file
            at_once = min(at_once * 4, REQUESTS_AT_ONCE)  # a reader may stop at the first

    def _whole_object(self, file: tuple[str, int]) -> HeldFile | None:
        """All of an object; None if it does not exist."""
        name = self._object_of(file[0])
        key = (self.location, name, file[1])
        if (cached := _read_before.find(key)) is not None:
            return cached
        try:
            held = HeldFile(pa.py_buffer(self.read(name)))
        except FileNotFoundError:
            return None
        parsed = parsed_name(name)
        if parsed is not None and parsed[1]:  # nobody else writes this object
            _read_before.put(key, held)
        return held

    def read(self, name: str) -> bytes:
        with self._system.open_input_file(f"{self._folder}/{name}") as file:
            content: bytes = file.readall()
            return content

    def write(
        self, name: str, chunks: Iterable[bytes | pa.Buffer], *, durable: bool = True
    ) -> None:
        path = f"{self._folder}/{name}"
        try:
            opened = self._system.open_output_stream(path)
        except FileNotFoundError:  # not an object store, then
            self._system.create_dir(path.rsplit("/", 1)[0], recursive=True)
            opened = self._system.open_output_stream(path)
        with opened as file:
            for chunk in chunks:
                file.write(chunk)

    def map(self, function: Callable[[Item], Returned], items: Iterable[Item]) -> list[Returned]:
        waiting = list(items)
        if len(waiting) < _FEW:
            return [function(one) for one in waiting]
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            return list(pool.map(function, waiting))

    def write_all(self, contents: Mapping[str, bytes]) -> None:
        self.map(lambda one: self.write(one[0], [one[1]]), contents.items())

    def delete(self, name: str) -> None:
        if is_packed_name(name):
            self.delete(name + WHOLE)
        path = f"{self._folder}/{self._object_of(name)}"
        if self._system.get_file_info(path).type == fs.FileType.File:
            with suppress(FileNotFoundError):  # another writer was faster
                self._system.delete_file(path)

    @contextmanager
    def exclusive(self, name: str) -> Iterator[None]:
        yield

    @contextmanager
    def claim(self) -> Iterator[None]:
        self._term = self._terms.claim()
        self._has_begun = False
        yield

    def put_segment(self, number: int, chunks: Iterable[bytes | pa.Buffer]) -> None:
        """Write a segment of this writer; raises LogError if another writer has taken over."""
        assert self._term is not None
        self.write(object_name(number, self._term), chunks)
        if not self._has_begun:
            self._require_newest()
            self._terms.begin(self._term, number)
        self._require_newest()
        self.write(f"{_HEADS}/{self._term}", [str(number).encode()])
        if not self._has_begun:
            self._has_begun = True
            self._forget_writers()

    def segments(self) -> RemoteSegments:
        return RemoteSegments(self)

    @property
    def term(self) -> str:
        return self._term or ""

    def put_aside(self, name: str, chunks: Iterable[bytes | pa.Buffer]) -> None:
        try:
            self.write(name, chunks)
        except OSError as problem:
            raise LogError("cannot write to the log", detail=str(problem)) from problem

    def show(self, name: str) -> None:
        self._require_newest()
        self.write(name + WHOLE, [b""])

    def sweep(self, name: str | None = None) -> None:
        objects = self._list("")
        for one in objects if name is None else [name]:
            if is_packed_name(one) and one + WHOLE not in objects:
                self.delete(one)

    def _require_newest(self) -> None:
        newest = self._terms.newest()
        if newest != self._term:
            raise LogTakenError(
                "another writer has taken the log over",
                detail=f"{self.location} is held by writer {newest}, this one is {self._term}",
                hint="a log has one writer; reopen it here once that one is closed",
            )

    def _object_of(self, name: str) -> str:
        """The object behind a name that readers use."""
        if segment_number(name) is None:
            return name
        if name not in self._objects:
            self._objects = self._visible(self._list(""))
        return self._objects.get(name, name)

    def _visible(self, objects: Mapping[str, int]) -> dict[str, str]:
        """The objects that are segments of the log, by the names of the segments."""
        begins = {"": 0, **self._terms.begins()}
        ends = self._ends(begins, objects)
        return {
            segment_name(number): object_name(number, term)
            for number, term in filter(None, map(parsed_name, objects))
            if begins.get(term, number + 1) <= number < ends[term]
        }

    def _ends(self, begins: Mapping[str, int], objects: Mapping[str, int]) -> dict[str, int]:
        """The number before which the segments of each writer end."""
        terms = sorted(begins)
        ends = {one: begins[later] for one, later in pairwise(terms)}
        for one, later in reversed(list(pairwise(terms))):
            ends[one] = min(ends[one], ends.get(later, ends[one]))
        newest = terms[-1]
        # Readers see what the newest writer has published; a writer that takes over continues
        # after everything that writer has written.
        takes_over = self._term is not None and self._term not in begins
        if newest and not takes_over:
            # It writes its first segment before its first head, and the next one before another.
            own = [one[0] for one in map(parsed_name, objects) if one and one[1] == newest]
            has_head = max(own, default=0) > begins[newest]
            ends[newest] = self._head(newest, has_head=has_head) + 1
        else:
            ends[newest] = _NO_END
        return ends

    def _forget_writers(self) -> None:
        """Delete the records of writers before the first one that still has segments.

        The records of writers in between hide segments that earlier ones wrote too late.
        """
        assert self._term is not None
        needed = {parsed[1] for parsed in map(parsed_name, self._list("")) if parsed is not None}
        oldest = min(needed, default=self._term)
        for name, _ in self.files(_TERMS):
            term = name.partition(".")[0]
            if term < oldest:
                self.delete(f"{_TERMS}/{name}")
                self.delete(f"{_HEADS}/{term}")

    def _head(self, term: str, *, has_head: bool) -> int:
        """The last segment that a writer has published; -1: none.

        Where a file system cannot replace a file at once, it is absent or empty for a moment.
        """
        name = f"{_HEADS}/{term}"
        for left in reversed(range(_HEAD_TRIES)):
            try:
                return int(self.read(name))
            except FileNotFoundError:
                if not has_head:
                    return -1
            except ValueError:
                pass
            time.sleep(_HEAD_SECONDS if left else 0)
        if not has_head:
            return -1
        raise LogError(
            "the end of the log cannot be read",
            detail=f"{name} in {self.location} was missing or empty for "
            f"{_HEAD_TRIES * _HEAD_SECONDS:.0f} s",
            hint="its writer may have ended while it replaced the file: the next append of a new "
            "writer cures it",
        )


class Terms:
    """The writers that a log has had, in order, each with a unique name.

    A writer claims the log by an object under its name. A second object, written with its first
    segment, says from where on its segments count and those of earlier writers do not.
    """

    def __init__(self, storage: RemoteStorage) -> None:
        self._storage = storage

    def claim(self) -> str:
        """Claim the log; returns the name of a new writer, which is the newest one from now on."""
        before = self.newest()
        number = int(before.partition("-")[0]) + 1 if before else 1
        term = f"{number:08d}-{secrets.token_hex(8)}"
        holder = f"process {os.getpid()} of {socket.gethostname()}"
        self._storage.write(f"{_TERMS}/{term}", [holder.encode()])
        if self.newest() != term:
            raise LogError(
                "the log is already open for writing",
                detail=f"another writer of {self._storage.location} opened it at the same time",
                hint="a log has one writer; close that one first",
            )
        return term

    def newest(self) -> str:
        """The name of the newest writer; empty if there was none."""
        return max((term for term, _ in self._all()), default="")

    def begins(self) -> dict[str, int]:
        """The number of the first segment of each writer that has written one."""
        return {term: begin for term, begin in self._all() if begin is not None}

    def begin(self, term: str, number: int) -> None:
        """Let the segments of a writer count from this one on, unless they already do."""
        if term not in self.begins():
            self._storage.write(f"{_TERMS}/{term}.{number:012d}", [b""])

    def _all(self) -> Iterator[tuple[str, int | None]]:
        for name, _ in self._storage.files(_TERMS):
            term, mark, begin = name.partition(".")
            yield term, int(begin) if mark else None


class RemoteSegments:
    """Objects, each one segment."""

    whole: Final = True

    def __init__(self, storage: RemoteStorage) -> None:
        self._storage = storage
        self._begun: tuple[int, bytes] | None = None

    def begin(self, number: int, header: bytes) -> None:
        self._begun = (number, header)

    def go_on(self, number: int, size: int) -> None:
        self._begun = None

    def add(self, byte: int, frames: Iterable[Chunks]) -> None:
        if self._begun is None:
            raise AssertionError("an object cannot be appended to")
        number, header = self._begun
        try:
            self._storage.put_segment(number, chain([header], chain.from_iterable(frames)))
        except OSError as problem:
            raise LogError("cannot write to the log", detail=str(problem)) from problem
        self._begun = None

    def sync(self) -> None:
        """Nothing to do: an object that was written is durable."""

    def publish(self, head: bytes) -> None:
        """Nothing to do: an object is published by the head that was written with it."""

    def close(self) -> None:
        self._begun = None


def _read_ahead(files: Iterable[tuple[str, int]], *, whole: bool) -> Iterator[tuple[str, int]]:
    """The first of some files that are read as a whole, so many as there is room for."""
    room = _ROOM_AHEAD
    for name, size in files:
        most = _LARGE if whole and not is_packed_name(name) else _SMALL
        if size > min(most, room):
            return
        room -= size
        yield name, size
