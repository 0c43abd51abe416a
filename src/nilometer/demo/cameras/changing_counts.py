"""Answers that change: a count for every camera, checked at every instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa

Counts = dict[str, int]
"""Counts by camera; cameras without any are omitted."""


class Change(NamedTuple):
    """From an instant (microseconds) on there are `copies` more of a row; if negative, fewer."""

    time: int
    camera: str
    number: int
    copies: int


def changes_in(rows: pa.Table) -> list[Change]:
    """The changes of an answer with the columns camera and count."""
    cameras, counts, times, copies = rows.columns
    columns = (times.cast(pa.int64()), cameras, counts, copies)
    return [Change(*row) for row in zip(*(one.to_pylist() for one in columns), strict=True)]


def are_right(changes: Iterable[Change], truth: Mapping[int, Counts]) -> bool:
    """Whether they add up to the true answer at every instant, with nothing after the last."""
    left = sorted(changes)
    held: Counter[tuple[str, int]] = Counter()
    for instant, expected in sorted(truth.items()):
        until = [change for change in left if change.time <= instant]
        left = left[len(until) :]
        for change in until:
            held[change.camera, change.number] += change.copies
        if +held != Counter(expected.items()) or min(held.values(), default=0) < 0:
            return False
    return not left
