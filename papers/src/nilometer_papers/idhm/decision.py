"""After each burst: is the box safe, is it suspect, or is more data needed?

The same rule is written twice: in SQL, for the query of the application, and over arrays, for
experiments. It sees the columns of CLASSIFY (class, confidence, second, second_confidence) whose
classes are families, the significance that LINES gives, and the exposure in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from nilometer_papers.idhm.knowledge import FULL_EXPOSURE
from nilometer_papers.idhm.materials import Family

SAFE: Final = "safe"
SUSPECT: Final = "suspect"
MORE_DATA: Final = "more data"

SUSPICION: Final = f"""\
CASE WHEN class = '{Family.NONE}' THEN 1 - confidence
     WHEN second = '{Family.NONE}' THEN 1 - second_confidence
     WHEN second IS NULL THEN confidence
     ELSE confidence + second_confidence END"""
"""The likelihood that the box contains something hazardous, in SQL."""


@dataclass(frozen=True)
class Limits:
    """The limits of decisions. Chosen with boxes of trials, never with those of tests."""

    sure: float = 0.99
    """A box at least as suspicious is suspect before the exposure is full."""
    clear: float = 0.01
    """A box at most as suspicious is safe before the exposure is full."""
    at_last: float = 0.5
    """Boxes at least as suspicious are suspect when the exposure is full; all others are safe."""
    least_exposure: float = 8.0
    """No decision is made before this exposure, in seconds."""
    clear_exposure: float = 8.0
    """No box is safe before this exposure, in seconds: weak lines are not visible at once."""
    full_exposure: float = FULL_EXPOSURE
    least_significance: float = 5.0
    """The minimum of the most significant element, in sigmas: a suspicion needs visible lines."""

    def sql(self, suspicion: str = "suspicion") -> str:
        """The verdict in SQL, over the columns suspicion, exposure and significance."""
        return f"""\
CASE WHEN {suspicion} IS NULL OR exposure < {self.least_exposure} THEN '{MORE_DATA}'
     WHEN {suspicion} >= {self.sure} AND significance >= {self.least_significance} THEN '{SUSPECT}'
     WHEN {suspicion} <= {self.clear} AND exposure >= {self.clear_exposure} THEN '{SAFE}'
     WHEN exposure < {self.full_exposure} THEN '{MORE_DATA}'
     WHEN {suspicion} >= {self.at_last} THEN '{SUSPECT}'
     ELSE '{SAFE}' END"""

    def verdicts(
        self,
        suspicion: npt.NDArray[np.float64],
        exposure: npt.ArrayLike,
        significance: npt.NDArray[np.float64],
    ) -> npt.NDArray[np.str_]:
        """The verdicts on arrays; an unknown suspicion is NaN."""
        seconds = np.asarray(exposure, np.float64)
        cases = (
            (np.isnan(suspicion) | (seconds < self.least_exposure), MORE_DATA),
            ((suspicion >= self.sure) & (significance >= self.least_significance), SUSPECT),
            ((suspicion <= self.clear) & (seconds >= self.clear_exposure), SAFE),
            (seconds < self.full_exposure, MORE_DATA),
            (suspicion >= self.at_last, SUSPECT),
        )
        verdicts: npt.NDArray[np.str_] = np.select(
            [condition for condition, _ in cases], [verdict for _, verdict in cases], SAFE
        )
        return verdicts


def suspicions(
    first: npt.NDArray[np.object_],
    confidence: npt.NDArray[np.float64],
    second: npt.NDArray[np.object_],
    second_confidence: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """SUSPICION on arrays: the likelihood that each box contains something hazardous."""
    none = Family.NONE.value
    alone = np.array([one is None for one in second], dtype=np.bool_)
    likelihoods: npt.NDArray[np.float64] = np.select(
        [first == none, second == none, alone],
        [1 - confidence, 1 - second_confidence, confidence],
        confidence + second_confidence,
    )
    return likelihoods
