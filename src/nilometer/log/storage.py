"""What a log requires of its storage: a directory, or an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

import pyarrow as pa

from nilometer.log.frame_format import Chunks

Item = TypeVar("Item")
Returned = TypeVar("Returned")


class OpenFile(Protocol):
    """A file being read; it stays readable though it is deleted, where the place allows it."""

    @property
    def size(self) -> int: ...

    @property
    def ahead(self) -> int:
        """How many bytes to read at a time where most of them are wanted."""

    def read_at(self, start: int, length: int) -> pa.Buffer:
        """Read bytes from `start` on, fewer than `length` at the end of the file."""


class SegmentFiles(Protocol):
    """How a writer stores frames. Calls come from one thread at a time, except to `sync`."""

    @property
    def whole(self) -> bool:
        """Whether every append must be a segment of its own: nothing can be added to one."""

    def begin(self, number: int, header: bytes) -> None:
        """Start a segment; the one before is complete."""

    def go_on(self, number: int, size: int) -> None:
        """Continue an existing segment, discarding the bytes beyond `size`."""

    def add(self, byte: int, frames: Iterable[Chunks]) -> None:
        """Write frames at this place of the segment; nothing remains of them if this fails."""

    def sync(self) -> None:
        """Return once everything that was added is on the disk."""

    def publish(self, head: bytes) -> None:
        """Make the log visible to readers up to here."""

    def close(self) -> None: ...


class Storage(Protocol):
    """A place for the files of one log."""

    location: str

    @property
    def publishes(self) -> bool:
        """Whether a head says where the log ends; otherwise every whole segment counts."""

    def make(self) -> None:
        """Create the place if it does not exist."""

    def is_empty(self) -> bool:
        """Whether there is nothing in the place, not even a folder."""

    def files(self, folder: str = "") -> Sequence[tuple[str, int]]:
        """Names and sizes of the files in a folder, ordered by name; none if it does not exist."""

    def open(self, name: str) -> AbstractContextManager[OpenFile]:
        """Raises FileNotReturnedError."""

    def open_each(
        self, files: Iterable[tuple[str, int]], *, whole: bool = False
    ) -> Iterator[OpenFile]:
        """The files of these names and sizes, each open until the next one is asked for.

        Where every request takes long, small ones are read ahead, and with `whole`, if most of
        what they hold is wanted, all that there is room for. Raises FileNotReturnedError when
        it is the turn of a file that does not exist.
        """

    def read(self, name: str) -> bytes:
        """Read all of a small file; raises FileNotReturnedError."""

    def write(
        self, name: str, chunks: Iterable[bytes | pa.Buffer], *, durable: bool = True
    ) -> None:
        """Write a file as a whole or not at all, replacing an existing one.

        Without `durable`, a crash may lose it, or leave a piece of it.
        """

    def map(self, function: Callable[[Item], Returned], items: Iterable[Item]) -> list[Returned]:
        """What a function that uses this storage returns for each item.

        Where every request takes long, many are made at once.
        """

    def write_all(self, contents: Mapping[str, bytes]) -> None:
        """Write many small files, each as a whole or not at all, and force them together."""

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""

    def remove(self) -> None:
        """Delete the place with all its files, if it exists."""

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        """Hold a lock of this name, if the storage supports locks."""

    def claim(self) -> AbstractContextManager[None]:
        """Become the only writer; raises LogError if there is one."""

    def segments(self) -> SegmentFiles:
        """For the writer."""

    @property
    def term(self) -> str:
        """What the names of packed segments bear that this writer makes; maybe nothing."""

    def put_aside(self, name: str, chunks: Iterable[bytes | pa.Buffer]) -> None:
        """Write packed segments durably, so that nobody sees them before they are shown."""

    def show(self, name: str) -> None:
        """Let everybody see packed segments that were put aside; at once, and durably.

        Raises LogError if another writer has taken over.
        """

    def sweep(self, name: str | None = None) -> None:
        """Delete what was put aside under this name, or any other, and never shown."""


def file_names(storage: Storage, folder: str, suffix: str) -> Iterator[str]:
    """The files of a folder whose names end so, without the folder, by name."""
    return (name for name, _ in storage.files(folder) if name.endswith(suffix))
