"""The W-join of N streams over columns: every new row finds its partners, none is found twice.

As in the papers (SSDBM section 3, TR-010 section 3.1) a partial tuple carries its period and
each further stream is looked up in that period only; here a whole column of partial tuples
takes each step at once, and no intermediate result is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s, UInt64s
from nilometer.kernels.chunk import Access, Chunk, StreamKeys
from nilometer.kernels.equality import equal_rows
from nilometer.kernels.gather import Gatherer
from nilometer.kernels.indexes import NO_HASHES, Probes, Runs

Bounds: TypeAlias = tuple[tuple[int, ...], ...]
"""time(j) - time(i) <= bounds[i][j]"""

MOST_CANDIDATES: Final = 1 << 20
"""How many candidates are examined in one step, which bounds the memory of a join."""


@dataclass(frozen=True)
class Side:
    """One stream in a join: chunks of earlier rows and, last, the chunk of new ones, if any."""

    old: tuple[Chunk, ...]
    new: Chunk | None
    gatherer: Gatherer = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gatherer", Gatherer([chunk.rows for chunk in self.chunks]))

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return self.old if self.new is None else (*self.old, self.new)


@dataclass(frozen=True, slots=True)
class Residual:
    """A predicate on columns of several streams, tested as soon as all of them are joined."""

    columns: tuple[tuple[int, int], ...]
    """(stream, column) of each argument."""
    test: Callable[..., Bools]
    """Takes these columns, and which rows count as rows of their own (by default all)."""
    cost: float = 0.0
    """What it costs for one row, in comparisons, if that counts for the order of a join."""

    @property
    def streams(self) -> frozenset[int]:
        return frozenset(stream for stream, _ in self.columns)


@dataclass(frozen=True, slots=True)
class JoinRule:
    """The rule by which rows of several streams make one result."""

    bounds: Bounds
    """Closed bounds: time(j) - time(i) <= bounds[i][j]. None is longer than all of time."""
    keys: tuple[StreamKeys, ...]
    """The columns of every key in each stream, in corresponding order."""
    exact_hashes: tuple[bool, ...]
    """Whether equal hashes mean equal keys, for every key."""
    residuals: tuple[Residual, ...] = ()
    members: tuple[frozenset[int], ...] = field(init=False)
    """The streams that take part in each key."""
    common: tuple[int, ...] | None = field(init=False)
    """The keys, if all streams take part in all of them."""

    def __post_init__(self) -> None:
        members = tuple(
            frozenset(s for s, columns in enumerate(own) if columns is not None)
            for own in zip(*self.keys, strict=True)
        )
        shared = all(len(own) == len(self.keys) for own in members)
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "common", tuple(range(len(members))) if shared else None)

    def links(self, streams: Collection[int], others: Collection[int]) -> tuple[int, ...]:
        """The keys that some streams have in common with some others."""
        if self.common is not None:  # called so often that it matters for small micro-batches
            return self.common if streams and others else ()
        return tuple(
            k
            for k, members in enumerate(self.members)
            if not members.isdisjoint(streams) and not members.isdisjoint(others)
        )


@dataclass(frozen=True)
class Tuples:
    """Partial results: rows of the streams joined so far, numbered across their chunks."""

    rows: dict[int, Int64s]
    hashes: dict[int, UInt64s]
    """For every key that links a stream still to be joined, its hashes."""
    latest: Int64s
    """The largest time of each tuple."""
    lows: dict[int, Int64s]
    """For every stream still to be joined, the earliest time that fits each tuple."""
    highs: dict[int, Int64s]
    """And the latest."""
    until: Int64s | None = None
    """When the first of its rows leaves its ROWS window, if there are any."""

    def __len__(self) -> int:
        return len(self.latest)

    def only(self, chosen: Bools) -> Tuples:
        return Tuples(
            {s: rows[chosen] for s, rows in self.rows.items()},
            {k: hashes[chosen] for k, hashes in self.hashes.items()},
            self.latest[chosen],
            {s: times[chosen] for s, times in self.lows.items()},
            {s: times[chosen] for s, times in self.highs.items()},
            None if self.until is None else self.until[chosen],
        )


@dataclass(frozen=True, slots=True)
class FittingRows:
    """Rows of one stream that fit tuples: row rows[m] at times[m] fits tuple which[m]."""

    which: Int64s
    rows: Int64s
    times: Int64s
    hashes: dict[int, UInt64s]
    """Of the keys that the tuples do not have yet and will need."""
    until: Int64s | None


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a lookup of tuples in one stream found, chunk by chunk."""

    chunks: tuple[Chunk, ...]
    accesses: Sequence[Access]
    runs: Sequence[Runs]

    @property
    def total(self) -> int:
        return sum(r.total for r in self.runs)

    def between(self, first: int, last: int) -> Candidates:
        """The candidates of tuples first … last-1."""
        return Candidates(self.chunks, self.accesses, [r.between(first, last) for r in self.runs])


