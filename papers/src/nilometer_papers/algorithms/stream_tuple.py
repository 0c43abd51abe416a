"""The data of the algorithms: tuples of streams, and the combinations they form."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class StreamTuple(NamedTuple):
    """One tuple of a stream; the tuples of a stream come in time order."""

    time: int
    """Its timestamp (microseconds)."""
    key: Hashable
    """What the join condition compares; equal to itself, as NaN is not, and None like any other."""
    stream: int
    """The position of its stream in the join."""
    number: int
    """Its number within the stream: no two tuples share one."""


Result = tuple[StreamTuple, ...]
"""One tuple of every stream, in the order of the streams."""
