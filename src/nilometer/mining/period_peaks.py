"""Which lags are periods: peaks of the share of symbols that recur, corrected for chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.lagged_pairs import LaggedPairs
from nilometer.mining.table_function import Numbers

_BY_CHANCE: Final = 0.01
"""The accepted probability that any lag of a random series looks as good."""
_OFF: Final = 0.02
"""Lags that differ by this share are one period; a multiple may also be off by this share,"""
_OFF_BASE: Final = 0.05
"""if that is no more than this share of the base period."""
_AROUND: Final = 0.03
"""The centre of a broad peak lies within this share of the lag from its highest point,"""
_BLUR: Final = 0.02
"""and is searched for in scores averaged over this share of the lag on both sides."""
_MULTIPLES: Final = 5
"""So many multiples of a lag help to find the centre: later ones are too weak."""
_BROAD: Final = 0.8
"""The score at the centre of a broad peak is at least this share of its maximum."""
_SHARP: Final = 4.0
"""A peak is sharp if it is so many standard deviations above the mean of its surroundings."""


@dataclass(frozen=True)
class Period:
    """A period of a symbol, or of the whole series if `symbol` is None."""

    period: int
    symbol: str | None
    matches: int
    """How many samples have the symbol again one period later."""
    confidence: float
    """The share of matches in samples that have the symbol and are known one period later."""
    chance: float
    """The share expected of the same symbols in random order."""
    score: float
    """(confidence - chance) / (1 - chance): 1 is a perfect period, 0 is pure chance."""
    prominence: float
    """How far the score stands out from the lags around it."""
    multiple_of: int | None = None
    """The shorter period of the same symbol of which this one is a multiple."""
    phase: int | None = None
    """The step within the period at which the symbol is most reliable, if known."""
    phase_confidence: float | None = None
    """The share among samples at the phase: the confidence as the paper defines it."""


@dataclass(frozen=True)
class Lags:
    """The counts for a symbol, or for the whole series, at each lag from 0."""

    symbol: str | None
    matches: Int64s
    begins: Int64s
    chance: float

    @property
    def confidences(self) -> Numbers:
        """The share of matches; that of chance if nothing was counted."""
        share = np.full(len(self.matches), self.chance)
        np.divide(self.matches, self.begins, out=share, where=self.begins > 0)
        share[0] = 1.0
        return share


def lags_of(
    pairs: LaggedPairs, counts: Int64s, known: int, names: Sequence[str], longest: int
) -> list[Lags]:
    """The lags of the whole series and of each symbol that can have periods."""
    shares = counts / max(known, 1)
    upto = longest + 2
    matches, begins = pairs.matches[:, :upto], pairs.begins[:, :upto]
    whole = Lags(None, matches.sum(axis=0), pairs.known[:upto], float(np.sum(shares**2)))
    single = [
        Lags(names[code], matches[code], begins[code], float(shares[code]))
        for code in range(len(counts))
    ]
    return [one for one in (whole, *single) if 0.0 < one.chance < 1.0]


def find_periods(lags: Lags, most: int, least: float) -> list[Period]:
    """The periods at the peaks of the score; multiples of others come last."""
    from scipy.signal import find_peaks  # noqa: PLC0415  slow to load, and an extra
    from scipy.special import betainc  # noqa: PLC0415  slow to load, and an extra

    confidences = lags.confidences
    scores = (confidences - lags.chance) / (1.0 - lags.chance)
    peaks, properties = find_peaks(scores, prominence=least)
    peaks, prominences = peaks[scores[peaks] > 0], properties["prominences"][scores[peaks] > 0]
    matches = lags.matches[peaks]
    likely = betainc(matches, lags.begins[peaks] - matches + 1, lags.chance) * len(scores)
    periods = [
        _period(lags, int(lag), scores, float(prominence))
        for lag, prominence in zip(
            peaks[likely < _BY_CHANCE], prominences[likely < _BY_CHANCE], strict=True
        )
    ]
    settled = [
        _period(lags, _settle(one.period, scores), scores, one.prominence)
        for one in _thinned(periods)
    ]
    return best_first(_with_multiples(settled))[:most]


def _period(lags: Lags, lag: int, scores: Numbers, prominence: float) -> Period:
    return Period(
        period=lag,
        symbol=lags.symbol,
        matches=int(lags.matches[lag]),
        confidence=float(lags.confidences[lag]),
        chance=lags.chance,
        score=float(scores[lag]),
        prominence=prominence,
    )


def _settle(lag: int, scores: Numbers) -> int:
    """Refine the period near a peak of the score, by the scores around it and at its multiples.

    Daily habits do not recur to the minute: the score has a broad peak, whose maximum can be
    anywhere near its centre. The centre is found from averages of neighbours, and k times as
    precisely at the k-th multiple. A sharp peak stays where it is.
    """
    off = int(_AROUND * lag)
    if off == 0:
        return lag
    near = np.arange(lag - off, min(lag + off + 1, len(scores)))
    blurred = _blur(scores, int(_BLUR * lag))
    around = scores[near] - blurred[near]
    if scores[lag] - blurred[lag] > _SHARP * float(np.std(around[near != lag])):
        return lag
    total = blurred[near]
    for times in range(2, min(_MULTIPLES, (len(scores) - 1) // int(near[-1])) + 1):
        total = total + _blur(scores, int(_BLUR * times * lag))[times * near]
    settled = int(near[np.argmax(total)])
    return settled if scores[settled] > _BROAD * scores[lag] else lag


def _blur(scores: Numbers, width: int) -> Numbers:
    """Averages over neighbours, with weights that fall with distance."""
    weights = np.bartlett(2 * width + 3)
    padded = np.pad(scores, width + 1, mode="edge")
    blurred: Numbers = np.convolve(padded, weights / weights.sum(), mode="valid")
    return blurred


def best_first(periods: Sequence[Period]) -> list[Period]:
    """Periods by prominence, multiples last."""

    def rank(one: Period) -> tuple[bool, float, bool, int, str]:
        whole = one.symbol is None
        return one.multiple_of is not None, -one.prominence, not whole, one.period, one.symbol or ""

    return sorted(periods, key=rank)


def _thinned(periods: Sequence[Period]) -> list[Period]:
    """The periods, in ascending order, without those close to a more prominent one."""
    kept: list[Period] = []
    for one in best_first(periods):
        if all(abs(one.period - other.period) > _OFF * one.period for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda one: one.period)


def _with_multiples(periods: Sequence[Period]) -> list[Period]:
    """The periods, in ascending order, each with the one it is a multiple of."""
    linked: list[Period] = []
    for one in periods:
        bases = [base.period for base in linked if _is_multiple(one, base)]
        linked.append(replace(one, multiple_of=bases[0]) if bases else one)
    return linked


def _is_multiple(one: Period, base: Period) -> bool:
    """Whether a period repeats a shorter one that is at least half as prominent."""
    times = round(one.period / base.period)
    off = abs(one.period - times * base.period)
    near = off <= min(_OFF * one.period, _OFF_BASE * base.period)
    alone = base.multiple_of is None
    return alone and times >= 2 and near and 2 * base.prominence >= one.prominence
