"""The material that MATCHES and CLASSIFY name: the most similar template, and the neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nilometer.mining.shape_matcher import ShapeMatcher
from nilometer.mining.table_function import RowWorker
from nilometer_papers.experiments.experiment import Row, Setting
from nilometer_papers.experiments.idhm.looks import BURST, FULL
from nilometer_papers.experiments.idhm.pulses import NEAR
from nilometer_papers.idhm import knowledge
from nilometer_papers.idhm.boxes import Box, Packing, draw_boxes
from nilometer_papers.idhm.classification import classifier, material_classifier
from nilometer_papers.idhm.detector import CHANNELS
from nilometer_papers.idhm.materials import MATERIALS, Family, Role
from nilometer_papers.idhm.shielding import NO_SHIELD
from nilometer_papers.idhm.spectrum_model import Spectra, background, expected_rates

CLASSIFY: Final = "CLASSIFY"
NET: Final = "MATCHES, background taken off"
RAW: Final = "MATCHES"
WAYS: Final = (CLASSIFY, NET, RAW)
NOTHING: Final = Family.NONE.value
"""The name of a box in which nothing hazardous is seen."""
SHIELDS: Final = ("10 mm steel", "10 mm lead", "40 mm plastic")
_EXPOSURES: Final = (round(BURST), round(4 * BURST), round(FULL * BURST))
_DISTANCES: Final = (60, 120)
_TOGETHER: Final = 4
"""Channels that are added: together they are narrower than what NaI resolves at 1 MeV."""
_ALL: Final = 2.0
"""The largest distance of two shapes is this times the root of their length."""
_SEED: Final = 4_000
"""To which the setting's seed is added."""


@dataclass(frozen=True)
class Point:
    """The conditions under which boxes are seen."""

    seconds: float = FULL * BURST
    distance: int = NEAR
    """Of the detector from the box, in cm; what comes from the room stays the same."""
    shield: str = NO_SHIELD


POINTS: Final[tuple[tuple[str, str | int, Point], ...]] = (
    *(("exposure", seconds, Point(seconds=seconds)) for seconds in _EXPOSURES),
    *(("distance", distance, Point(distance=distance)) for distance in (NEAR, *_DISTANCES)),
    *(("shielding", shield, Point(shield=shield)) for shield in (NO_SHIELD, *SHIELDS)),
)
"""Curve, place on it, and the conditions there."""


@dataclass(frozen=True)
class Namers:
    """What names a material, made from what is known: mixtures, or templates of each alone."""

    kind: str
    families: RowWorker
    materials: RowWorker
    names: Sequence[str]
    templates: Spectra

    def by_neighbours(self, counts: Spectra, seconds: float) -> list[str]:
        """LINES, then CLASSIFY by family and by material, as in pipeline.sql."""
        columns = {"pattern": knowledge.find_lines(self.kind, counts, seconds)["pattern"]}
        families, materials = (
            worker.look(columns).columns[0].to_pylist()
            for worker in (self.families, self.materials)
        )
        return [
            NOTHING if family == NOTHING else str(material)
            for family, material in zip(families, materials, strict=True)
        ]

    def by_similarity(self, rates: Spectra, room: Spectra) -> list[str]:
        """MATCHES with the spectrum of each material: the nearest names it."""
        distances = np.array([_distances(_coarse(one + room), rates) for one in self.templates])
        nearest = [self.names[place] for place in distances.argmin(axis=0)]
        return [NOTHING if MATERIALS[one].family is Family.NONE else one for one in nearest]


def _distances(shape: Spectra, spectra: Spectra) -> list[float]:
    """How far each spectrum is from the shape; rows without values keep them apart."""
    rows = _coarse(spectra)
    apart = np.full((len(rows), len(shape) // 2), np.nan)
    matcher = ShapeMatcher(shape, distance=_ALL * float(np.sqrt(len(shape))))
    return [one.distance for one in matcher.add(np.concatenate([rows, apart], axis=1).ravel())]


def _coarse(spectra: Spectra) -> Spectra:
    """Spectra of fewer and wider channels."""
    wide: Spectra = spectra.reshape(*spectra.shape[:-1], CHANNELS // _TOGETHER, _TOGETHER).sum(-1)
    return wide


def named_rows(setting: Setting, kind: str) -> list[Row]:
    """How often each way names the right material, and how often one that is not there."""
    namers = make_namers(kind, setting.choose(4000, 1000, 60))
    count = setting.choose(400, 100, 8)
    boxes = [
        draw_boxes(Packing(known=True, hazardous=share), _SEED + setting.seed, 0, count)
        for share in (1.0, 0.0)
    ]
    named = {
        point: [name_all(namers, some, point, _SEED + setting.seed) for some in boxes]
        for point in setting.progress.track(list({point for *_, point in POINTS}), "conditions")
    }
    return [
        _row(way, curve, at, boxes[0], *(names[way] for names in named[point]))
        for curve, at, point in POINTS
        for way in WAYS
    ]


def _row(
    way: str,
    curve: str,
    at: str | int,
    boxes: Sequence[Box],
    hazardous: Sequence[str],
    harmless: Sequence[str],
) -> Row:
    pairs = [(box.hazard, name) for box, name in zip(boxes, hazardous, strict=True)]
    right = [hazard is not None and hazard.name == name for hazard, name in pairs]
    family = [
        hazard is not None and name != NOTHING and MATERIALS[name].family is hazard.family
        for hazard, name in pairs
    ]
    return {
        "part": "names",
        "way": way,
        "source": "",
        "curve": curve,
        "at": at,
        "boxes": len(boxes),
        "right": round(float(np.mean(right)), 4),
        "family": round(float(np.mean(family)), 4),
        "shown": round(float(np.mean([name != NOTHING for name in harmless])), 4),
    }


def make_namers(kind: str, known_boxes: int) -> Namers:
    """Both ways, from a knowledge base of so many boxes and from a kilogram of each material."""
    known = knowledge.rows(kind, known_boxes)
    names = [one.name for one in MATERIALS.values() if one.role is Role.KNOWN]
    alone = [Box(0, ((name, 1.0),)) for name in names]
    return Namers(
        kind,
        classifier("neighbours", known),
        material_classifier(known),
        names,
        expected_rates(alone, kind) - background(kind),
    )


def name_all(namers: Namers, boxes: Sequence[Box], point: Point, seed: int) -> dict[str, list[str]]:
    """The names that each way gives to boxes."""
    room = background(namers.kind)
    counts = _counts(namers.kind, boxes, point, seed)
    rates = counts / point.seconds
    return {
        CLASSIFY: namers.by_neighbours(counts, point.seconds),
        NET: namers.by_similarity(rates - room, np.zeros_like(room)),
        RAW: namers.by_similarity(rates, room),
    }


def _counts(kind: str, boxes: Sequence[Box], point: Point, seed: int) -> Spectra:
    seen = [replace(box, shield=point.shield) for box in boxes]
    room = np.array([box.room for box in seen])[:, None] * background(kind)
    own = (expected_rates(seen, kind) - room) * (NEAR / point.distance) ** 2
    dice = np.random.default_rng((seed, round(point.seconds), point.distance))
    return dice.poisson((own + room) * point.seconds).astype(np.float64)
