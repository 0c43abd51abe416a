"""The W-join of N streams over columns: every new row finds its partners, none is found twice.

As in the papers (SSDBM section 3, TR-010 section 3.1) a partial tuple carries its period and
each further stream is looked up in that period only; here a whole column of partial tuples
takes each step at once, and no intermediate result is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s, UInt64s
from nilometer.kernels.chunk import Chunk
from nilometer.kernels.equality import equal_rows
from nilometer.kernels.gather import Gatherer
from nilometer.kernels.indexes import Probes, Runs

Bounds: TypeAlias = tuple[tuple[int, ...], ...]
"""time(j) - time(i) <= bounds[i][j]"""

MOST_CANDIDATES: Final = 1 << 20
"""How many candidates are looked at in one step: what bounds the memory of a join."""


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
    """A predicate on columns of several streams, asked as soon as all of them are joined."""

    columns: tuple[tuple[int, int], ...]
    """(stream, column) of each argument."""
    test: Callable[[Sequence[pa.Array]], Bools]

    @property
    def streams(self) -> frozenset[int]:
        return frozenset(stream for stream, _ in self.columns)


@dataclass(frozen=True, slots=True)
class JoinRule:
    """What makes rows of several streams one result."""

    bounds: Bounds
    """Closed bounds: time(j) - time(i) <= bounds[i][j]."""
    keys: tuple[tuple[int, ...], ...]
    """The key columns of each stream, in corresponding order; empty where there is no key."""
    exact_hashes: bool
    """Whether equal hashes mean equal keys."""
    residuals: tuple[Residual, ...] = ()


@dataclass(frozen=True)
class Tuples:
    """Partial results: rows of the streams joined so far, numbered across their chunks."""

    rows: dict[int, Int64s]
    hashes: UInt64s
    latest: Int64s
    """The largest time of each tuple."""
    lows: dict[int, Int64s]
    """For every stream still to be joined, the earliest time that fits each tuple."""
    highs: dict[int, Int64s]
    """And the latest."""

    def __len__(self) -> int:
        return len(self.latest)

    def only(self, chosen: Bools) -> Tuples:
        return Tuples(
            {s: rows[chosen] for s, rows in self.rows.items()},
            self.hashes[chosen] if len(self.hashes) else self.hashes,
            self.latest[chosen],
            {s: times[chosen] for s, times in self.lows.items()},
            {s: times[chosen] for s, times in self.highs.items()},
        )


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows of one stream that fit tuples: row rows[m] at times[m] fits tuple which[m]."""

    which: Int64s
    rows: Int64s
    times: Int64s


def join_new_rows(sides: Sequence[Side], rule: JoinRule) -> Iterator[Tuples]:
    """All results that contain at least one new row, in blocks; each result exactly once.

    A result is found from the new row of its lowest-numbered stream that has one: streams
    before that one contribute old rows only.
    """
    for first, side in enumerate(sides):
        if side.new is None:
            continue
        others = [j for j in range(len(sides)) if j != first]
        offered = {j: sides[j].old if j < first else sides[j].chunks for j in others}
        if not all(offered.values()):
            continue
        order = cheapest_order(first, offered, rule.bounds)
        start = _start(first, side, others, rule.bounds)
        start = _refine(start, frozenset(), sides, rule)
        yield from _extend(start, order, offered, sides, rule)


def _start(first: int, side: Side, others: Sequence[int], bounds: Bounds) -> Tuples:
    """The new rows of a stream as tuples of one."""
    assert side.new is not None
    base = sum(map(len, side.old))
    times = side.new.times
    return Tuples(
        {first: np.arange(base, base + len(times))},
        side.new.hashes,
        times,
        {j: times - bounds[j][first] for j in others},
        {j: times + bounds[first][j] for j in others},
    )


def cheapest_order(first: int, offered: dict[int, tuple[Chunk, ...]], bounds: Bounds) -> list[int]:
    """The other streams, those with the fewest rows in the window around a tuple first."""

    def expected(j: int) -> float:
        rows = sum(map(len, offered[j]))
        span = max(c.last for c in offered[j]) - min(c.first for c in offered[j]) + 1
        return rows * min(1.0, (bounds[first][j] + bounds[j][first] + 1) / span)

    return sorted(offered, key=expected)


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
    nearest, chunks = order[0], offered[order[0]]
    probes = Probes(tuples.hashes, tuples.lows[nearest], tuples.highs[nearest])
    runs = [chunk.index.find(probes) for chunk in chunks]
    for first, last in _blocks(runs, len(tuples)):
        matches = _match(tuples, nearest, chunks, [r.between(first, last) for r in runs])
        longer = _lengthen(tuples, nearest, matches, rule.bounds)
        longer = _refine(longer, frozenset(tuples.rows), sides, rule)
        yield from _extend(longer, order[1:], offered, sides, rule)


