"""The W-join of N streams over columns: every new row finds its partners, none is found twice.

As in the papers (SSDBM section 3, TR-010 section 3.1) a partial tuple carries its period and
each further stream is looked up in that period only; here a whole column of partial tuples
takes each step at once, and no intermediate result is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.chunk import Chunk
from nilometer.kernels.equality import equal_rows
from nilometer.kernels.gather import Gatherer
from nilometer.kernels.indexes import Probes, Runs
from nilometer.kernels.key_codes import mix

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

    bounds: tuple[tuple[int, ...], ...]
    """Closed bounds: time(j) - time(i) <= bounds[i][j]."""
    keys: tuple[tuple[int, ...], ...]
    """The key columns of each stream, in corresponding order; empty where there is no key."""
    exact_codes: bool
    """Whether equal codes mean equal keys."""
    residuals: tuple[Residual, ...] = ()


@dataclass(frozen=True)
class Tuples:
    """Partial results: for each stream joined so far its rows (numbered across chunks)."""

    rows: dict[int, Int64s]
    times: dict[int, Int64s]
    codes: Int64s

    def __len__(self) -> int:
        return len(self.codes)

    def only(self, chosen: Int64s | Bools | slice) -> Tuples:
        return Tuples(
            {s: rows[chosen] for s, rows in self.rows.items()},
            {s: times[chosen] for s, times in self.times.items()},
            self.codes[chosen],
        )


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
        base = sum(map(len, side.old))
        rows = np.arange(base, base + len(side.new))
        start = Tuples({first: rows}, {first: side.new.times}, side.new.codes)
        start = _refine(start, frozenset(), sides, rule)
        yield from _extend(start, order, offered, sides, rule)


def cheapest_order(
    first: int, offered: dict[int, tuple[Chunk, ...]], bounds: tuple[tuple[int, ...], ...]
) -> list[int]:
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
    probes = _periods(tuples, nearest, rule.bounds)
    runs = [chunk.index.find(probes) for chunk in chunks]
    for first, last in _blocks(runs, len(tuples)):
        longer = _pair(tuples, nearest, chunks, [r.between(first, last) for r in runs], probes)
        longer = _refine(longer, frozenset(tuples.rows), sides, rule)
        yield from _extend(longer, order[1:], offered, sides, rule)


def _periods(tuples: Tuples, stream: int, bounds: tuple[tuple[int, ...], ...]) -> Probes:
    """When a row of the stream has to lie to join each tuple."""
    lows = highs = None
    for joined, times in tuples.times.items():
        low, high = times - bounds[stream][joined], times + bounds[joined][stream]
        lows = low if lows is None else np.maximum(lows, low)
        highs = high if highs is None else np.minimum(highs, high)
    assert lows is not None and highs is not None
    return Probes(mix(tuples.codes), lows, highs)


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


def _pair(
    tuples: Tuples, stream: int, chunks: Sequence[Chunk], runs: Sequence[Runs], probes: Probes
) -> Tuples:
    """Each tuple with each of its candidates whose code and time are truly right."""
    parts: list[tuple[Int64s, Int64s, Int64s]] = []
    base = 0
    for chunk, run in zip(chunks, runs, strict=True):
        which, places = run.expand()
        same = np.flatnonzero(chunk.codes[places] == tuples.codes[which])
        which, places = which[same], places[same]
        times = chunk.times[places]
        inside = np.flatnonzero((times >= probes.lows[which]) & (times <= probes.highs[which]))
        parts.append((which[inside], places[inside] + base, times[inside]))
        base += len(chunk)
    which, rows, times = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    longer = tuples.only(which)
    return Tuples({**longer.rows, stream: rows}, {**longer.times, stream: times}, longer.codes)


def _refine(
    tuples: Tuples, before: frozenset[int], sides: Sequence[Side], rule: JoinRule
) -> Tuples:
    """The tuples whose newest member also has the same key and passes every predicate."""
    if before and not rule.exact_codes and any(rule.keys):
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
