"""Positions in a log: between two rows, or between two frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True, slots=True)
class Position:
    """A position in a log; of two, the smaller one comes first.

    Segments never change once written, so a position stays good until its segment is deleted.
    """

    segment: int
    """The number of the segment."""
    byte: int
    """The byte in the segment where the next frame begins."""
    skip: int = 0
    """How many rows of that frame are before this position."""
    row: int = 0
    """How many rows the log has ever had before this position."""

    def to_json(self) -> dict[str, int]:
        return {"segment": self.segment, "byte": self.byte, "skip": self.skip, "row": self.row}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Position:
        return cls(fields["segment"], fields["byte"], fields["skip"], fields["row"])
