"""The limits of decisions, chosen with boxes of trials whose contents are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nilometer_papers.experiments.idhm.looks import Looks
from nilometer_papers.idhm.decision import Limits

FALSE_ALARMS: Final = 0.008
"""The share of harmless trial boxes that may be suspect; lower than allowed in tests."""
_BY_HURRY: Final = 0.002
"""The share of boxes whose decision may become worse because it was made early."""
_SURE: Final = (0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.999, 1.01)
_CLEAR: Final = (0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 0.001, -0.01)


def choose_limits(looks: Looks) -> Limits:
    """The quickest limits with no more false alarms and misses than allowed."""
    limits = Limits(sure=_SURE[-1], clear=_CLEAR[-1], at_last=_at_last(looks))
    alarms, misses = _rates(looks, limits)
    for sure in _SURE:
        hurried = replace(limits, sure=sure)
        if _rates(looks, hurried)[0] <= alarms + _BY_HURRY:
            limits = hurried
            break
    early = [
        replace(limits, clear=clear, clear_exposure=float(exposure))
        for clear in _CLEAR
        for exposure in looks.exposures
    ]
    good = [one for one in early if _rates(looks, one)[1] <= misses + _BY_HURRY]
    return min(good, key=lambda one: float(looks.decided(one)[1].mean()), default=limits)


def _at_last(looks: Looks) -> float:
    """The lowest suspicion at full exposure that only so few harmless boxes reach."""
    harmless = np.sort(looks.suspicion[-1][~looks.hazardous])
    allowed = int(FALSE_ALARMS * len(harmless))
    above = harmless[len(harmless) - allowed - 1]
    higher = looks.suspicion[-1][looks.suspicion[-1] > above]
    return float(above + higher.min()) / 2 if len(higher) else 1.01


def _rates(looks: Looks, limits: Limits) -> tuple[float, float]:
    """Harmless boxes that are suspect, and hazardous ones that are not, as shares."""
    suspect, _ = looks.decided(limits)
    hazardous = looks.hazardous
    return float(suspect[~hazardous].mean()), float((~suspect[hazardous]).mean())
