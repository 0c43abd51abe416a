"""A log in a store of objects: nothing can be added to one, so every append is a segment.

An object is there as a whole or not at all, and its name publishes it. Where a file system shows
files that are still being written, the length in the segment's header tells that it is not whole.
There are no locks: the newest writer wins, and the one before finds out at its next append.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Final

import pyarrow as pa
from pyarrow import fs

from nilometer.errors import LogError
from nilometer.log.frame_format import Chunks
from nilometer.log.segment_format import segment_name

_CLAIM: Final = "lock"


class RemoteFile:
    """An object that is read in ranges."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self.size = file.size()

    def read_at(self, start: int, length: int) -> pa.Buffer:
        self._file.seek(start)
        return self._file.read_buffer(max(0, min(length, self.size - start)))


class RemoteStorage:
    """A folder in any `pyarrow.fs` file system."""

    publishes: Final = False

    def __init__(self, location: str, system: fs.FileSystem, folder: str) -> None:
        self.location = location
        self._system = system
        self._folder = folder.rstrip("/")
        self._claim: str | None = None

    def remove(self) -> None:
        if self._system.get_file_info(self._folder).type != fs.FileType.NotFound:
            self._system.delete_dir(self._folder)

    def make(self) -> None:
        self._system.create_dir(self._folder, recursive=True)

    def files(self, folder: str = "") -> list[tuple[str, int]]:
        where = f"{self._folder}/{folder}".rstrip("/")
        found = self._system.get_file_info(fs.FileSelector(where, allow_not_found=True))
        return sorted(
            (one.base_name, one.size or 0) for one in found if one.type == fs.FileType.File
        )

    @contextmanager
    def open(self, name: str) -> Iterator[RemoteFile]:
        with self._system.open_input_file(f"{self._folder}/{name}") as file:
            yield RemoteFile(file)

    def read(self, name: str) -> bytes:
        with self._system.open_input_file(f"{self._folder}/{name}") as file:
            content: bytes = file.readall()
            return content

    def write(
        self, name: str, chunks: Iterable[bytes | pa.Buffer], *, durable: bool = True
    ) -> None:
        path = f"{self._folder}/{name}"
        if "/" in name:
            self._system.create_dir(path.rsplit("/", 1)[0], recursive=True)
        with self._system.open_output_stream(path) as file:
            for chunk in chunks:
                file.write(chunk)

    def delete(self, name: str) -> None:
        path = f"{self._folder}/{name}"
        if self._system.get_file_info(path).type == fs.FileType.File:
            self._system.delete_file(path)

    @contextmanager
    def exclusive(self, name: str) -> Iterator[None]:
        yield

    @contextmanager
    def claim(self) -> Iterator[None]:
        holder = f"process {os.getpid()} of {socket.gethostname()} {secrets.token_hex(8)}"
        self.write(_CLAIM, [holder.encode()])
        self._claim = holder
        yield

    def check_claim(self) -> None:
        """Raises LogError if another writer has taken the log over."""
        holder = self.read(_CLAIM).decode()
        if holder != self._claim:
            raise LogError(
                "another writer has taken the log over",
                detail=f"{self.location} is held by {holder}",
                hint="a log has one writer; reopen it here once that one is closed",
            )

    def segments(self) -> RemoteSegments:
        return RemoteSegments(self)


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
            raise AssertionError("an object cannot be added to")
        self._storage.check_claim()
        number, header = self._begun
        try:
            self._storage.write(segment_name(number), chain([header], chain.from_iterable(frames)))
        except OSError as problem:
            raise LogError("cannot write to the log", detail=str(problem)) from problem
        self._begun = None

    def sync(self) -> None:
        """An object that was written is durable."""

    def publish(self, head: bytes) -> None:
        """Its name publishes an object."""

    def close(self) -> None:
        self._begun = None
