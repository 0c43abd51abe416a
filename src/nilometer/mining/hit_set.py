"""The hits of segments: which symbols they have at which steps, each distinct hit with a count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.mining.symbols import NOTHING

Codes = npt.NDArray[np.int16]
"""The codes of segments, one per row; negative where unknown or irrelevant."""


@dataclass
class HitSet:
    """Distinct hits, and how many segments have each of them, in a deterministic order."""

    hits: Codes
    counts: Int64s

    @classmethod
    def none(cls, period: int) -> HitSet:
        """An empty hit set for a period."""
        return cls(np.empty((0, period), np.int16), np.empty(0, np.int64))

    @classmethod
    def of(cls, segments: Codes) -> HitSet:
        """The hits of segments, where each segment counts once."""
        hits = cls(segments, np.ones(len(segments), np.int64))
        return cls.none(segments.shape[1]).joined(hits)

    def __len__(self) -> int:
        return len(self.counts)

    def joined(self, other: HitSet) -> HitSet:
        """The hits of both sets."""
        hits = np.concatenate([self.hits, other.hits])
        counts = np.concatenate([self.counts, other.counts])
        if not len(counts):
            return self
        distinct, places = np.unique(hits, axis=0, return_inverse=True)
        totals = np.bincount(places.ravel(), weights=counts, minlength=len(distinct))
        return HitSet(distinct, totals.astype(np.int64))

    def recoded(self, codes: Int64s) -> HitSet:
        """The same hits, where symbol i becomes codes[i]."""
        return HitSet(codes[self.hits].astype(np.int16), self.counts)

    def only(self, letters: Bools) -> HitSet:
        """The hits reduced to these letters, given by step and code."""
        # The additional column is for negative codes.
        wanted = np.pad(letters, ((0, 0), (0, 1)))
        keep = wanted[np.arange(len(letters)), np.maximum(self.hits, -1)]
        reduced = HitSet(np.where(keep, self.hits, np.int16(NOTHING)), self.counts)
        return HitSet.none(len(letters)).joined(reduced)

    def letters(self, symbols: int) -> Int64s:
        """How many segments have each symbol at each step."""
        counts = np.zeros((self.hits.shape[1], symbols), np.int64)
        rows, places = np.nonzero(self.hits >= 0)
        np.add.at(counts, (places, self.hits[rows, places]), self.counts[rows])
        return counts
