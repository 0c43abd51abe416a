"""The newest frames of a log in the writer's memory, up to a number of bytes."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import pyarrow as pa

from nilometer.log.frame import Frame
from nilometer.log.position import Position

_WASTE: Final = 2
_LITTLE: Final = 512
"""Rows whose buffers exceed `_WASTE` times their own bytes by more than this are copied: they are
slices of larger ones."""
_EACH: Final = 3000
_COLUMN: Final = 512
"""Memory per frame, and per column of a frame, in addition to the rows, as measured."""


@dataclass(frozen=True, slots=True)
class _KeptFrame:
    frame: Frame
    before: int | None
    size: int


class MemoryTail:
    """All frames from `start` to the end of the log; thread-safe."""

    def __init__(self, max_bytes: int, start: Position) -> None:
        self._max_bytes = max_bytes
        self._kept: deque[_KeptFrame] = deque()
        self._changing = threading.Lock()
        self.size = 0
        self.start = start

    def add(self, frame: Frame, before: int | None) -> None:
        """Add the next frame of the log; `before`: the watermark before it."""
        rows, size = _compact(frame.rows)
        size += _EACH + _COLUMN * rows.num_columns
        entry = _KeptFrame(Frame(rows, frame.watermark, frame.start, frame.end), before, size)
        with self._changing:
            self._kept.append(entry)
            self.size += size
            while self.size > self._max_bytes:
                oldest = self._kept.popleft()
                self.size -= oldest.size
                self.start = oldest.frame.end

    def forget(self, end: Position) -> None:
        """Drop all frames before the end of the log, which is here."""
        with self._changing:
            self._kept.clear()
            self.size, self.start = 0, end

    def after(self, start: Position, end: Position, max_bytes: int) -> list[Frame] | None:
        """Frames between the two positions, from the first one on, of about this many bytes.

        None if the frames after `start` are no longer here.
        """
        with self._changing:
            if start < self.start:
                return None
            newer = list(takewhile(lambda one: one.frame.end > start, reversed(self._kept)))
        frames, size = [], 0
        for one in reversed(newer):
            if one.frame.start >= end or size > max_bytes:
                break
            frames.append(_part(one, start, end))
            size += one.size
        return frames


def _part(one: _KeptFrame, start: Position, end: Position) -> Frame:
    at = one.frame.start
    first = start.skip if _same_frame(start, at) else 0
    last = end.skip if _same_frame(end, at) else None
    return one.frame.part(first, last, one.before)


def _same_frame(place: Position, start: Position) -> bool:
    return (place.segment, place.byte) == (start.segment, start.byte)


def _compact(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, int]:
    """The rows, copied into buffers of their own if those are much too large, and their bytes."""
    size = rows.get_total_buffer_size()
    if size > _WASTE * rows.nbytes + _LITTLE:
        rows = pa.ipc.read_record_batch(rows.serialize(), rows.schema)
        size = rows.get_total_buffer_size()
    return rows, size
