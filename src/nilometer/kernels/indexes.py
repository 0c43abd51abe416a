"""Indexes of one chunk of rows: which rows may match a probe, found without looking at the rest.

All three answer the same question, for many probes at once: given a key's hash and a closed
period of time, which run of rows are candidates? Candidates are a superset of the matches
(filter); `kernels.window_join` checks them (refine), as TR-010 section 5 does for windows.

*hash*   rows ordered by hash of key, then time: a run is found by binary search.
*merge*  rows ordered by time: a run is the period; for joins without a key.
*nested* any order: every row is a candidate, as in the nested loops of the papers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from nilometer.kernels.arrays import Bools, Int32s, Int64s, UInt64s

_MOST_TIME_BITS: Final = 40
_SLOTS_PER_ROW: Final = 4
_LONG: Final = 2

NO_HASHES: Final = np.zeros(0, dtype=np.uint64)
"""The key of probes that ask for a time only."""


@dataclass(frozen=True, slots=True)
class Probes:
    """Probes of an index: hashes of keys, and the closed periods [lows, highs]."""

    hashes: UInt64s
    lows: Int64s
    highs: Int64s

    def __len__(self) -> int:
        return len(self.lows)

    def only(self, chosen: Int64s) -> Probes:
        return Probes(self.hashes[chosen], self.lows[chosen], self.highs[chosen])


@dataclass(frozen=True, slots=True)
class Runs:
    """Answers: the candidates of probe probes[r] are rows starts[r] … starts[r] + counts[r] - 1."""

    probes: Int64s
    starts: Int64s
    counts: Int64s

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def expand(self) -> tuple[Int64s, Int64s]:
        """Every pair (probe, candidate row)."""
        ends = np.cumsum(self.counts)
        first = np.repeat(self.starts - (ends - self.counts), self.counts)
        return np.repeat(self.probes, self.counts), first + np.arange(len(first))

    def between(self, first_probe: int, last_probe: int) -> Runs:
        """The answers to probes first_probe … last_probe-1."""
        a, b = np.searchsorted(self.probes, [first_probe, last_probe])
        return Runs(self.probes[a:b], self.starts[a:b], self.counts[a:b])


class Index(Protocol):
    """What the join needs of a chunk."""

    def find(self, probes: Probes) -> Runs:
        """The candidate rows of each probe that has any, probes ascending."""


@dataclass(frozen=True)
class KeyTimeIndex:
    """Rows ordered by one integer: the hash of the key above, the time since `origin` below.

    Times that need more bits than available lose their lowest ones (`shift`), keys lose the
    lowest bits of their hash: the order stays correct, with slightly more candidates. All times
    lie in the closed period [first, last].
    """

    origin: int
    first: int
    last: int
    time_bits: int
    shift: int
    sort_keys: Int64s

    @cached_property
    def slots(self) -> Int32s:
        """Where rows with the same leading hash bits begin: slot s ends where s+1 begins."""
        wanted = _log2(len(self.sort_keys)) + _log2(_SLOTS_PER_ROW)
        bits = min(wanted, 63 - self.time_bits)  # below that the sort keys hold times
        sizes = np.bincount(self.sort_keys >> (63 - bits), minlength=1 << bits)
        slots = np.zeros(len(sizes) + 1, dtype=np.int32)
        np.cumsum(sizes, out=slots[1:])
        return slots

    def find(self, probes: Probes) -> Runs:
        longest = int((probes.highs - probes.lows).max(initial=0))
        wanted = (probes.lows <= self.last) & (probes.highs >= self.first)
        if self.last - self.first > _LONG * longest:
            return self._search(np.flatnonzero(wanted), probes)
        return self._look_up(wanted, probes.hashes)

    def _look_up(self, wanted: Bools, hashes: UInt64s) -> Runs:
        """All rows with the probe's leading hash bits: fast, but ignores time."""
        slot = (hashes >> np.uint64(64 - _log2(len(self.slots)))).view(np.int64)
        starts = self.slots[slot]
        counts = self.slots[slot + 1] - starts
        wanted &= counts > 0
        chosen = np.flatnonzero(wanted)
        return Runs(chosen, starts[chosen].astype(np.int64), counts[chosen].astype(np.int64))

    def _search(self, chosen: Int64s, probes: Probes) -> Runs:
        """The rows of one key and period: pays off where a key has many rows."""
        if len(chosen) < len(probes):
            probes = probes.only(chosen)
        keys = (probes.hashes >> np.uint64(self.time_bits + 1)).view(np.int64) << self.time_bits
        starts = np.searchsorted(self.sort_keys, keys | self._since_origin(probes.lows), "left")
        ends = np.searchsorted(self.sort_keys, keys | self._since_origin(probes.highs), "right")
        return _nonempty(chosen, starts, ends - starts)

    def _since_origin(self, times: Int64s) -> Int64s:
        since = np.clip(times, self.first, self.last)
        since -= self.origin
        since >>= self.shift
        return since


@dataclass(frozen=True, slots=True)
class TimeIndex:
    """Rows ordered by time."""

    times: Int64s

    def find(self, probes: Probes) -> Runs:
        starts = np.searchsorted(self.times, probes.lows, "left")
        ends = np.searchsorted(self.times, probes.highs, "right")
        return _nonempty(np.arange(len(probes)), starts, ends - starts)


@dataclass(frozen=True, slots=True)
class NoIndex:
    """Rows in any order."""

    rows: int

    def find(self, probes: Probes) -> Runs:
        n = len(probes)
        return _nonempty(np.arange(n), np.zeros(n, np.int64), np.full(n, self.rows, np.int64))


def order_by_key_and_time(hashes: UInt64s, times: Int64s) -> tuple[KeyTimeIndex, Int64s]:
    """An index of these rows, and the order in which it needs them."""
    first, last = int(times.min()), int(times.max())
    bits = max(1, (last - first).bit_length())
    shift = max(0, bits - _MOST_TIME_BITS)
    bits -= shift
    sort_keys = (hashes >> np.uint64(bits + 1)).view(np.int64) << bits
    sort_keys |= (times - first) >> shift
    order = np.argsort(sort_keys)
    return KeyTimeIndex(first, first, last, bits, shift, sort_keys[order]), order


def _log2(n: int) -> int:
    return n.bit_length() - 1


def _nonempty(probe_ids: Int64s, starts: Int64s, counts: Int64s) -> Runs:
    nonempty = counts > 0
    if nonempty.all():
        return Runs(probe_ids, starts, counts)
    return Runs(probe_ids[nonempty], starts[nonempty], counts[nonempty])
