"""Appends frames to a log: starts segments, forces rows to the disk, publishes the head."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from nilometer.errors import LogError, LogFullError
from nilometer.log.dropped_rows import add_dropped_rows
from nilometer.log.frame_format import ALWAYS, NEVER, BatchKey, Chunks, Flag, FrameHeader
from nilometer.log.head import Head
from nilometer.log.layout import LogLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.position import Position
from nilometer.log.recovery import LogState, recover
from nilometer.log.retention import Segment, list_segments
from nilometer.log.segment_files import needless_files
from nilometer.log.segment_format import SegmentHeader, segment_name
from nilometer.log.segment_reader import open_segment
from nilometer.log.storage import Storage

_SEGMENTS_IN_BUDGET: Final = 8
"""The least number of segments in a disk budget, so that deleting one frees room early."""


class Appender:
    """The end of a log. Calls come from one thread at a time, except to `sync`."""

    def __init__(
        self, storage: Storage, layout: LogLayout, options: LogOptions, clock: Callable[[], int]
    ) -> None:
        self._storage = storage
        self._schema = layout.in_segments
        self._options = options
        self._clock = clock
        self._problem: BaseException | None = None
        self._is_closed = False
        self._publishing = threading.Lock()
        storage.sweep()
        recovered = recover(storage)
        for name in needless_files(storage):
            storage.delete(name)
        self._files = storage.segments()
        self.segments: list[Segment] = list_segments(storage, self._schema)
        if recovered is None:
            self.state = LogState(Position(0, 0), NEVER, 0)
            self._synced = (0, 0)
            if not self._files.whole:
                self._begin(self._next_header())
        else:
            self._go_on(recovered.state, recovered.seen)
        self._acknowledged = self.state
        if self.segments:
            self._files.sync()
            self._publish(synced=True)

    @property
    def last_created(self) -> int:
        """When the last segment was started."""
        return self.segments[-1].created if self.segments else ALWAYS

    @property
    def is_whole(self) -> bool:
        """Whether every append is a segment of its own."""
        return self._files.whole

    @property
    def stored_bytes(self) -> int:
        return sum(one.size for one in self.segments)

    def added_by(self, length: int) -> int:
        """How many bytes frames of this length add, including the header of a new segment."""
        return length + (len(self._next_header().to_bytes()) if self._is_segment_full else 0)

    @property
    def _is_segment_full(self) -> bool:
        return self._files.whole or self.state.end.byte >= self.max_bytes(self._options.segment)

    def write(
        self,
        headers: Sequence[FrameHeader],
        bodies: Iterable[Chunks],
        watermark: int,
        batch: BatchKey | None,
    ) -> list[FrameHeader]:
        """Append frames as one transaction; they are durable by the log's policy and published.

        The watermark holds after the last of them. Returns their headers as they stand in the log.
        """
        self._check()
        placed = self._placed(headers, watermark)
        total = sum(one.length for one in placed)
        before = self.state
        try:
            if self._is_segment_full:
                self._begin(self._next_header(), total)
                before = self.state
            frames = ([one.to_bytes(), *body] for one, body in zip(placed, bodies, strict=True))
            self._files.add(self.state.end.byte, frames)
            if self._options.fsync is Fsync.ALWAYS:
                self._files.sync()
            for one in placed:
                self.state = self.state.after(one, batch if one.flags & Flag.BATCH else None)
            self._publish(synced=self._options.fsync is Fsync.ALWAYS)
        except LogFullError:
            raise
        except BaseException as problem:
            self.state, self._problem = before, problem
            raise
        return placed

    def seal(self) -> None:
        """Start a new segment if the last one has frames and segments can grow."""
        header_only = not self.segments or self.state.end.byte <= self._header_size
        if not self._files.whole and not header_only:
            self._check()
            self._begin(self._next_header())
            self._publish(synced=True)

    def sync(self) -> None:
        """Force all appended rows to the disk; may be called concurrently with other methods."""
        end = self._acknowledged.end
        if self._synced == (end.segment, end.byte):
            return
        try:
            self._files.sync()
        except BaseException as problem:
            self._problem = problem
            raise
        with self._publishing:
            self._synced = max(self._synced, (end.segment, end.byte))
            state = self._acknowledged
            self._files.publish(Head(state.end, state.watermark, self._synced).to_bytes())

    def repair(self) -> None:
        """Recover from a failure: cut off what was not acknowledged; raises if that fails, too.

        What the disk may have lost is not trusted even if readable: it is written again.
        """
        if self._problem is None or self._is_closed:
            return
        if self._files.whole:  # the next object replaces the last one
            self.state = self._acknowledged
            last = self.state.end.segment if self.state.end.byte else -1
            self.segments = [one for one in self.segments if one.number <= last]
        else:
            self._files.go_on(self.state.end.segment, self.state.end.byte)
        self._problem = None

    def delete(self, segments: Sequence[Segment]) -> None:
        """Delete the oldest segments."""
        for one in segments:
            self._storage.delete(one.name)
        self.segments = self.segments[len(segments) :]

    def swap(self, before: Sequence[Segment], after: Segment) -> bool:
        """Replace segments by packed ones; False, and nothing is done, if they are deleted.

        The caller must then delete the replaced files.
        """
        names = [one.name for one in self.segments]
        if before[0].name not in names:
            return False
        at = names.index(before[0].name)
        if names[at : at + len(before)] != [one.name for one in before]:
            return False
        self._storage.show(after.name)
        self.segments[at : at + len(before)] = [after]
        return True

    def close(self) -> None:
        try:
            if self._problem is None:
                self.sync()
        finally:
            self._is_closed = True
            self._problem = LogError("the log is closed")
            self._files.close()

    def _check(self) -> None:
        if self._problem is not None:
            raise LogError(
                "the log can no longer be written",
                detail=f"after: {self._problem}",
                hint="repair it, or open it again; what was acknowledged is safe",
            ) from self._problem

    def _go_on(self, state: LogState, seen: Position) -> None:
        """Continue after what was recovered, or in a new segment if readers have seen more."""
        self.state = state
        end = state.end
        self._synced = (end.segment, 0)
        header, self._header_size = self._header_of(end.segment)
        self._files.go_on(end.segment, end.byte)
        self.segments[-1] = replace(self.segments[-1], size=end.byte, length=end.byte)
        if seen > end and self._options.fsync is not Fsync.REPLAYED:
            add_dropped_rows(self._storage, seen.row - end.row)
            self._begin(self._next_header(seen))
        elif not self._files.whole and header.schema != self._schema:
            self._begin(self._next_header())  # the columns of a segment are the same everywhere

    def max_bytes(self, wanted: int) -> int:
        """How large a file of segments may get within the disk budget."""
        disk = self._options.disk
        return wanted if disk is None else min(wanted, disk // _SEGMENTS_IN_BUDGET)

    def _next_header(self, seen: Position | None = None) -> SegmentHeader:
        end = max(self.state.end, seen or self.state.end)
        return SegmentHeader(
            end.segment + 1 if end.byte else end.segment,
            max(end.row, self.state.end.row),
            self._clock(),
            self._schema,
            self.state.watermark,
            self.state.keys,
            self.state.batches,
        )

    def _begin(self, header: SegmentHeader, frames: int | None = None) -> None:
        """Start a segment; `frames`: the bytes that will follow if it is written as a whole."""
        content = header.to_bytes(frames if self._files.whole else None)
        self._files.begin(header.number, content)
        self._header_size = len(content)
        self.state = LogState.after_header(header, len(content))
        self._synced = (header.number, len(content))
        self.segments.append(
            Segment(
                header.number,
                len(content),
                header.first_row,
                header.created,
                header.keys,
                header.number,
                len(content),
                header.schema,
                segment_name(header.number),
            )
        )

    def _placed(self, headers: Sequence[FrameHeader], watermark: int) -> list[FrameHeader]:
        placed, row, before = [], self.state.end.row, self.state.watermark
        for number, one in enumerate(headers, 1):
            last = number == len(headers)
            flags = one.flags & ~Flag.MORE if last else one.flags | Flag.MORE
            after = watermark if last else before
            placed.append(replace(one, flags=flags, first_row=row, before=before, watermark=after))
            row += one.rows
        return placed

    def _publish(self, *, synced: bool) -> None:
        state = self.state
        end = state.end
        with self._publishing:
            surely = (end.segment, end.byte) if synced else self._synced
            self._files.publish(Head(end, state.watermark, surely).to_bytes())
            self._synced = surely
            self.segments[-1] = replace(self.segments[-1], size=end.byte, length=end.byte)
            self._acknowledged = state

    def _header_of(self, number: int) -> tuple[SegmentHeader, int]:
        with open_segment(self._storage, number) as segment:
            return segment.good_header()
