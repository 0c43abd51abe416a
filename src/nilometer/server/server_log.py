"""The log of a server: set up before it starts, written once the database is its own."""

from __future__ import annotations

import logging
import os
import sys
import threading
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import MemoryHandler, RotatingFileHandler
from pathlib import Path
from typing import Any, Final

from nilometer.errors import InputError
from nilometer.server.log_lines import Lines, escaped
from nilometer.server.log_settings import LogSettings
from nilometer.server.sparing import Sparing

_LOST_IN_PY4J: Final = "Exception while sending command."
"""What Py4J says, with a traceback, of every call to a Java that has ended."""
_FIRST_RECORDS: Final = 1_000
_FIRST_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 64 << 10
_QUIET: Final = ("py4j", "pyspark", "SQLQueryContextLogger", "uvicorn")
"""They tell with tracebacks what is told in words already."""
_ACCESS: Final = "uvicorn.access"


class ServerLog:
    """Takes what all loggers say, from the beginning; standard error gets errors alone.

    The file is opened when no other server can have it open: until then records are kept.
    """

    def __init__(self, settings: LogSettings) -> None:
        self.settings = settings
        self.spark = SparkLog(settings)
        terminal = logging.StreamHandler()
        terminal.setFormatter(Lines(settings.format))
        terminal.setLevel(settings.number if settings.to_stderr else logging.ERROR)
        self._first = MemoryHandler(_FIRST_RECORDS, flushLevel=logging.CRITICAL + 1)
        self._first.setLevel(settings.number)
        handlers = [terminal] if settings.to_stderr else [terminal, self._first]
        self._sparing = Sparing(handlers)
        self._sparing.addFilter(lambda record: record.msg != _LOST_IN_PY4J)

    def begin(self) -> None:
        """Take what loggers say from now on."""
        root = logging.getLogger()
        root.handlers = [self._sparing]
        root.setLevel(max(self.settings.number, logging.WARNING))
        logging.getLogger("nilometer").setLevel(self.settings.number)
        for name in _QUIET:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if self.settings.access:
            logging.getLogger(_ACCESS).setLevel(logging.INFO)

    def open(self, database: Path) -> None:
        """Write to the file, beginning with what was said before."""
        self.spark.open(self.settings.spark_file_in(database))
        file = self.settings.file_in(database)
        if file is None:
            return
        writing = RotatingFile(file, self.settings)
        writing.setLevel(self.settings.number)
        writing.setFormatter(Lines(self.settings.format))
        self._sparing.handlers[-1] = writing
        self._first.setTarget(writing)
        self._first.close()

    def tell_rest(self) -> None:
        """Tell what was left out; to be called now and then."""
        self._sparing.tell_rest()

    def close(self) -> None:
        """Write what is left."""
        self._sparing.tell_rest(at_once=True)
        self.spark.close()
        for one in self._sparing.handlers:
            with suppress(OSError):  # a disk without room
                one.close()


class RotatingFile(RotatingFileHandler):
    """A log file that only this user reads; a disk without room costs lines, and nothing else."""

    def __init__(self, path: Path, settings: LogSettings) -> None:
        self._is_failing = False
        try:
            super().__init__(
                path,
                maxBytes=settings.max_bytes,
                backupCount=settings.files - 1,
                encoding="utf-8",
                errors="backslashreplace",
            )
        except OSError as error:
            raise InputError(f"the log cannot be written to {path}", detail=str(error)) from None

    def _open(self) -> TextIOWrapper:
        opened = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(opened, "a", encoding=self.encoding, errors=self.errors)

    def doRollover(self) -> None:  # noqa: N802
        if self.backupCount:
            super().doRollover()
            return
        if self.stream is not None:  # one file alone: it begins again
            self.stream.close()
        os.truncate(self.baseFilename, 0)
        self.stream = self._open()

    def emit(self, record: logging.LogRecord) -> None:
        self._failed = False
        super().emit(record)
        if not self._failed:
            self._is_failing = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say once that lines are lost, not with every line."""
        self._failed = True
        if not self._is_failing:
            self._is_failing = True
            print(  # noqa: T201
                f"the log {self.baseFilename} cannot be written: {sys.exception()}", file=sys.stderr
            )


class SparkLog:
    """What Spark, and the processes that it starts, write to their standard error."""

    def __init__(self, settings: LogSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._first: list[str] = []
        self._first_bytes = 0
        self._file: RotatingFile | None = None
        self.file: Path | None = None
        """Where it is written."""
        self._is_closed = False

    def take(self, line: bytes) -> None:
        """One line; those that come before there is a file are kept, as far as there is room."""
        text = escaped(
            line[:_LONGEST_LINE].decode(errors="backslashreplace").rstrip().expandtabs(4)
        )
        with self._lock:
            if self._file is not None:
                self._file.emit(_plain(text))
            elif not self._is_closed and self._first_bytes < _FIRST_BYTES:
                self._first.append(text)
                self._first_bytes += len(text)

    def open(self, file: Path) -> None:
        """Write to this file, beginning with what came before."""
        with self._lock:
            self.file, self._file = file, RotatingFile(file, self._settings)
            self._file.setFormatter(logging.Formatter("%(message)s"))
            for one in self._first:
                self._file.emit(_plain(one))
            self._first.clear()

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                with suppress(OSError):
                    self._file.close()
            self._file, self._is_closed = None, True


def _plain(text: str) -> logging.LogRecord:
    nothing: Any = None
    return logging.LogRecord("spark", logging.INFO, "", 0, text, nothing, None)
