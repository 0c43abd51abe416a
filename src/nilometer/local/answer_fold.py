"""The current answer of a changelog, kept up to date from its log.

At the watermark W no change with a `_time` before W can arrive any more: the sum of all these is
the answer at the instant W - 1 µs. Changes from W on may exist already, since buckets are out
of step; they wait aside, each with its place in the log.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.errors import LogError, LogGapError, TooLargeError
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.net_changes import net_changes
from nilometer.log.frame import Frame
from nilometer.log.layout import DIFF, TIME
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.seen import Seen

_AT_ONCE: Final = 1 << 16
"""So many changes are added up together, or as many as the answer has rows."""


@dataclass(frozen=True)
class _Ahead:
    """Changes of one frame that are not final yet."""

    start: Position
    """Where the rows of the frame begin of which they are."""
    places: Int64s
    """Which of these rows they are."""
    rows: pa.RecordBatch

    @property
    def first(self) -> Position:
        at, first = self.start, int(self.places[0])
        return Position(at.segment, at.byte, at.skip + first, at.row + first)

    def where(self, chosen: Bools) -> _Ahead:
        return _Ahead(self.start, self.places[chosen], self.rows.filter(pa.array(chosen)))


@dataclass(frozen=True)
class FoldedAnswer:
    """The answer of a changelog at one instant."""

    rows: pa.Table
    """Without `_time` and `_diff`; a row that holds three times comes three times."""
    watermark: int | None
    """No change before this time (microseconds) can arrive any more."""
    place: Position
    """The position of the first change after the instant in the log, present or future."""
    is_cut: bool
    """Whether there were more rows."""

    @property
    def instant(self) -> int | None:
        """The instant of the answer: the last one that no change can reach any more."""
        return None if self.watermark is None else self.watermark - 1


class AnswerFold:
    """The answer of one changelog; one thread at a time updates it."""

    def __init__(self, reader: LogReader, max_bytes: int) -> None:
        self._reader = reader
        self._most = max_bytes
        self._lock = threading.Lock()
        names = [name for name in reader.layout.stored.names if name not in (TIME, DIFF)]
        self._schema = pa.schema([reader.layout.stored.field(name) for name in names])
        self._refusal: tuple[TooLargeError, int] | None = None
        """Why it could not be computed, and how many rows the log had then."""
        self._forget()

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        ahead = sum(one.rows.nbytes for one in self._ahead)
        return int(self._rows.nbytes + self._copies.nbytes + ahead)

    def now(self, limit: int) -> FoldedAnswer:
        """The current answer, limited to a number of rows.

        Raises LogGapError if its first changes are deleted, TooLargeError if it needs too much
        memory.
        """
        with self._lock:
            try:
                self._bring_up_to_date(Seen.of(self._reader))
            except LogGapError:
                if self._reader.base is None:
                    raise
                self._bring_up_to_date(Seen.of(self._reader))  # it has begun anew, with the base
            assert self._place is not None
            place = self._ahead[0].first if self._ahead else self._place
            total = int(self._copies.sum())
            rows = self._repeated(min(total, limit))
            return FoldedAnswer(rows, self._watermark, place, total > limit)

    def _forget(self) -> None:
        self._rows = self._schema.empty_table()
        self._copies: Int64s = np.zeros(0, np.int64)
        self._ahead: list[_Ahead] = []
        self._place: Position | None = None
        self._watermark: int | None = None

    def _bring_up_to_date(self, seen: Seen) -> None:
        """Apply all new changes, or none of them."""
        if self._refusal is not None and seen.end.row < 2 * self._refusal[1]:
            raise self._refusal[0]  # an attempt is expensive, so it is not made every time
        try:
            self._advance(seen)
        except BaseException as error:
            self._forget()
            self._refusal = (error, seen.end.row) if isinstance(error, TooLargeError) else None
            raise
        self._refusal = None

    def _advance(self, seen: Seen) -> None:
        place = self._begin() if self._place is None else self._place
        watermark = seen.watermark
        final = self._passed(watermark)
        for frame in self._reader.read(place, seen.end):
            if (rows := self._final_part(frame, watermark)) is not None:
                final.append(rows)
            self._place = frame.end
            if sum(map(len, final)) > max(_AT_ONCE, self._rows.num_rows):
                self._add(final)
                final = []
            self._require_room(sum(rows.nbytes for rows in final))
        self._add(final)
        if (self._copies < 0).any():
            raise LogError(
                "the changelog retracts a row that it never emitted",
                detail="part of it is missing or duplicated",
            )
        self._place = max(place, seen.end)
        self._watermark = watermark

    def _begin(self) -> Position:
        start = self._reader.start
        if start.row and self._reader.base is None:
            raise LogGapError(
                "the first changes of this answer are gone",
                detail=f"{start.row} rows of the results are older than the history that is kept",
                hint="create the query with a longer history; its changes can still be followed",
                rows=start.row,
                oldest=start,
            )
        return start

    def _passed(self, watermark: int | None) -> list[pa.RecordBatch]:
        """What waited aside and is final now."""
        if watermark is None:
            return []
        parted = [(one, _before(one.rows, watermark)) for one in self._ahead]
        self._ahead = [one.where(~is_final) for one, is_final in parted if not is_final.all()]
        return [one.where(is_final).rows for one, is_final in parted if is_final.any()]

    def _final_part(self, frame: Frame, watermark: int | None) -> pa.RecordBatch | None:
        """The changes of a frame that are final; the others are set aside."""
        if not len(frame.rows):
            return None
        every = _Ahead(frame.start, np.arange(len(frame.rows)), frame.rows)
        is_final = _before(frame.rows, watermark)
        if is_final.all():
            return frame.rows
        self._ahead.append(every.where(~is_final))
        return every.where(is_final).rows

    def _add(self, changes: Sequence[pa.RecordBatch]) -> None:
        if not changes:
            return
        table = pa.Table.from_batches(changes)
        rows = pa.concat_tables([self._rows, table.select(self._schema.names)])
        copies = np.concatenate([self._copies, table.column(DIFF).to_numpy()])
        self._rows, self._copies = net_changes(rows, copies)

    def _require_room(self, more: int) -> None:
        if self.size + more > self._most:
            raise TooLargeError(
                "this answer needs more memory than the server allows",
                detail=f"more than {self._most >> 20} MB",
                hint="follow the changes, or ask for less: fewer columns, HAVING, LIMIT",
            )

    def _repeated(self, count: int) -> pa.Table:
        """The first rows, each repeated for its copies."""
        places = np.searchsorted(np.cumsum(self._copies), np.arange(count), side="right")
        return self._rows.take(pa.array(places))


def _before(rows: pa.RecordBatch, instant: int | None) -> Bools:
    if instant is None:
        return np.zeros(len(rows), np.bool_)
    column = rows.column(TIME)
    earlier = pc.less(column, pa.scalar(instant, column.type))
    return np.asarray(earlier.to_numpy(zero_copy_only=False), np.bool_)
