"""How the rows of a query are spread over its buckets, and which key has most of a full one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nilometer.operators.key_counts import MOST_KEYS, KeyCount, Look
from nilometer.operators.metrics import JoinMetrics

_SPAN: Final = 60_000_000
"""Rows are counted for the last one to two times this long (microseconds), or, where one
micro-batch takes longer, for that one."""
_KEPT: Final = 600_000_000
"""How long counts are shown if nothing comes after them."""
_UNEVEN: Final = 2.0
"""A bucket with more than this many times its share of the rows has much more than its share,"""
_UNEVEN_SHARE: Final = 0.75
"""or one with this share of them, of a few buckets;"""
_LEAST_SHARE: Final = 0.1
"""but not one with less than this, of many."""
_MOST_SHOWN: Final = 16
_BUSY: Final = 1000.0
"""Fewer rows a second are no work worth sharing."""


@dataclass(frozen=True)
class Spread:
    """The rows of one stage of a query, over the last one to two minutes."""

    streams: tuple[str, ...]
    """The streams that the stage reads."""
    bucket_rows: tuple[int, ...]
    """How many rows reached each bucket."""
    key: str | None
    """The most frequent key of the fullest bucket: `sensor_id = 'a17'`; None: none is frequent."""
    key_rows: int
    """How many of the rows have it: at least so many, and at most 1/16 of the bucket's more."""
    seconds: float
    """Over how long they were counted."""

    @property
    def rows(self) -> int:
        return sum(self.bucket_rows)

    @property
    def fullest(self) -> float:
        """The share of the rows that the fullest bucket has."""
        return max(self.bucket_rows) / max(1, self.rows)

    @property
    def key_share(self) -> float | None:
        """The share of the rows that the key has."""
        return None if self.key is None else self.key_rows / max(1, self.rows)

    @property
    def is_uneven(self) -> bool:
        """Whether one bucket has much more than its share.

        >>> Spread(("A",), (90, 5, 5, 0), None, 0, 60.0).is_uneven
        True
        """
        buckets = len(self.bucket_rows)
        much = max(_LEAST_SHARE, min(_UNEVEN / buckets, _UNEVEN_SHARE))
        return buckets > 1 and self.fullest >= much

    @property
    def is_bottleneck(self) -> bool:
        """Whether it is uneven, and there is enough work for that to matter."""
        return self.is_uneven and self.rows / max(1.0, self.seconds) >= _BUSY

    @property
    def is_one_key(self) -> bool:
        """Whether one key has most of the rows of the fullest bucket."""
        return self.key is not None and 2 * self.key_rows >= max(self.bucket_rows)

    @property
    def cause(self) -> str:
        """An uneven spread in words.

        >>> Spread(("A",), (930, 30, 20, 20), "k = 7", 890, 60.0).cause
        'one key, k = 7, has 89 % of the rows: one bucket of 4 does most of the work, and more \
cores do not help'
        """
        one = f"one bucket of {len(self.bucket_rows)}"
        if not self.is_one_key:
            return f"{one} has {percent(self.fullest)} of the rows, though no key has most of them"
        work = "most" if self.fullest > 0.5 else percent(self.fullest)
        return (
            f"one key, {self.key}, has {percent(self.key_share or 0)} of the rows: "
            f"{one} does {work} of the work, and more cores do not help"
        )


def describe_spreads(spreads: Sequence[Spread]) -> Iterator[str]:
    """Lines that tell how the rows of each stage are spread."""
    if not spreads:
        yield "Rows by bucket: none were read in the last minutes"
    for one in spreads:
        yield f"Rows by bucket, of {', '.join(one.streams)} in the last {one.seconds:.0f} s"
        shown = sorted(enumerate(one.bucket_rows, 1), key=lambda pair: -pair[1])[:_MOST_SHOWN]
        for number, rows in shown:
            yield f"  bucket {number}: {rows:,} ({percent(rows / one.rows)})"
        if len(one.bucket_rows) > _MOST_SHOWN:
            yield f"  and {len(one.bucket_rows) - _MOST_SHOWN} with fewer"
        if one.key is not None:
            share = percent(one.key_share or 0)
            yield f"  most frequent key of bucket {shown[0][0]}: {one.key} ({share} of all rows)"
        if one.is_uneven:
            yield f"  {one.cause}"


def percent(share: float) -> str:
    """A share in words: `83 %`."""
    return f"{100 * share:.0f} %"


