"""The progress of a log, as observed once."""

from __future__ import annotations

from dataclasses import dataclass

from nilometer.log.position import Position
from nilometer.log.reader import LogReader


@dataclass(frozen=True, order=True)
class Seen:
    """The progress of a log: its end, and the watermark there (None: unknown)."""

    end: Position
    known: tuple[int, ...] = ()

    @classmethod
    def of(cls, reader: LogReader) -> Seen:
        end, watermark = reader.published()
        return cls(end, () if watermark is None else (watermark,))

    @property
    def watermark(self) -> int | None:
        return self.known[0] if self.known else None
