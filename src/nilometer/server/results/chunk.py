"""Results as they are returned: a page of rows, a chunk for followers, an answer."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nilometer.server.results.offset import Offset


@dataclass(frozen=True)
class Chunk:
    """Rows that follow an offset, in the order of the log; none if only time has advanced."""

    rows: pa.Table
    start: Offset
    """The offset that they follow."""
    next: Offset
    """The offset after them."""
    watermark: int | None
    """No later row has an earlier time (microseconds); None if unknown."""


@dataclass(frozen=True)
class Page(Chunk):
    """A chunk of stored rows."""

    at_end: bool
    """Whether there are no more rows at present."""


@dataclass(frozen=True)
class CurrentAnswer:
    """The answer of a changelog query at one instant."""

    rows: pa.Table
    """Without `_time` and `_diff`; a row that holds three times occurs three times."""
    instant: int | None
    """The instant of the answer (microseconds): the last one that no further change can affect."""
    offset: Offset
    """Following from here emits every change after the instant, and no other."""
    is_cut: bool
    """Whether there were more rows."""
