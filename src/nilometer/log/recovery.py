"""Finds the end of a log when a writer opens it, and cuts off what was not completely written.

Rows were acknowledged only after they were on the disk as the log's policy requires, and
published. So complete transactions with valid checksums beyond the head are kept: at most the last
one was not acknowledged. The rest of the file is the torn tail, and is cut off. What lies before
the point that the head marks as synced must be there: if not, the log is damaged, which is an
error. Between the two (policies `interval` and `never`, after a power failure) rows may be missing
that were already read: a new segment then continues with the next row number; the loss is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nilometer.errors import LogError
from nilometer.log.frame_format import BatchKey, Flag, FrameHeader, decode_keys
from nilometer.log.head import Head
from nilometer.log.position import Position
from nilometer.log.published import read_head
from nilometer.log.registrations import registered_in
from nilometer.log.segment_files import segment_files
from nilometer.log.segment_format import SegmentHeader, segment_name
from nilometer.log.segment_reader import SegmentReader, open_segment
from nilometer.log.storage import Storage


@dataclass(frozen=True)
class LogState:
    """A writer's knowledge of its log: where it ends, and what came before."""

    end: Position
    watermark: int
    keys: int
    """How many delivery keys the log has had."""
    batches: Mapping[str, int] = field(default_factory=dict)
    """The last batch of every writer, the most recent writer last."""

    @classmethod
    def after_header(cls, header: SegmentHeader, size: int) -> LogState:
        """The state at the beginning of a segment whose header has this size."""
        at = Position(header.number, size, 0, header.first_row)
        return cls(at, header.watermark, header.keys, header.batches)

    def after(self, frame: FrameHeader, batch: BatchKey | None) -> LogState:
        """The state after one more frame."""
        at = self.end
        batches = self.batches
        if batch is not None:
            others = {writer: n for writer, n in batches.items() if writer != batch[0]}
            batches = {**others, batch[0]: batch[1]}
        end = Position(at.segment, at.byte + frame.length, 0, at.row + frame.rows)
        return replace(
            self,
            end=end,
            watermark=frame.watermark,
            keys=self.keys + frame.keys,
            batches=batches,
        )


@dataclass(frozen=True)
class Recovered:
    """The end of a log according to its files, and according to what its readers have seen."""

    state: LogState
    seen: Position
    """Not before the state's end; after it if rows that were published are gone."""


def recover(storage: Storage) -> Recovered | None:
    """The end of the log; None if it has no segments."""
    head = read_head(storage) if storage.publishes else None
    for number in [one.last for one in reversed(segment_files(storage))]:
        with open_segment(storage, number) as segment:
            heading = segment.header()
            if heading is not None:
                state = _last_state(segment, *heading, head)
                return Recovered(state, _furthest_seen(storage, state.end, head))
            if head is not None and number <= head.synced[0]:
                raise segment.damaged(0)
        storage.delete(segment_name(number))  # it was being created, nothing in it is acknowledged
    if head is not None and head.end.row:
        raise LogError(
            "the log is damaged",
            detail=f"{storage.location} has {head.end.row} rows by its head, but no segments",
        )
    return None


def _last_state(
    segment: SegmentReader, header: SegmentHeader, begin: int, head: Head | None
) -> LogState:
    """The state after the last complete transaction of the last segment."""
    surely = head.synced[1] if head is not None and head.synced[0] == header.number else begin
    state = complete = LogState.after_header(header, begin)
    while (frame := segment.frame_header(state.end.byte)) is not None:
        good, batch = _batch_of(segment, state.end.byte, frame, trusted=state.end.byte < surely)
        if not good or frame.first_row != state.end.row:
            break
        state = state.after(frame, batch)
        if not frame.more:
            complete = state
    if complete.end.byte < surely:
        raise segment.damaged(state.end.byte)
    return complete


def _batch_of(
    segment: SegmentReader, byte: int, frame: FrameHeader, *, trusted: bool
) -> tuple[bool, BatchKey | None]:
    """Whether the frame is complete, and its batch key; bodies that are synced are not read."""
    keyed = bool(frame.flags & Flag.BATCH)
    if trusted and not keyed:
        return True, None
    body = segment.good_body(byte, frame)
    if body is None:
        return False, None
    return True, decode_keys(frame, body)[0]


def _furthest_seen(storage: Storage, end: Position, head: Head | None) -> Position:
    """The last position that a reader may know, the head's or one that a reader committed."""
    if not storage.publishes:
        return end
    published = end if head is None else head.end
    return max(end, published, *(one.position for one in registered_in(storage)))