class SpreadCounter:
    """Counts the rows of a query's stages, by bucket, and their most frequent keys.

    The keys of a bucket are a Misra-Gries summary of those that its micro-batches reported: no
    more than MOST_KEYS of each routing key.
    """

    def __init__(self) -> None:
        self._now = _Span()
        self._before = _Span()

    def add(self, stages: Sequence[JoinMetrics], began: int, now: int) -> None:
        """Add a micro-batch that began, and was done, at these times."""
        if not stages:  # a micro-batch without rows
            return
        if not self._now.stages or now - self._now.opened >= _SPAN:
            is_old = now - self._now.opened >= 2 * _SPAN
            self._before = _Span() if is_old else self._now
            self._now = _Span(began, now)
        self._now.last = now
        for one in stages:
            self._now.stage(one).add(one.buckets)

    def spreads(self, now: int) -> list[Spread]:
        """How the rows of each stage are spread, those with most rows in one bucket first."""
        if now - self._now.last >= _KEPT:
            return []
        began = self._before.began if self._before.stages else self._now.began
        spreads = []
        for streams, one in self._now.stages.items():
            total = _Stage.empty(len(one.buckets))
            for part in (one, self._before.stages.get(streams)):
                if part is not None and len(part.buckets) == len(total.buckets):
                    total.add([bucket.look for bucket in part.buckets])
            if any(bucket.rows for bucket in total.buckets):
                spreads.append(total.spread(streams, (now - began) / 1e6))
        return sorted(spreads, key=lambda one: max(one.bucket_rows), reverse=True)


@dataclass
class _Bucket:
    """The rows of a bucket."""

    rows: int = 0
    stands_for: int = 0
    """Of how many rows the keys are."""
    keys: dict[int, dict[int, KeyCount]] = field(default_factory=dict)
    """By the number of the routing key, then by hash."""

    def add(self, look: Look) -> None:
        self.rows += look.rows
        self.stands_for += look.stands_for
        for one in look.keys:
            own = self.keys.setdefault(one.key, {})
            known = own.get(one.hash)
            own[one.hash] = one if known is None else replace(known, rows=known.rows + one.rows)
        if look.keys:
            self.keys = {number: _fewer(own) for number, own in self.keys.items()}

    @property
    def look(self) -> Look:
        keys = tuple(one for own in self.keys.values() for one in own.values())
        return Look(self.rows, self.stands_for, keys)


@dataclass
class _Stage:
    """The rows of a stage."""

    buckets: list[_Bucket]

    @classmethod
    def empty(cls, buckets: int) -> _Stage:
        return cls([_Bucket() for _ in range(buckets)])

    def add(self, looks: Sequence[Look]) -> None:
        for bucket, look in zip(self.buckets, looks, strict=True):
            bucket.add(look)

    def spread(self, streams: tuple[str, ...], seconds: float) -> Spread:
        full = max(self.buckets, key=lambda one: one.rows)
        tops = [max(own.values(), key=lambda one: one.rows) for own in full.keys.values() if own]
        hot = (one for one in sorted(tops, key=lambda one: one.key) if _is_most(one, full))
        top = next(hot, max(tops, key=lambda one: one.rows, default=None))
        rows = tuple(one.rows for one in self.buckets)
        if top is None:
            return Spread(streams, rows, None, 0, seconds)
        key_rows = round(full.rows * min(1.0, top.rows / full.stands_for))
        return Spread(streams, rows, top.text, key_rows, seconds)


@dataclass
class _Span:
    """What was counted for a while, by the streams that a stage reads."""

    began: int = 0
    """When its first micro-batch began,"""
    opened: int = 0
    """when that was done, and"""
    last: int = 0
    """when its last one was."""
    stages: dict[tuple[str, ...], _Stage] = field(default_factory=dict)

    def stage(self, metrics: JoinMetrics) -> _Stage:
        streams, buckets = tuple(metrics.streams), len(metrics.buckets)
        stage = self.stages.get(streams)
        if stage is None or len(stage.buckets) != buckets:
            stage = self.stages[streams] = _Stage.empty(buckets)
        return stage


def _is_most(key: KeyCount, bucket: _Bucket) -> bool:
    """Whether a key has most of the rows of a bucket; of several such, the first is to blame."""
    return 2 * key.rows >= bucket.stands_for


def _fewer(keys: dict[int, KeyCount]) -> dict[int, KeyCount]:
    """At most MOST_KEYS of them: all counts less the largest that is left out."""
    if len(keys) <= MOST_KEYS:
        return keys
    least = sorted(one.rows for one in keys.values())[-MOST_KEYS - 1]
    return {
        name: replace(one, rows=one.rows - least) for name, one in keys.items() if one.rows > least
    }
