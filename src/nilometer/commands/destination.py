"""Destinations of answers: the standard output, or a file that appears once it is complete."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from nilometer.errors import InputError

_NOTE: Final = "nilometer-output.json"
_COMMANDS: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
"""Control bytes that a terminal would obey, except line ends and tabs."""


@contextmanager
def open_output(path: Path | None = None) -> Iterator[BinaryIO]:
    """The standard output, or a file, which keeps its old content if anything fails."""
    if path is None:
        sys.stdout.flush()
        out = sys.stdout.buffer
        yield cast(BinaryIO, ForTerminal(out)) if sys.stdout.isatty() else out
        out.flush()
        return
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with writing_errors(path):
            with open(aside, "wb") as file:
                yield file
            os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


@dataclass(frozen=True)
class ForTerminal:
    """Passes lines to a terminal, with control characters escaped."""

    out: BinaryIO

    def write(self, data: bytes | memoryview) -> int:
        return self.out.write(without_commands(bytes(data)))


def without_commands(data: bytes) -> bytes:
    r"""Lines with the control characters of terminals escaped.

    >>> without_commands(b"a\x1b[2J\xc2\x9b\n")
    b'a\\x1b[2J\\x9b\n'
    """
    return _COMMANDS.sub(lambda match: b"\\x%02x" % match[0][-1], data)


@dataclass(frozen=True)
class GrowingFile:
    """A file to which every micro-batch adds its rows once, however often it is run.

    A note in the checkpoint's folder records where the last micro-batch began to write.
    """

    path: Path
    checkpoint: Path

    @contextmanager
    def open(self, batch: int) -> Iterator[BinaryIO]:
        """The file, truncated to the start of this micro-batch."""
        start = self._start(batch)
        self._take_note(batch, start)
        with writing_errors(self.path), open(self.path, "ab") as file:
            file.truncate(start)
            yield file
            file.flush()
            os.fsync(file.fileno())

    def _start(self, batch: int) -> int:
        try:
            note = json.loads((self.checkpoint / _NOTE).read_text())
        except FileNotFoundError:
            return 0
        if note["path"] != str(self.path.absolute()) or not self.path.exists():
            return 0
        size = self.path.stat().st_size
        return min(note["start"], size) if note["batch"] == batch else size

    def _take_note(self, batch: int, start: int) -> None:
        note = {"path": str(self.path.absolute()), "batch": batch, "start": start}
        aside = self.checkpoint / f".{_NOTE}"
        aside.write_text(json.dumps(note))
        os.replace(aside, self.checkpoint / _NOTE)


@contextmanager
def writing_errors(path: Path) -> Iterator[None]:
    """Convert an operating system error while writing there to our own."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}", detail=error.strerror or str(error)) from None
