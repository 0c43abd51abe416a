"""The size of the log of a query's results, from its files."""

from __future__ import annotations

from dataclasses import dataclass

from nilometer.log.dead_letters import count_dead_letters, dead_letters_at
from nilometer.log.location import storage_at
from nilometer.log.published import as_watermark, read_head, stored_bytes


@dataclass(frozen=True)
class ResultSize:
    """How many results a query has ever emitted, and the bytes of those that are kept."""

    rows: int = 0
    bytes: int = 0
    watermark: int | None = None
    dead_letters: int = 0
    """Rows ever left out because they could not be computed."""


def result_size(location: str) -> ResultSize:
    """The current size of the log; zero if there is none yet."""
    storage = storage_at(location)
    head = read_head(storage)
    if head is None:
        return ResultSize()
    stored = stored_bytes(storage)
    dead = count_dead_letters(dead_letters_at(location))
    return ResultSize(head.end.row, stored, as_watermark(head.watermark), dead)
