"""Frames as read from a log."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nilometer.log.position import Position


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows that were appended together, or some of them, and the punctuation after them."""

    rows: pa.RecordBatch
    """The stored columns; no rows if the frame is punctuation only."""
    watermark: int | None
    """The watermark of the log after these rows: no later row is older, except late ones."""
    start: Position
    end: Position

    def part(self, first: int, last: int | None, before: int | None) -> Frame:
        """Rows first … last-1 of a whole frame; `before`: the watermark ahead of the frame."""
        cut = last is not None and last < len(self.rows)
        last = last if last is not None and cut else len(self.rows)
        if not first and not cut:
            return self
        at = self.start
        return Frame(
            self.rows.slice(first, last - first),
            before if cut else self.watermark,
            Position(at.segment, at.byte, first, at.row + first),
            Position(at.segment, at.byte, last, at.row + last) if cut else self.end,
        )
