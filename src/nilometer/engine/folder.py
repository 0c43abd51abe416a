"""Where the files of a bucket are: a folder of this machine, or of the driver's."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from nilometer.errors import LogError
from nilometer.log.local_storage import sync_folder


class Folder(Protocol):
    """Files that never change once they exist."""

    @property
    def location(self) -> str:
        """Where it is, for people."""

    def names(self) -> list[str]:
        """The names of all files, in no order."""

    def has(self, name: str) -> bool: ...

    def start_of(self, name: str, length: int) -> tuple[bytes, int]:
        """The first bytes of a file, and its size; raises FileNotFoundError."""

    def read(self, name: str, start: int, length: int) -> bytes:
        """Bytes of a file, fewer at its end; raises FileNotFoundError."""

    def create(self, name: str, chunks: Iterable[bytes]) -> int | None:
        """Create a file as a whole, durably; returns its size.

        None if there is one of this name: of many who create it one is first.
        """

    def add(self, name: str, content: bytes) -> None:
        """Create a file of a name that nobody else uses; durable, but whole only if it ends."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete files, as far as they exist."""

    def close(self) -> None:
        """Close what is open; it opens again when it is needed."""


class LocalFolder:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: tuple[str, int] | None = None
        """The file that was last read from, as reads repeat."""
        path.mkdir(parents=True, exist_ok=True)

    @property
    def location(self) -> str:
        return str(self._path)

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            os.close(opened[1])

    def __del__(self) -> None:
        if hasattr(self, "_opened"):
            self.close()

    def names(self) -> list[str]:
        return [name for name in os.listdir(self._path) if name[0] != "."]

    def has(self, name: str) -> bool:
        return (self._path / name).exists()

    def start_of(self, name: str, length: int) -> tuple[bytes, int]:
        with open(self._path / name, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            return os.pread(file.fileno(), length, 0), size

    def read(self, name: str, start: int, length: int) -> bytes:
        if self._opened is None or self._opened[0] != name:
            self.close()
            self._opened = (name, os.open(self._path / name, os.O_RDONLY | os.O_CLOEXEC))
        return os.pread(self._opened[1], length, start)

    def create(self, name: str, chunks: Iterable[bytes]) -> int | None:
        aside = self._path / f".{name}-{uuid4().hex}"
        try:
            with open(aside, "wb") as file:
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            try:
                os.link(aside, self._path / name)
            except FileExistsError:
                return None
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP):
                    raise
                raise LogError(
                    "the file system of the database cannot link files",
                    detail=f"{self._path}: {error.strerror}",
                    hint="keep the database on another one, or create queries "
                    "WITH (engine = 'own')",
                ) from None
        finally:
            aside.unlink(missing_ok=True)
        sync_folder(self._path)
        return size

    def add(self, name: str, content: bytes) -> None:
        with open(self._path / name, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            (self._path / name).unlink(missing_ok=True)
