"""The most frequent keys of the rows of a bucket, so that a hot one can be named.

Of n rows every key with more than n / MOST_KEYS of them is counted, so there are at most MOST_KEYS,
and of any other key no more than that is missed. Of many rows some are looked at, taken evenly,
and of small micro-batches some: what is counted there stands for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.frequent_hashes import frequent_hashes
from nilometer.kernels.key_hashes import hash_rows
from nilometer.kernels.print_values import print_values
from nilometer.kernels.routing import Routing

MOST_KEYS: Final = 32
MOST_ROWS: Final = 1 << 11
"""At most this many rows are looked at in a micro-batch."""
_EVERY_ROWS: Final = 1 << 15
_EVERY_BATCHES: Final = 64
"""Micro-batches are looked at after so many rows, or micro-batches, that were not."""
_MOST_COLUMNS: Final = 8
_MOST_CHARACTERS: Final = 60


@dataclass(frozen=True)
class RoutingKey:
    """A key by which rows find their bucket."""

    columns: tuple[tuple[int, ...] | None, ...]
    """For each stream; None: it does not have the key."""
    names: tuple[tuple[str, ...], ...]
    """The names of these columns."""


@dataclass(frozen=True)
class KeyCount:
    """How many rows of a bucket have a key."""

    key: int
    """The number of the routing key."""
    hash: int
    """The same for equal values, and different for others."""
    rows: int
    text: str
    """The key as a condition: `sensor_id = 'a17'`."""


@dataclass(frozen=True)
class Look:
    """The rows that reached a bucket in a micro-batch, and their most frequent keys."""

    rows: int = 0
    stands_for: int = 0
    """Of how many rows the keys are: those of micro-batches that were not looked at, too."""
    keys: tuple[KeyCount, ...] = ()


class KeyWatch:
    """Looks at the keys of a bucket: seldom enough that it costs next to nothing."""

    def __init__(self, keys: Sequence[RoutingKey]) -> None:
        self._keys = keys
        self._rows = 0
        """Rows since the last look, and"""
        self._batches = _EVERY_BATCHES
        """micro-batches that had some; the first one is looked at."""

    def look(self, rows: Sequence[pa.RecordBatch]) -> Look:
        """The rows of each stream in a micro-batch."""
        here = sum(map(len, rows))
        if not here or not self._keys:
            return Look(here)
        self._rows += here
        self._batches += 1
        if self._rows < _EVERY_ROWS and self._batches < _EVERY_BATCHES:
            return Look(here)
        stands_for, self._rows, self._batches = self._rows, 0, 0
        scale = stands_for / here
        keys = (replace(k, rows=round(k.rows * scale)) for k in count_keys(self._keys, rows))
        return Look(here, stands_for, tuple(keys))


def routing_keys(routing: Routing, names: Sequence[Sequence[str]]) -> tuple[RoutingKey, ...]:
    """The keys of a routing, given the names of the columns of each stream.

    Columns that only one of several streams has are no key: its rows are just dealt out.
    """
    keys = []
    for dimension in range(len(routing.shares)):
        columns = tuple(places[dimension] for places in routing.places)
        some = [one for one in columns if one is not None]
        is_key = len(some) > 1 or len(columns) == 1
        if some and is_key and len(some[0]) <= _MOST_COLUMNS:
            key_names = tuple(
                tuple(own[place] for place in chosen or ())
                for own, chosen in zip(names, columns, strict=True)
            )
            keys.append(RoutingKey(columns, key_names))
    return tuple(keys)


def count_keys(keys: Sequence[RoutingKey], rows: Sequence[pa.RecordBatch]) -> list[KeyCount]:
    """The most frequent keys among the rows of each stream."""
    return [one for number, key in enumerate(keys) for one in _count(number, key, rows)]


def _count(number: int, key: RoutingKey, rows: Sequence[pa.RecordBatch]) -> list[KeyCount]:
    parts = [
        _Part(names, [batch.column(c) for c in columns])
        for batch, columns, names in zip(rows, key.columns, key.names, strict=True)
        if columns is not None and len(batch)
    ]
    total = sum(map(len, parts))
    if total > MOST_ROWS:
        parts = _some(parts, total)
    if not parts:
        return []
    hashes = np.concatenate([hash_rows(part.columns) for part in parts])
    ends = np.cumsum([len(part) for part in parts])
    counts = []
    for one, count in zip(*frequent_hashes(hashes, len(hashes) // MOST_KEYS + 1), strict=True):
        row = int(np.argmax(hashes == one))
        stream = int(np.searchsorted(ends, row, "right"))
        text = parts[stream].text(row - int(ends[stream]) + len(parts[stream]))
        counted = round(int(count) * total / len(hashes))
        counts.append(KeyCount(number, int(one), counted, text))
    return counts


@dataclass(frozen=True)
class _Part:
    """Keys of rows of one stream, and the names of their columns."""

    names: tuple[str, ...]
    columns: list[pa.Array]

    def __len__(self) -> int:
        return len(self.columns[0])

    def text(self, row: int) -> str:
        """The key of a row as a condition."""
        shown = zip(self.names, (_shown(one.slice(row, 1)) for one in self.columns), strict=True)
        return " AND ".join(
            f"{name} IS NULL" if value is None else f"{name} = {value}" for name, value in shown
        )


def _some(parts: Sequence[_Part], total: int) -> list[_Part]:
    """MOST_ROWS of the rows: one at random of each of so many stretches of equal length."""
    edges = np.linspace(0, total, MOST_ROWS + 1).astype(np.int64)
    places = np.random.default_rng(total).integers(edges[:-1], edges[1:])
    chosen, first = [], 0
    for part in parts:
        own = pa.array(places[(places >= first) & (places < first + len(part))] - first)
        if len(own):
            chosen.append(_Part(part.names, [column.take(own) for column in part.columns]))
        first += len(part)
    return chosen


def _shown(one: pa.Array) -> str | None:
    """A value as in SQL, if it is short; the text of a long one is cut."""
    kind = one.type
    if one.null_count:
        return None
    if pat.is_timestamp(kind) or pat.is_date32(kind):
        return f"'{print_values(one, 'UTC')[0].as_py()}'"
    try:
        value = one[0].as_py()
    except (ValueError, OverflowError):  # a date within a struct that Python does not know
        return "…"
    text = value.hex() if isinstance(value, bytes) else str(value)
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[:_MOST_CHARACTERS]}…"
    quote = "'" if isinstance(value, str) else ""
    return f"{quote}{text.replace(quote, quote * 2) if quote else text}{quote}"