def join_new_rows(
    sides: Sequence[Side], rule: JoinRule, orders: Sequence[Sequence[int]]
) -> Iterator[Tuples]:
    """All results that contain at least one new row, in blocks; each result exactly once.

    A result is found from the new row of its lowest-numbered stream that has one: streams
    before that one contribute old rows only. `orders` says, for new rows of each stream, in
    which order the others are looked up.
    """
    for first, side in enumerate(sides):
        if side.new is None:
            continue
        others = [j for j in range(len(sides)) if j != first]
        offered = {j: sides[j].old if j < first else sides[j].chunks for j in others}
        if not all(offered.values()):
            continue
        start = _start(first, side, others, rule)
        start = _refine(start, frozenset(), sides, rule)
        yield from _extend(start, orders[first], offered, sides, rule)


def _start(first: int, side: Side, others: Sequence[int], rule: JoinRule) -> Tuples:
    """The new rows of a stream as tuples of one row."""
    assert side.new is not None
    base = sum(map(len, side.old))
    times, until = side.new.times, side.new.until
    start = Tuples(
        {first: np.arange(base, base + len(times))},
        {k: side.new.hashes[k] for k in rule.links((first,), others)},
        times,
        {j: times - rule.bounds[j][first] for j in others},
        {j: times + rule.bounds[first][j] for j in others},
        until,
    )
    return start if until is None else start.only(times < until)


def _extend(
    tuples: Tuples,
    order: Sequence[int],
    offered: dict[int, tuple[Chunk, ...]],
    sides: Sequence[Side],
    rule: JoinRule,
) -> Iterator[Tuples]:
    if len(tuples) == 0:
        return
    if not order:
        yield tuples
        return
    nearest = order[0]
    links = rule.links((nearest,), tuples.rows)
    wanted = rule.links((*tuples.rows, nearest), order[1:])
    candidates = _look_up(tuples, nearest, offered[nearest], links)
    for first, last in _blocks(candidates, len(tuples)):
        matches = _match(tuples, nearest, candidates.between(first, last), links, wanted)
        longer = _lengthen(tuples, nearest, matches, wanted, rule.bounds)
        longer = _refine(longer, frozenset(tuples.rows), sides, rule)
        yield from _extend(longer, order[1:], offered, sides, rule)


def _look_up(
    tuples: Tuples, stream: int, chunks: tuple[Chunk, ...], links: Sequence[int]
) -> Candidates:
    """The candidates of a stream: by the key with the fewest, or by time where none links it."""
    keys: Sequence[int | None] = links or (None,)
    candidates = [_look_up_by(key, tuples, stream, chunks) for key in keys]
    return candidates[0] if len(candidates) == 1 else min(candidates, key=lambda f: f.total)


def _look_up_by(
    key: int | None, tuples: Tuples, stream: int, chunks: tuple[Chunk, ...]
) -> Candidates:
    hashes = NO_HASHES if key is None else tuples.hashes[key]
    probes = Probes(hashes, tuples.lows[stream], tuples.highs[stream])
    accesses = [chunk.access(key) for chunk in chunks]
    return Candidates(chunks, accesses, [access.index.find(probes) for access in accesses])


def _blocks(candidates: Candidates, tuples: int) -> Iterator[tuple[int, int]]:
    """Ranges of tuples with not many more than MOST_CANDIDATES candidates each."""
    total = candidates.total
    if total <= MOST_CANDIDATES:
        if total:
            yield 0, tuples
        return
    counts = np.zeros(tuples, dtype=np.int64)
    for r in candidates.runs:
        counts[r.probes] += r.counts
    seen = np.cumsum(counts)
    first = 0
    while first < tuples:
        before = seen[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(seen, before + MOST_CANDIDATES, "right")))
        yield first, last
        first = last


