"""Dead letters: what could not be stored or computed, with its sender, its time and the reason.

A stream has a log of them, with what its sensors sent, and so has a query, with the rows that it
could not compute.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from nilometer.errors import LogError, LogFullError
from nilometer.log.frame_format import BatchKey
from nilometer.log.layout import TIMESTAMP, LogLayout
from nilometer.log.location import inside, parent, storage_at
from nilometer.log.open_ahead import open_ahead
from nilometer.log.options import LogOptions
from nilometer.log.parts import write_part
from nilometer.log.reader import LogReader
from nilometer.log.storage import file_names
from nilometer.log.stored_json import json_bytes, read_json
from nilometer.log.waiting_rows import waiting_in
from nilometer.log.write_ahead import WriteAhead
from nilometer.log.writer import LogWriter

LONGEST_PAYLOAD: Final = 4096
DEAD: Final = ".dead"
"""The suffix of the names of dead-letter logs, and of no others."""
_SCHEMA: Final = pa.schema(
    [
        pa.field("sensor", pa.string()),
        pa.field("arrived", TIMESTAMP),
        pa.field("reason", pa.string()),
        pa.field("payload", pa.string()),
    ]
)
LAYOUT: Final = LogLayout(_SCHEMA, "arrived")
_OPTIONS: Final = LogOptions(memory=0, segment=8 << 20, disk=64 << 20, history=30 * 86_400_000_000)
_COUNT: Final = "count.json"
_PARTS: Final = "parts"


def dead_letter_log(name: str) -> str:
    """The name of the log with the dead letters of a stream."""
    return f"{name}{DEAD}"


def dead_letters_at(location: str) -> str:
    """The location of the dead letters for the log at this location.

    >>> dead_letters_at("s3://plant/logs/a?region=eu-north-1")
    's3://plant/logs/a.dead?region=eu-north-1'
    """
    folder, name = parent(location)
    return inside(folder, dead_letter_log(name))


def read_dead_letters(location: str) -> pa.Table:
    """All rows of a dead-letter log, which is created with the first dead letter."""
    try:
        log = LogReader.open(location)
    except LogError:
        return _SCHEMA.empty_table()
    rows = [frame.rows for frame in log.read(log.start, log.end) if len(frame.rows)]
    return pa.Table.from_batches(rows, _SCHEMA)


def letters_ever(location: str) -> int:
    """How many dead letters a log has ever had, including those no longer kept."""
    try:
        return LogReader.open(location).end.row
    except LogError:
        return 0


@dataclass(frozen=True)
class DeadLetter:
    """Something that could not be stored or computed."""

    sensor: str | None
    """The sender: a sensor or, for a query, a stream; None: the query itself."""
    arrived: int
    reason: str
    payload: str


def payload_text(value: Any) -> str:
    """The payload as text of limited length."""
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
    """Appends dead letters to their log, opened with the first; drops the oldest if full."""

    def __init__(
        self, location: str, log: LogOptions, clock: Callable[[], int], folder: Path | None
    ) -> None:
        """`folder`: for a write-ahead, if the log has one."""
        self._location = location
        self._folder = folder
        self._options = replace(
            _OPTIONS,
            fsync=log.fsync,
            fsync_every=log.fsync_every,
            durability=log.durability,
            ship_size=log.ship_size,
            ship_every=log.ship_every,
            write_ahead=min(log.write_ahead, _OPTIONS.disk or log.write_ahead),
        )
        self._clock = clock
        self._writer: LogWriter | None = None
        self._ahead: WriteAhead | None = None
        if folder is not None and waiting_in(folder)[0]:
            self._open()

    def append(self, letters: Sequence[DeadLetter]) -> None:
        """Append dead letters; if there is no room, the oldest are dropped."""
        if not letters:
            return
        rows, writer = _rows(letters), self._ahead or self._writer or self._open()
        try:
            _make_room(writer, lambda: writer.append(rows, watermark=letters[-1].arrived))
        except Exception:
            writer.repair()  # for the next attempt
            raise

    def trim(self) -> None:
        """Delete dead letters that are too old."""
        if (writer := self._ahead or self._writer) is not None:
            writer.trim()

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self) -> LogWriter | WriteAhead:
        writer = LogWriter.open(self._location, LAYOUT, self._options, self._clock)
        try:
            self._ahead = open_ahead(
                self._folder, writer, self._location, self._options, self._clock, drops_oldest=True
            )
        except BaseException:
            writer.close()
            raise
        self._writer = writer
        return self._ahead or writer


def append_batch(location: str, letters: Sequence[DeadLetter], count: int, key: BatchKey) -> None:
    """Append the dead letters of a micro-batch and count them all, once however often it runs."""
    with LogWriter.open(location, LAYOUT, _OPTIONS) as writer:
        _add_to_count(location, count, key)
        path = inside(location, f"{_PARTS}/{key[1]:012d}-{uuid4().hex}.part")
        part = write_part(path, [_rows(letters)], _OPTIONS.compression, time="arrived")
        parts = [part] if part is not None else []
        try:
            mark = max((one.arrived for one in letters), default=None)
            _make_room(writer, lambda: writer.append_parts(parts, watermark=mark, key=key))
            writer.trim()
        finally:
            storage = storage_at(location)
            for name in file_names(storage, _PARTS, ".part"):
                storage.delete(f"{_PARTS}/{name}")


def count_dead_letters(location: str) -> int:
    """How many dead letters a query has had, including those not kept."""
    content = read_json(storage_at(location), _COUNT)
    return 0 if content is None else int(content["count"])


def _add_to_count(location: str, count: int, key: BatchKey) -> None:
    storage = storage_at(location)
    before = read_json(storage, _COUNT) or {"count": 0, "key": None}
    if before["key"] != list(key):
        content = {"count": before["count"] + count, "key": key}
        storage.write(_COUNT, [json_bytes(content)])


def _make_room(writer: LogWriter | WriteAhead, append: Callable[[], object]) -> None:
    """Append, dropping the oldest for room; what is too large for the whole log is not kept."""
    while True:
        try:
            append()
            return
        except LogFullError:
            before = writer.stored_bytes
            writer.drop_oldest()
            if writer.stored_bytes == before:
                return


def _rows(letters: Sequence[DeadLetter]) -> pa.RecordBatch:
    columns: Mapping[str, list[Any]] = {
        name: [getattr(one, name) for one in letters] for name in _SCHEMA.names
    }
    arrays = [pa.array(columns[one.name], one.type) for one in _SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
