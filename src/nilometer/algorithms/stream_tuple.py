"""What the algorithms are about: tuples of streams, and what they combine to."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class StreamTuple(NamedTuple):
    """One tuple of a stream; tuples of one stream come in the order of time."""

    time: int
    """Its timestamp (microseconds)."""
    key: Hashable
    """What the join condition looks at; equal to itself, as NaN is not, and None like any other."""
    stream: int
    """The place of its stream in the join."""
    number: int
    """Which tuple of its stream it is: no two have the same."""


Result = tuple[StreamTuple, ...]
"""One tuple of every stream, in the order of the streams."""
