"""Measurements of boxes, as rows of the CSV file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nilometer.mining.table_function import RowWorker
from nilometer_papers.experiments.experiment import Row
from nilometer_papers.experiments.idhm.looks import Bools, Looks
from nilometer_papers.idhm.decision import MORE_DATA, Limits
from nilometer_papers.idhm.materials import Family


@dataclass(frozen=True)
class Judged:
    """Detectors of a kind, classifiers trained on their spectra, and the limits of decisions."""

    kind: str
    workers: Mapping[str, RowWorker]
    limits: Mapping[str, Limits]


def rate_row(
    judged: Judged,
    method: str,
    looks: Looks,
    curve: str,
    at: str,
    suspect: Bools,
    seconds: float = 0.0,
    decided: float = 1.0,
    among: Bools | None = None,
) -> Row:
    """The share of hazardous and of harmless boxes that are suspect, among some of them."""
    chosen = np.ones(len(looks.boxes), np.bool_) if among is None else among
    hazardous, harmless = chosen & looks.hazardous, chosen & ~looks.hazardous
    return {
        "curve": curve,
        "at": at,
        "detector": judged.kind,
        "classifier": method,
        "hazardous": int(hazardous.sum()),
        "harmless": int(harmless.sum()),
        "detected": _share(suspect, hazardous),
        "false_alarms": _share(suspect, harmless),
        "decided": round(decided, 4),
        "seconds": round(seconds, 2),
    }


def _share(suspect: Bools, among: Bools) -> float:
    return round(float(suspect[among].mean()), 4) if among.any() else 0.0


def by_burst(judged: Judged, method: str, looks: Looks) -> Iterator[Row]:
    """The quality of a forced decision after each burst, and the decisions as they are made."""
    limits = judged.limits[method]
    verdicts = looks.verdicts(limits)
    open_yet = np.logical_and.accumulate(verdicts == MORE_DATA, axis=0)
    for place, exposure in enumerate(looks.exposures):
        suspect = looks.suspect_at(limits, place)
        share = float(1 - open_yet[place].mean())
        yield rate_row(
            judged, method, looks, "exposure", f"{exposure:g} s", suspect, exposure, share
        )
    suspect, seconds = looks.decided(limits)
    yield rate_row(judged, method, looks, "decisions", "all", suspect, float(seconds.mean()))


def by_contents(judged: Judged, method: str, looks: Looks) -> Iterator[Row]:
    """The decisions as they are made, by family, by hazardous material, and by shield."""
    suspect, seconds = looks.decided(judged.limits[method])
    groups = {
        "family": [box.family.value for box in looks.boxes],
        "material": ["" if box.hazard is None else box.hazard.name for box in looks.boxes],
        "shield": [box.shield for box in looks.boxes],
        "with": [
            "" if box.family is not Family.NONE else box.contents[0][0] for box in looks.boxes
        ],
    }
    for curve, names in groups.items():
        for name in sorted(set(names) - {""}):
            among = np.array(names) == name
            mean = float(seconds[among].mean())
            yield rate_row(judged, method, looks, curve, name, suspect, mean, among=among)
