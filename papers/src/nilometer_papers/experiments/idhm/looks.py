"""The results of the operators for boxes, burst after burst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nilometer.mining.table_function import RowWorker
from nilometer_papers.idhm.boxes import Box
from nilometer_papers.idhm.classification import find_suspicions
from nilometer_papers.idhm.decision import MORE_DATA, SUSPECT, Limits
from nilometer_papers.idhm.knowledge import find_lines
from nilometer_papers.idhm.materials import Family
from nilometer_papers.idhm.spectrum_model import Spectra, burst_counts, expected_rates

BURST: Final = 8.0
"""Seconds of each burst."""
FULL: Final = 15
"""Bursts of a full exposure."""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Looks:
    """Boxes, with the suspicion and most significant line of each after some bursts."""

    boxes: Sequence[Box]
    exposures: npt.NDArray[np.float64]
    suspicion: npt.NDArray[np.float64]
    """A row for each exposure, a column for each box."""
    significance: npt.NDArray[np.float64]

    @cached_property
    def hazardous(self) -> Bools:
        """Which boxes contain something hazardous."""
        return np.array([box.family is not Family.NONE for box in self.boxes])

    def verdicts(self, limits: Limits) -> npt.NDArray[np.str_]:
        """The verdict on each box after each burst."""
        return limits.verdicts(self.suspicion, self.exposures[:, None], self.significance)

    def suspect_at(self, limits: Limits, place: int) -> Bools:
        """Which boxes would be suspect if there had to be a decision after one of the bursts."""
        suspect: Bools = self.suspicion[place] >= limits.at_last
        return suspect

    def decided(self, limits: Limits) -> tuple[Bools, npt.NDArray[np.float64]]:
        """The first decision on each box, whether it is suspect, and after how many seconds."""
        verdicts = self.verdicts(limits)
        first = (verdicts != MORE_DATA).argmax(axis=0)
        suspect = verdicts[first, np.arange(len(self.boxes))] == SUSPECT
        return suspect, self.exposures[first]


def accumulated(kind: str, boxes: Sequence[Box], bursts: Sequence[int], seed: int) -> list[Spectra]:
    """The counts of boxes after some numbers of bursts."""
    rates = expected_rates(boxes, kind)
    total = np.zeros_like(rates)
    totals: list[Spectra] = []
    for burst in range(1, max(bursts) + 1):
        total = total + burst_counts(rates, BURST, (seed, burst))
        if burst in bursts:
            totals.append(total)
    return totals


def look(
    kind: str,
    workers: Mapping[str, RowWorker],
    boxes: Sequence[Box],
    bursts: Sequence[int],
    seed: int,
) -> dict[str, Looks]:
    """The results of LINES, then CLASSIFY with several methods, after some numbers of bursts."""
    exposures = np.array(bursts) * BURST
    counts = accumulated(kind, boxes, bursts, seed)
    results = [find_lines(kind, one, live) for one, live in zip(counts, exposures, strict=True)]
    significance = np.stack([_numbers(one["significance"]) for one in results])
    return {
        method: Looks(
            boxes,
            exposures,
            np.stack([find_suspicions(worker, one["pattern"]) for one in results]),
            significance,
        )
        for method, worker in workers.items()
    }


def _numbers(column: pa.Array) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    return numbers