def _match(
    tuples: Tuples,
    stream: int,
    candidates: Candidates,
    links: Sequence[int],
    wanted: Sequence[int],
) -> FittingRows:
    """The candidates whose hashes and times really match, with hashes of the wanted keys."""
    lows, highs = tuples.lows[stream], tuples.highs[stream]
    fresh = [k for k in wanted if k not in tuples.hashes]
    parts: list[FittingRows] = []
    base = 0
    for chunk, access, run in zip(
        candidates.chunks, candidates.accesses, candidates.runs, strict=True
    ):
        which, places = run.expand()
        if access.order is not None:
            places = access.order[places].astype(np.int64)
        for k in links:
            same = np.flatnonzero(chunk.hashes[k][places] == tuples.hashes[k][which])
            if len(same) < len(which):
                which, places = which[same], places[same]
        times = chunk.times[places]
        inside = np.flatnonzero((times >= lows[which]) & (times <= highs[which]))
        if len(inside) < len(which):
            which, places, times = which[inside], places[inside], times[inside]
        hashes = {k: chunk.hashes[k][places] for k in fresh}
        until = None if chunk.until is None else chunk.until[places]
        parts.append(FittingRows(which, places + base, times, hashes, until))
        base += len(chunk)
    return parts[0] if len(parts) == 1 else _concat(parts)


def _concat(parts: Sequence[FittingRows]) -> FittingRows:
    until = [part.until for part in parts if part.until is not None]
    return FittingRows(
        np.concatenate([part.which for part in parts]),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.times for part in parts]),
        {k: np.concatenate([part.hashes[k] for part in parts]) for k in parts[0].hashes},
        np.concatenate(until) if until else None,
    )


def _lengthen(
    tuples: Tuples, stream: int, matches: FittingRows, wanted: Sequence[int], bounds: Bounds
) -> Tuples:
    """Each tuple with each of its matches; periods of the streams still missing shrink."""
    which, times = matches.which, matches.times
    lows, highs = {}, {}
    for other in tuples.lows:
        if other != stream:
            lows[other] = np.maximum(tuples.lows[other][which], times - bounds[other][stream])
            highs[other] = np.minimum(tuples.highs[other][which], times + bounds[stream][other])
    known = {k: tuples.hashes[k][which] for k in wanted if k in tuples.hashes}
    latest = np.maximum(tuples.latest[which], times)
    until = _earlier(None if tuples.until is None else tuples.until[which], matches.until)
    longer = Tuples(
        {**{s: rows[which] for s, rows in tuples.rows.items()}, stream: matches.rows},
        known | matches.hashes,
        latest,
        lows,
        highs,
        until,
    )
    return longer if until is None else longer.only(latest < until)


def _earlier(left: Int64s | None, right: Int64s | None) -> Int64s | None:
    if left is None or right is None:
        return right if left is None else left
    return np.minimum(left, right)


def _refine(
    tuples: Tuples, before: frozenset[int], sides: Sequence[Side], rule: JoinRule
) -> Tuples:
    """The tuples whose newest member also has the same keys and passes every predicate."""
    newest = next(reversed(tuples.rows))
    for key in rule.links((newest,), before):
        if not rule.exact_hashes[key]:
            reference = min(before & rule.members[key])
            tuples = _compare_keys(tuples, key, (newest, reference), sides, rule)
    joined = frozenset(tuples.rows)
    for residual in rule.residuals:
        if len(tuples) and residual.streams <= joined and not residual.streams <= before:
            columns = pick(residual.columns, tuples, sides)
            tuples = tuples.only(residual.test(columns))
    return tuples


def _compare_keys(
    tuples: Tuples, key: int, streams: tuple[int, int], sides: Sequence[Side], rule: JoinRule
) -> Tuples:
    """The tuples whose rows of two streams have the same values of a key."""
    mine, theirs = ([(stream, c) for c in rule.keys[stream][key] or ()] for stream in streams)
    columns = pick((*mine, *theirs), tuples, sides)
    same = np.ones(len(tuples), dtype=np.bool_)
    for left, right in zip(columns[: len(mine)], columns[len(mine) :], strict=True):
        same &= equal_rows(left, right)
    return tuples if same.all() else tuples.only(same)


def pick(
    columns: Sequence[tuple[int, int]], tuples: Tuples, sides: Sequence[Side]
) -> list[pa.Array]:
    """The values of tuples at the given (stream, column) positions."""
    values: dict[tuple[int, int], pa.Array] = {}
    for stream in {stream for stream, _ in columns}:
        wanted = [column for s, column in columns if s == stream]
        picked = sides[stream].gatherer.columns(wanted, tuples.rows[stream])
        values.update({(stream, c): v for c, v in zip(wanted, picked, strict=True)})
    return [values[place] for place in columns]