def _blocks(runs: Sequence[Runs], tuples: int) -> Iterator[tuple[int, int]]:
    """Ranges of tuples with not many more than MOST_CANDIDATES candidates each."""
    total = sum(r.total for r in runs)
    if total <= MOST_CANDIDATES:
        if total:
            yield 0, tuples
        return
    candidates = np.zeros(tuples, dtype=np.int64)
    for r in runs:
        candidates[r.probes] += r.counts
    seen = np.cumsum(candidates)
    first = 0
    while first < tuples:
        before = seen[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(seen, before + MOST_CANDIDATES, "right")))
        yield first, last
        first = last


def _match(tuples: Tuples, stream: int, chunks: Sequence[Chunk], runs: Sequence[Runs]) -> Matches:
    """The candidates whose hash and time are truly right."""
    lows, highs = tuples.lows[stream], tuples.highs[stream]
    parts: list[Matches] = []
    base = 0
    for chunk, run in zip(chunks, runs, strict=True):
        which, places = run.expand()
        same = np.flatnonzero(chunk.hashes[places] == tuples.hashes[which])
        if len(same) < len(which):
            which, places = which[same], places[same]
        times = chunk.times[places]
        inside = np.flatnonzero((times >= lows[which]) & (times <= highs[which]))
        if len(inside) < len(which):
            which, places, times = which[inside], places[inside], times[inside]
        parts.append(Matches(which, places + base, times))
        base += len(chunk)
    if len(parts) == 1:
        return parts[0]
    return Matches(
        np.concatenate([part.which for part in parts]),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.times for part in parts]),
    )


def _lengthen(tuples: Tuples, stream: int, matches: Matches, bounds: Bounds) -> Tuples:
    """Each tuple with each of its matches; periods of the streams still missing shrink."""
    which, times = matches.which, matches.times
    lows, highs = {}, {}
    for other in tuples.lows:
        if other != stream:
            lows[other] = np.maximum(tuples.lows[other][which], times - bounds[other][stream])
            highs[other] = np.minimum(tuples.highs[other][which], times + bounds[stream][other])
    return Tuples(
        {**{s: rows[which] for s, rows in tuples.rows.items()}, stream: matches.rows},
        tuples.hashes[which] if lows else tuples.hashes[:0],
        np.maximum(tuples.latest[which], times),
        lows,
        highs,
    )


def _refine(
    tuples: Tuples, before: frozenset[int], sides: Sequence[Side], rule: JoinRule
) -> Tuples:
    """The tuples whose newest member also has the same key and passes every predicate."""
    if before and not rule.exact_hashes and any(rule.keys):
        tuples = _compare_keys(tuples, min(before), sides, rule)
    joined = frozenset(tuples.rows)
    for residual in rule.residuals:
        if len(tuples) and residual.streams <= joined and not residual.streams <= before:
            columns = pick(residual.columns, tuples, sides)
            tuples = tuples.only(residual.test(columns))
    return tuples


def _compare_keys(tuples: Tuples, reference: int, sides: Sequence[Side], rule: JoinRule) -> Tuples:
    newest = next(reversed(tuples.rows))
    mine = [(newest, key) for key in rule.keys[newest]]
    theirs = [(reference, key) for key in rule.keys[reference]]
    columns = pick((*mine, *theirs), tuples, sides)
    same = np.ones(len(tuples), dtype=np.bool_)
    for left, right in zip(columns[: len(mine)], columns[len(mine) :], strict=True):
        same &= equal_rows(left, right)
    return tuples if same.all() else tuples.only(same)


def pick(
    columns: Sequence[tuple[int, int]], tuples: Tuples, sides: Sequence[Side]
) -> list[pa.Array]:
    """The values that tuples have in the given (stream, column) places."""
    values: dict[tuple[int, int], pa.Array] = {}
    for stream in {stream for stream, _ in columns}:
        wanted = [column for s, column in columns if s == stream]
        found = sides[stream].gatherer.columns(wanted, tuples.rows[stream])
        values.update({(stream, c): v for c, v in zip(wanted, found, strict=True)})
    return [values[place] for place in columns]
