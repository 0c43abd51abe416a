"""Tuples of several streams that have been joined so far: the m_tuples of TR-010 section 3.1.1."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple


class MTuple(NamedTuple):
    """A combination on its way up a pipeline, with the timestamps that decide what it joins."""

    time: int
    """The earliest timestamp that counts (TSmin), which determines its age."""
    key: Hashable
    """The key of its first member; the key of all if they are joined on equal keys."""
    last: int
    """The latest timestamp that counts (TSmax)."""
    members: Result


def one_tuple(first: StreamTuple) -> MTuple:
    """The combination of a single tuple."""
    return MTuple(first.time, first.key, first.time, (first,))


def with_all_times(left: MTuple, right: StreamTuple) -> MTuple:
    """A combination with one more member, all of whose timestamps count."""
    first, key, last, members = left
    time = right.time
    return MTuple(
        time if time < first else first, key, time if time > last else last, (*members, right)
    )


def with_last_time(left: MTuple, right: StreamTuple) -> MTuple:
    """A combination with one more member, whose timestamp is the only one that counts."""
    return MTuple(right.time, left.key, right.time, (*left.members, right))
