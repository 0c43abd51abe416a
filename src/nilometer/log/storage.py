"""What a log needs of the place where it lies: a directory, or a store of objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from nilometer.log.frame_format import Chunks


class OpenFile(Protocol):
    """A file being read; it stays readable though it is deleted, where the place allows it."""

    size: int

    def read_at(self, start: int, length: int) -> pa.Buffer:
        """The bytes from `start` on, fewer than `length` at the end of the file."""


class SegmentFiles(Protocol):
    """How a writer stores frames. Calls come from one thread at a time, except to `sync`."""

    @property
    def whole(self) -> bool:
        """Whether every append must be a segment of its own: nothing can be added to one."""

    def begin(self, number: int, header: bytes) -> None:
        """Begin a segment; the one before is complete."""

    def go_on(self, number: int, size: int) -> None:
        """Add to a segment that exists, of which the bytes beyond `size` are to be forgotten."""

    def add(self, byte: int, frames: Iterable[Chunks]) -> None:
        """Write frames at this place of the segment; nothing remains of them if this fails."""

    def sync(self) -> None:
        """Return when all that was added is on the disk."""

    def publish(self, head: bytes) -> None:
        """Let readers see the log up to here."""

    def close(self) -> None: ...


class Storage(Protocol):
    """A place for the files of one log."""

    location: str

    @property
    def publishes(self) -> bool:
        """Whether a head says where the log ends; otherwise every whole segment counts."""

    def make(self) -> None:
        """Make the place if it is not there."""

    def is_empty(self) -> bool:
        """Whether there is nothing in the place, not even a folder."""

    def files(self, folder: str = "") -> Sequence[tuple[str, int]]:
        """Names and sizes of the files in a folder, by name; none if there is no such folder."""

    def open(self, name: str) -> AbstractContextManager[OpenFile]:
        """Raises FileNotFoundError."""

    def read(self, name: str) -> bytes:
        """All of a small file; raises FileNotFoundError."""

    def write(
        self, name: str, chunks: Iterable[bytes | pa.Buffer], *, durable: bool = True
    ) -> None:
        """Write a file as a whole or not at all, in place of one that is there.

        Without `durable`, a crash may lose it, or leave a piece of it.
        """

    def write_all(self, contents: Mapping[str, bytes]) -> None:
        """Write many small files, each as a whole or not at all, and force them together."""

    def delete(self, name: str) -> None:
        """Delete a file if it is there."""

    def remove(self) -> None:
        """Delete the place with all its files, if it is there."""

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        """Keep others who ask for the same name waiting, where the place can do that."""

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
