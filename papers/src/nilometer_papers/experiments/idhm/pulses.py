"""PERIODS and PATTERNS over counts of a box: is the source pulsed, and when is it on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Int64s
from nilometer.mining.partial_patterns import PartialPatterns
from nilometer.mining.periodicity import Periodicity
from nilometer.mining.symbols import Levels, quantile_breaks
from nilometer_papers.experiments.experiment import Row, Setting
from nilometer_papers.experiments.idhm.looks import BURST
from nilometer_papers.idhm.boxes import Packing, draw_boxes
from nilometer_papers.idhm.spectrum_model import background, expected_rates

PULSED: Final = "pulsed"
STEADY: Final = "steady"
OFF: Final = "off"
"""The source: a pulse in each period, or as many neutrons evenly, or none."""
NEAR: Final = 30
"""The distance of a detector from the box, in cm."""
DISTANCES: Final = (NEAR, 60, 100, 200, 300)
BURSTS: Final = (15, 30, 60, 120)
STEP: Final = 0.01
"""Seconds in which the events of a burst are counted together."""
PERIODS: Final = (5, 8, 12, 20)
"""In steps: a burst has at least forty of them."""
BURST_PERIOD: Final = 3
"""The source is on in one burst of so many, where only the rates of bursts are known."""
_ON: Final = 0.3
"""The share of a period in which a pulsed source is on."""
_CONFIDENCE: Final = 0.8
_SEED: Final = 6_000
"""To which the setting's seed is added."""


@dataclass(frozen=True)
class Series:
    """Counts in equal steps, one after the other, and what is true of the source."""

    counts: Int64s
    period: int
    on: tuple[int, ...]
    """The steps of a period in which the source is on; none unless it is pulsed."""


def pulse_rows(setting: Setting, kind: str) -> list[Row]:
    """How often each of both finds what is there, by distance and by the number of bursts."""
    tracked = setting.progress.track
    rows: list[Row] = []
    for distance in tracked(DISTANCES, "distances"):
        steps = round(BURST / STEP)
        rows += _rows(setting, kind, "distance", distance, steps)
    for bursts in tracked(BURSTS, "bursts"):
        rows += _rows(setting, kind, "bursts", bursts, bursts)
    return rows


def _rows(setting: Setting, kind: str, curve: str, at: int, steps: int) -> list[Row]:
    rows: list[Row] = []
    for source in (PULSED, STEADY, OFF):
        all_of_them = draw_series(setting, kind, curve, at, steps, source)
        judged = {
            "PERIODS": [judge_periods(one) for one in all_of_them],
            "PATTERNS": [judge_patterns(one) for one in all_of_them],
        }
        for way, outcomes in judged.items():
            right, shown = np.mean(outcomes, axis=0)
            rows.append(
                {
                    "part": "pulses",
                    "way": way,
                    "source": source,
                    "curve": curve,
                    "at": at,
                    "boxes": len(outcomes),
                    "right": round(float(right), 4),
                    "family": 0.0,
                    "shown": round(float(shown), 4),
                }
            )
    return rows


def draw_series(
    setting: Setting, kind: str, curve: str, at: int, steps: int, source: str
) -> list[Series]:
    """The counts of boxes, each with a period of its own; what the source adds may be pulsed."""
    boxes = draw_boxes(Packing(known=True), _SEED + setting.seed, 0, setting.choose(400, 100, 8))
    distance, step = (NEAR, BURST) if curve == "bursts" else (at, STEP)
    room = np.array([box.room for box in boxes]) * background(kind).sum()
    own = (expected_rates(boxes, kind).sum(axis=1) - room) * (NEAR / distance) ** 2
    made = []
    for number, (of_box, of_room) in enumerate(zip(own, room, strict=True)):
        dice = np.random.default_rng(
            (_SEED + setting.seed, number, steps, at, (PULSED, STEADY, OFF).index(source))
        )
        period = BURST_PERIOD if curve == "bursts" else int(dice.choice(PERIODS))
        on = _steps_on(period, dice) if source == PULSED else ()
        shape = np.full(period, float(source != OFF))
        if on:
            shape = np.isin(np.arange(period), on) * period / len(on)
        rates = of_box * np.resize(shape, steps) + of_room
        made.append(Series(dice.poisson(rates * step), period, on))
    return made


def _steps_on(period: int, dice: np.random.Generator) -> tuple[int, ...]:
    first = int(dice.integers(period))
    return tuple(sorted((first + step) % period for step in range(max(1, round(_ON * period)))))


def judge_periods(series: Series) -> tuple[bool, bool]:
    """Whether PERIODS says the true period first, and whether it says any, of the whole series."""
    mined = Periodicity(10 * max(PERIODS), _levels(series))
    mined.add(series.counts)
    whole = [one.period for one in mined.periods() if one.symbol is None]
    return bool(whole and series.on and whole[0] == series.period), bool(whole)


def judge_patterns(series: Series) -> tuple[bool, bool]:
    """Whether PATTERNS, told the period, shows when the source is on, and whether it shows any."""
    levels = _levels(series)
    mined = PartialPatterns(series.period, _CONFIDENCE, levels)
    mined.add(series.counts)
    patterns = mined.patterns()
    high = levels.names[-1]
    shown = [_places(one.symbols, high) for one in patterns]
    return bool(series.on) and series.on in shown, bool(patterns)


def _places(symbols: Sequence[str | None], wanted: str) -> tuple[int, ...]:
    return tuple(place for place, symbol in enumerate(symbols) if symbol == wanted)


def _levels(series: Series) -> Levels:
    """Low and high: below and above the median."""
    return Levels(quantile_breaks(series.counts.astype(np.float64), 2))
