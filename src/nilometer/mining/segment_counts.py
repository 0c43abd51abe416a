"""Counts of segments: of each symbol at each step, and of the distinct segments."""

from __future__ import annotations

from typing import Self

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.hit_set import Codes, HitSet
from nilometer.mining.symbols import NOTHING
from nilometer.mining.table_function import MiningError, Saved


class SegmentCounts:
    """Counts letters (a symbol at a step) exactly, and segments in a hit set of bounded size.

    If there are more than `limit` distinct segments, letters that are not frequent so far are
    removed from them; if that is not enough, the rarest are dropped. So a set of letters may be in
    more segments than the hit set says, by at most `lost` plus the `dropped` of each of its
    letters.
    """

    def __init__(self, period: int, confidence: float, limit: int) -> None:
        self.period, self.confidence, self.limit = period, confidence, limit
        self.segments = 0
        self.letters = np.zeros((period, 0), np.int64)
        self.dropped = np.zeros((period, 0), np.int64)
        self.lost = 0
        self._kept, self._fresh = HitSet.none(period), HitSet.none(period)
        # The hit set is trimmed after fixed numbers of segments: the same however they are batched.
        self._pace = max(1, limit // 4)

    @property
    def hits(self) -> HitSet:
        """The distinct segments."""
        return self._kept.joined(self._fresh)

    @property
    def exact(self) -> bool:
        """Whether nothing was lost."""
        return self.lost == 0 and not self.dropped.any()

    def frequent(self) -> int:
        """The least number of segments that have a frequent set of letters."""
        # A share such as 0.7 of 10 is 7, even if floating point makes it slightly more.
        return max(1, int(np.ceil(self.confidence * self.segments - 1e-9)))

    def add(self, rows: Codes, symbols: int) -> None:
        """Add the next segments; those in which nothing is known do not count."""
        known = rows[(rows != NOTHING).any(axis=1)]
        while len(known):
            part = known[: self._pace - self.segments % self._pace]
            known = known[len(part) :]
            hits = HitSet.of(part)
            self._count_letters(hits.letters(symbols))
            self._fresh = self._fresh.joined(hits)
            self.segments += len(part)
            if self.segments % self._pace == 0:
                self._settle()

    def remove(self, rows: Codes, symbols: int) -> None:
        """Remove segments that were added before."""
        if not self.exact:
            raise MiningError(
                "segments cannot be forgotten where some were lost",
                detail=f"there were more than {self.limit} different ones",
                hint="let it keep more: hits=…",
            )
        gone = HitSet.of(rows[(rows != NOTHING).any(axis=1)])
        left = self.hits.joined(HitSet(gone.hits, -gone.counts))
        if (left.counts < 0).any():
            raise MiningError("only segments that were added can be forgotten")
        self._kept = HitSet(left.hits[left.counts > 0], left.counts[left.counts > 0])
        self._fresh = HitSet.none(self.period)
        self._count_letters(-gone.letters(symbols))
        self.segments -= int(gone.counts.sum())

    def merge(self, other: SegmentCounts, codes: Int64s, symbols: int) -> None:
        """Add the segments of another, whose symbol i has the code codes[i]."""
        theirs = HitSet.none(self.period).joined(other.hits.recoded(codes))
        self._kept, self._fresh = self.hits.joined(theirs), HitSet.none(self.period)
        self._count_letters(_recoded(other.letters, codes, symbols))
        self.dropped = self.dropped + _recoded(other.dropped, codes, symbols)
        self.lost += other.lost
        self.segments += other.segments
        self._settle()

    def save(self) -> Saved:
        """What `load` needs."""
        return {
            "letters": self.letters,
            "dropped": self.dropped,
            "lost": self.lost,
            "segments": self.segments,
            "kept": self._kept.hits,
            "kept_counts": self._kept.counts,
            "fresh": self._fresh.hits,
            "fresh_counts": self._fresh.counts,
        }

    @classmethod
    def load(cls, period: int, confidence: float, limit: int, saved: Saved) -> Self:
        """Restore from a saved state, which can be reused."""
        restored = cls(period, confidence, limit)
        restored.letters, restored.dropped = saved["letters"], saved["dropped"]
        restored.lost, restored.segments = saved["lost"], saved["segments"]
        restored._kept = HitSet(saved["kept"], saved["kept_counts"])
        restored._fresh = HitSet(saved["fresh"], saved["fresh_counts"])
        return restored

    def _count_letters(self, counts: Int64s) -> None:
        self.letters = _wider(self.letters, counts.shape[1]) + counts
        self.dropped = _wider(self.dropped, counts.shape[1])

    def _settle(self) -> None:
        """Merge new hits, and enforce the bound."""
        self._kept, self._fresh = self.hits, HitSet.none(self.period)
        if len(self._kept) <= self.limit:
            return
        fewer = self._kept.only(self.letters >= self.frequent())
        symbols = self.letters.shape[1]
        self.dropped = self.dropped + self._kept.letters(symbols) - fewer.letters(symbols)
        if len(fewer) > self.limit:
            # Half of them, so that it is not needed again soon.
            staying = np.sort(np.argsort(-fewer.counts, kind="stable")[: max(1, self.limit // 2)])
            self.lost += int(fewer.counts.sum() - fewer.counts[staying].sum())
            fewer = HitSet(fewer.hits[staying], fewer.counts[staying])
        self._kept = fewer


def _wider(table: Int64s, columns: int) -> Int64s:
    return np.pad(table, ((0, 0), (0, columns - table.shape[1])))


def _recoded(table: Int64s, codes: Int64s, symbols: int) -> Int64s:
    own = codes[: table.shape[1]]
    recoded = np.zeros((len(table), symbols), np.int64)
    recoded[:, own[own >= 0]] = table[:, own >= 0]
    return recoded
