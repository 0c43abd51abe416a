"""A log in a local directory: segments grow, and a head says where the log ends."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from nilometer.errors import DiskFullError, LogError
from nilometer.log.frame_format import Chunks
from nilometer.log.head import HEAD
from nilometer.log.segment_format import segment_name
from nilometer.log.storage import Item, Returned

LOCK: Final = "lock"
_NEXT: Final = "next"
"""The segment that is being created, before it gets its name."""
_ASIDE: Final = ".packing-"
_MOST_CHUNKS: Final = 512
_SYNCFS: Final = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


class LocalFile:
    """A file read by offset, so that its pages do not count as this process's memory."""

    ahead: Final = 1 << 20

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._descriptor).st_size

    def read_at(self, start: int, length: int) -> pa.Buffer:
        data = pa.allocate_buffer(length)
        view, got = memoryview(data), 0
        while got < length:
            more = os.preadv(self._descriptor, [view[got:]], start + got)
            if not more:
                break
            got += more
        return data.slice(0, got)

    def close(self) -> None:
        os.close(self._descriptor)


class LocalStorage:
    """A directory on this machine."""

    publishes: Final = True
    term: Final = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.location = str(folder)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def make(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True, exist_ok=True)
            sync_folder(self.folder.parent)

    def is_empty(self) -> bool:
        return not self.folder.is_dir() or not any(self.folder.iterdir())

    def files(self, folder: str = "") -> list[tuple[str, int]]:
        files = []
        try:
            with os.scandir(self.folder / folder) as entries:
                for entry in entries:
                    size = _size_of(entry)
                    if size is not None:
                        files.append((entry.name, size))
        except FileNotFoundError:
            return []
        return sorted(files)

    @contextmanager
    def open(self, name: str) -> Iterator[LocalFile]:
        file = LocalFile(self.folder / name)
        try:
            yield file
        finally:
            file.close()

    def open_each(
        self, files: Iterable[tuple[str, int]], *, whole: bool = False
    ) -> Iterator[LocalFile]:
        for name, _ in files:
            with self.open(name) as file:
                yield file

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def write(
        self, name: str, chunks: Iterable[bytes | pa.Buffer], *, durable: bool = True
    ) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file that nobody looks for before it is complete needs no temporary name that may stay.
        aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}") if durable else path
        try:
            _write_file(aside, chunks, durable=durable)
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        if durable:
            sync_folder(path.parent)

    def map(self, function: Callable[[Item], Returned], items: Iterable[Item]) -> list[Returned]:
        return [function(one) for one in items]

    def write_all(self, contents: Mapping[str, bytes]) -> None:
        asides = {}
        try:
            for name, content in contents.items():
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                asides[path] = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
                asides[path].write_bytes(content)
            sync_file_system(self.folder)
            for path, aside in asides.items():
                aside.replace(path)
        except BaseException:
            for aside in asides.values():
                aside.unlink(missing_ok=True)
            raise
        for folder in {path.parent for path in asides}:
            sync_folder(folder)

    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    @contextmanager
    def exclusive(self, name: str) -> Iterator[None]:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def claim(self) -> Iterator[None]:
        with (self.folder / LOCK).open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().decode() or "another process"
                raise LogError(
                    "the log is already open for writing",
                    detail=f"{self.location} is held by {holder}",
                    hint="a log has one writer; close that one first",
                ) from None
            file.truncate(0)
            file.write(f"process {os.getpid()}".encode())
            file.flush()
            yield

    def segments(self) -> LocalSegments:
        return LocalSegments(self.folder)

    def put_aside(self, name: str, chunks: Iterable[bytes | pa.Buffer]) -> None:
        path = self.folder / _aside(name)
        try:
            _write_file(path, chunks, durable=True)
        except BaseException as problem:
            path.unlink(missing_ok=True)
            if isinstance(problem, OSError):
                raise _stated(problem, path) from problem
            raise

    def show(self, name: str) -> None:
        (self.folder / _aside(name)).replace(self.folder / name)
        sync_folder(self.folder)

    def sweep(self, name: str | None = None) -> None:
        for path in self.folder.glob(_aside(name or "*")):
            path.unlink(missing_ok=True)


