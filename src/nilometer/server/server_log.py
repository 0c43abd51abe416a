"""The log of a server: set up before it starts, written once the database is locked by it."""

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
"""Py4J's message, with a traceback, for every call to a Java process that has ended."""
_FIRST_RECORDS: Final = 1_000
_FIRST_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 64 << 10
_QUIET: Final = ("py4j", "pyspark", "SQLQueryContextLogger", "uvicorn")
"""They log with tracebacks what is already reported in words."""
_ACCESS: Final = "uvicorn.access"


class ServerLog:
    """Receives all log records from the start; standard error gets only errors.

    The file is opened once no other server can have it open: until then records are kept.
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
        """Receive log records from now on."""
        root = logging.getLogger()
        root.handlers = [self._sparing]
        root.setLevel(max(self.settings.number, logging.WARNING))
        logging.getLogger("nilometer").setLevel(self.settings.number)
        for name in _QUIET:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if self.settings.access:
            logging.getLogger(_ACCESS).setLevel(logging.INFO)

    def open(self, database: Path) -> None:
        """Write to the file, starting with the records kept so far."""
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
        """Report how much was left out; to be called from time to time."""
        self._sparing.tell_rest()

    def close(self) -> None:
        """Write what is left."""
        self._sparing.tell_rest(at_once=True)
        self.spark.close()
        for one in self._sparing.handlers:
            with suppress(OSError):  # a full disk
                one.close()


class RotatingFile(RotatingFileHandler):
    """A log file that only this user can read; a full disk loses lines, and nothing else."""

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
        if self.stream is not None:  # a single file: it starts again
            self.stream.close()
        os.truncate(self.baseFilename, 0)
        self.stream = self._open()

    def emit(self, record: logging.LogRecord) -> None:
        self._failed = False
        super().emit(record)
        if not self._failed:
            self._is_failing = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Report once that lines are lost, not with every line."""
        self._failed = True
        if not self._is_failing:
            self._is_failing = True
            print(  # noqa: T201
                f"the log {self.baseFilename} cannot be written: {sys.exception()}", file=sys.stderr
            )


class SparkLog:
    """The standard error of Spark and the processes that it starts."""

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
        """Take one line; lines before the file is open are kept, as far as there is room."""
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
        """Write to this file, starting with the lines kept so far."""
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
