"""The progress of a delivery: it is a registered reader of its query's results.

The contents of a chunk are decided once and stored before the chunk is sent, so a chunk has the
same rows and the same id in every attempt, even after the process was killed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from nilometer.deliveries.unit import ID, Chunk, ChunkSize
from nilometer.errors import LogError, LogGapError
from nilometer.kernels.json_values import unique_names
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import Registration, commit, find_reader, forget, register, release

_FROM: Final = "from"
_LOST: Final = "lost"
_PLANNED: Final = "planned"
_LAST: Final = "last"
_BEGINNING: Final = Position(0, 0)


@dataclass(frozen=True)
class Progress:
    """The progress of a delivery, and what it still has to do."""

    position: Position
    """Everything up to this position is delivered."""
    first: int
    """The row with which it started."""
    lost: int = 0
    """Rows that were deleted before they could be delivered."""
    planned: Position | None = None
    """The end of the chunk that was last begun."""
    last: int | None = None
    """When the last chunk was delivered."""

    @property
    def delivered(self) -> int:
        """How many rows have been delivered."""
        return self.position.row - self.first - self.lost

    @property
    def about(self) -> dict[str, Any]:
        planned = None if self.planned is None else self.planned.to_json()
        return {_FROM: self.first, _LOST: self.lost, _PLANNED: planned, _LAST: self.last}


def reader_name(delivery: str) -> str:
    """The name by which a log knows a delivery."""
    return f"delivery {delivery}"


def begin(location: str, delivery: str, *, from_start: bool, now: int) -> None:
    """From now on the log keeps what this delivery has not delivered."""
    try:
        log = LogReader.open(location)
        at = log.start if from_start else log.end
    except LogError:
        at = _BEGINNING  # the query has never run: all of its results are still to come
    about = Progress(at, at.row).about
    register(location, reader_name(delivery), at, about, now=now, named=True, anew=True)
    release(location, reader_name(delivery), now=now)


def end(location: str, delivery: str) -> None:
    """Deregister the delivery: the log need not keep anything for it any more."""
    forget(location, reader_name(delivery))


def read_progress(location: str, delivery: str) -> Progress | None:
    """The progress of a delivery, whichever process runs it; None: it has not started."""
    registration = find_reader(location, reader_name(delivery))
    return None if registration is None else _progress(registration)


def rows_behind(location: str, progress: Progress) -> int:
    """How many rows are not delivered yet."""
    try:
        return max(0, LogReader.open(location).end.row - progress.position.row)
    except LogError:
        return 0


class Reading:
    """Cuts the results of a query into chunks; used by one thread at a time."""

    def __init__(
        self,
        location: str,
        delivery: str,
        query: str,
        size: ChunkSize,
        clock: Callable[[], int],
    ) -> None:
        self._location = location
        self._delivery = delivery
        self._query = query
        self._size = size
        self._clock = clock
        self._reader = reader_name(delivery)
        self._log = LogReader.open(location)
        registration = find_reader(location, self._reader)
        start = self._log.start
        self.progress = (
            Progress(start, start.row) if registration is None else _progress(registration)
        )
        self._waiting_since: int | None = None
        at, about = self.progress.position, self.progress.about
        register(location, self._reader, at, about, now=clock(), named=True)

    @property
    def behind(self) -> int:
        """How many rows are not delivered yet."""
        return max(0, self._log.end.row - self.progress.position.row)

    def next_chunk(self, row_bytes: Callable[[Chunk], list[int]] | None = None) -> Chunk | None:
        """The chunk to deliver next; None: nothing yet."""
        try:
            if self.progress.planned is None and not self._plan(row_bytes):
                return None
            return self._chunk(self._read(self.progress.position, self.progress.planned))
        except LogGapError as gap:
            self._skip(gap)
            raise

    def delivered(self) -> None:
        """Note that the last chunk was delivered."""
        assert self.progress.planned is not None
        done = replace(self.progress, position=self.progress.planned, planned=None)
        self._keep(replace(done, last=self._clock()))

    def release(self) -> None:
        """Suspend the delivery."""
        release(self._location, self._reader, now=self._clock())

    def _plan(self, row_bytes: Callable[[Chunk], list[int]] | None) -> bool:
        """Choose and store the contents of the next chunk; False: nothing yet."""
        start = self.progress.position
        limit = self._log.limit(start, self._size.rows)
        rows = limit.row - start.row
        if not rows:
            self.progress = replace(self.progress, position=max(start, limit))
            return False
        if rows < self._size.rows and not self._has_waited():
            return False
        self._waiting_since = None
        chunk = self._chunk(self._read(start, limit, self._size.bytes))
        count = _how_many(chunk, self._size.bytes, row_bytes)
        self._keep(replace(self.progress, planned=self._log.limit(start, count)))
        return True

    def _has_waited(self) -> bool:
        """Whether rows have been collected for long enough."""
        now = self._clock()
        if self._waiting_since is None or self._waiting_since > now:
            self._waiting_since = now
        return now - self._waiting_since >= self._size.every * 1e6

    def _read(
        self, start: Position, stop: Position | None, max_bytes: int | None = None
    ) -> pa.Table:
        """Rows from one position to another, but no more once they reach this many bytes.

        Their columns have distinct names, none of which is that of the id.
        """
        batches: list[pa.RecordBatch] = []
        for frame in self._log.read(start, stop):
            if len(frame.rows):
                batches.append(frame.rows)
            if max_bytes is not None and sum(one.nbytes for one in batches) >= max_bytes:
                break
        table = pa.Table.from_batches(batches, self._log.layout.stored)
        return table.rename_columns(unique_names([ID, *table.schema.names])[1:])

    def _chunk(self, rows: pa.Table) -> Chunk:
        first = self.progress.position.row
        return Chunk(self._delivery, self._query, self._log.log_id, first, rows)

    def _skip(self, gap: LogGapError) -> None:
        """Continue after rows that were deleted."""
        if isinstance(gap.oldest, Position):
            lost = self.progress.lost + max(0, gap.oldest.row - self.progress.position.row)
            self._keep(replace(self.progress, position=gap.oldest, lost=lost, planned=None))

    def _keep(self, progress: Progress) -> None:
        about, now = progress.about, self._clock()
        commit(self._location, self._reader, progress.position, now=now, about=about)
        self.progress = progress


def _progress(registration: Registration) -> Progress:
    about = registration.about
    planned = about.get(_PLANNED)
    end = None if planned is None else Position.from_json(planned)
    first = about.get(_FROM, registration.position.row)
    return Progress(registration.position, first, about.get(_LOST, 0), end, about.get(_LAST))


def _how_many(chunk: Chunk, max_bytes: int, row_bytes: Callable[[Chunk], list[int]] | None) -> int:
    """How many of the rows fit together into this many bytes; at least one."""
    if row_bytes is None:
        whole = chunk.rows.nbytes
        return (
            len(chunk.rows) if whole <= max_bytes else max(1, len(chunk.rows) * max_bytes // whole)
        )
    taken = 0
    for at, one in enumerate(row_bytes(chunk)):
        taken += one
        if taken > max_bytes:
            return max(1, at)
    return len(chunk.rows)
