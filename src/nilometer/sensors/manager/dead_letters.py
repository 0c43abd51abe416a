"""The log of what sensors sent that could not be stored: who, when, why, and what came."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from nilometer.errors import LogError, LogFullError
from nilometer.log.layout import TIMESTAMP, LogLayout
from nilometer.log.options import LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter

LONGEST_PAYLOAD: Final = 4096
_SCHEMA: Final = pa.schema(
    [
        pa.field("sensor", pa.string()),
        pa.field("arrived", TIMESTAMP),
        pa.field("reason", pa.string()),
        pa.field("payload", pa.string()),
    ]
)
LAYOUT: Final = LogLayout(_SCHEMA, "arrived")
_DISK: Final = 64 << 20
_SEGMENT: Final = 8 << 20
_KEPT: Final = 30 * 86_400_000_000


def dead_letter_log(name: str) -> str:
    """The name of the log with the dead letters of a stream."""
    return f"{name}.dead"


def read_dead_letters(location: str) -> pa.Table:
    """All that a log of dead letters holds; it is made for the first of them."""
    try:
        log = LogReader.open(location)
    except LogError:
        return _SCHEMA.empty_table()
    rows = [frame.rows for frame in log.read(log.start, log.end) if len(frame.rows)]
    return pa.Table.from_batches(rows, _SCHEMA)


@dataclass(frozen=True)
class DeadLetter:
    """Something that was not stored."""

    sensor: str
    arrived: int
    reason: str
    payload: str


def payload_text(value: Any) -> str:
    """What came, as text that is not too long."""
    if isinstance(value, bytes):
        return value[:LONGEST_PAYLOAD].decode(errors="replace")
    if isinstance(value, str):
        text = value[:LONGEST_PAYLOAD]
    else:
        try:
            text = json.dumps(value, default=str)
        except (TypeError, ValueError, RecursionError):
            text = repr(type(value))
    return text[:LONGEST_PAYLOAD].encode(errors="replace").decode(errors="replace")


class DeadLetters:
    """Appends dead letters to their log, which is opened with the first; the oldest make room."""

    def __init__(self, location: str, log: LogOptions, clock: Callable[[], int]) -> None:
        self._location = location
        self._options = LogOptions(
            fsync=log.fsync,
            fsync_every=log.fsync_every,
            memory=0,
            segment=_SEGMENT,
            disk=_DISK,
            history=_KEPT,
        )
        self._clock = clock
        self._writer: LogWriter | None = None

    def append(self, letters: Sequence[DeadLetter]) -> None:
        """Keep them; what finds no room takes the place of the oldest."""
        if not letters:
            return
        if self._writer is None:
            self._writer = LogWriter.open(self._location, LAYOUT, self._options, self._clock)
        rows = _rows(letters)
        while True:
            try:
                self._writer.append(rows, watermark=letters[-1].arrived)
                return
            except LogFullError:
                before = self._writer.stored_bytes
                self._writer.drop_oldest()
                if self._writer.stored_bytes == before:
                    return
            except Exception:
                self._writer.repair()  # for the next attempt
                raise

    def trim(self) -> None:
        """Delete those that are too old."""
        if self._writer is not None:
            self._writer.trim()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _rows(letters: Sequence[DeadLetter]) -> pa.RecordBatch:
    columns: Mapping[str, list[Any]] = {
        name: [getattr(one, name) for one in letters] for name in _SCHEMA.names
    }
    arrays = [pa.array(columns[one.name], one.type) for one in _SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