class LocalSegments:
    """The segment that is being appended to, and the head."""

    whole: Final = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segment = -1
        self._changing = threading.Lock()
        self._head = os.open(folder / HEAD, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def begin(self, number: int, header: bytes) -> None:
        """Begin a segment; the previous one is complete, and from here on safely on the disk.

        It gets its name when its header is complete: a reader that looks meanwhile finds no
        segment, rather than one that seems to be damaged.
        """
        self.sync()
        path, aside = self._folder / segment_name(number), self._folder / _NEXT
        if path.exists():
            raise FileExistsError(errno.EEXIST, "the segment already exists", str(path))
        descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            _write_all(descriptor, 0, [header])
            os.fsync(descriptor)
            aside.rename(path)
            sync_folder(self._folder)
        except OSError as problem:
            os.close(descriptor)
            aside.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            raise _stated(problem, path) from problem
        self._replace(descriptor)

    def go_on(self, number: int, size: int) -> None:
        descriptor = os.open(self._folder / segment_name(number), os.O_RDWR | os.O_CLOEXEC)
        if os.fstat(descriptor).st_size != size:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        self._replace(descriptor)

    def add(self, byte: int, frames: Iterable[Chunks]) -> None:
        place = byte
        try:
            for chunks in frames:
                place = _write_all(self._segment, place, chunks)
        except OSError as problem:
            os.ftruncate(self._segment, byte)
            raise _stated(problem, self._folder) from problem

    def sync(self) -> None:
        with self._changing:  # the writer may begin another segment meanwhile
            if self._segment < 0:
                return
            descriptor = os.dup(self._segment)
        try:
            _force(descriptor)
        finally:
            os.close(descriptor)

    def publish(self, head: bytes) -> None:
        os.pwrite(self._head, head, 0)

    def close(self) -> None:
        self._replace(-1)
        head, self._head = self._head, -1  # the number may soon be another file's
        os.close(head)

    def _replace(self, descriptor: int) -> None:
        with self._changing:
            if self._segment >= 0:
                os.close(self._segment)
            self._segment = descriptor


def _write_file(path: Path, chunks: Iterable[bytes | pa.Buffer], *, durable: bool) -> None:
    with path.open("wb", buffering=0) as file:
        place = 0
        for chunk in chunks:
            place = _write_all(file.fileno(), place, [chunk])
        if durable:
            os.fsync(file.fileno())


def _write_all(descriptor: int, place: int, chunks: Chunks) -> int:
    """Write the chunks at this offset; returns the offset after them."""
    rest = [view for chunk in chunks if len(view := memoryview(chunk).cast("B"))]
    while rest:
        written = os.pwritev(descriptor, rest[:_MOST_CHUNKS], place)
        place += written
        while rest and written >= len(rest[0]):
            written -= len(rest.pop(0))
        if written:
            rest[0] = rest[0][written:]
    return place


def _force(descriptor: int) -> None:
    """Force a file's data to the disk itself, by whatever means the system has for that."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def _size_of(entry: os.DirEntry[str]) -> int | None:
    """The size of a file; None if it is not a file, is incomplete, or has disappeared."""
    try:
        if entry.name.startswith(".") or not entry.is_file():
            return None
        return entry.stat().st_size
    except FileNotFoundError:
        return None


def sync_file_system(folder: Path) -> None:
    """Force everything written to a folder's file system to the disk, in one call."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _SYNCFS is None:
            os.sync()
        elif _SYNCFS(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Force the names of a folder's files to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _aside(name: str) -> str:
    return f"{_ASIDE}{name}"


def _stated(problem: OSError, path: Path) -> LogError:
    kind = DiskFullError if problem.errno in _NO_ROOM else LogError
    return kind("cannot write to the log", detail=f"{path}: {problem.strerror}")
