"""Results as they are handed out: a page of rows, a chunk of what is followed, an answer."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nilometer.server.results.offset import Offset


@dataclass(frozen=True)
class Chunk:
    """Rows that follow an offset, in the order of the log; none if only time went on."""

    rows: pa.Table
    start: Offset
    """The offset that they follow."""
    next: Offset
    """The offset after them."""
    watermark: int | None
    """No row that follows has an earlier time (microseconds); None if that is not known."""


@dataclass(frozen=True)
class Page(Chunk):
    """A chunk of what is stored."""

    at_end: bool
    """Whether there is no more at present."""


@dataclass(frozen=True)
class Answer:
    """The answer of a changelog query at one instant."""

    rows: pa.Table
    """Without `_time` and `_diff`; a row that holds three times comes three times."""
    instant: int | None
    """For which instant (microseconds): the last one that no change can reach any more."""
    offset: Offset
    """Following from here gives every change after the instant, and no other."""
    is_cut: bool
    """Whether there were more rows."""
