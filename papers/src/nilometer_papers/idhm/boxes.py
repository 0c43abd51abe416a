"""Boxes on the belt: some harmless things in each, in some a hazardous one, in some a shield."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from nilometer_papers.idhm.elements import ELEMENTS
from nilometer_papers.idhm.materials import (
    MATERIALS,
    Family,
    Material,
    Role,
    moles_per_kilogram,
    of_family,
)
from nilometer_papers.idhm.shielding import LIGHT_SHIELDS, NO_SHIELD, find_shield

_PLACES: Final = {name: place for place, name in enumerate(MATERIALS)}
_HAZARDOUS: Final = (Family.EXPLOSIVE, Family.AGENT, Family.NARCOTIC)
_THINGS: Final = (1, 4)
_LIGHTEST: Final = 0.05
_HAZARD_KG: Final = (0.3, 3.0)
_MODERATION_VARIES: Final = 0.05
_ROOM_VARIES: Final = 0.03


@dataclass(frozen=True)
class Box:
    """The contents of a box, and the conditions that differ from box to box."""

    number: int
    contents: tuple[tuple[str, float], ...]
    """Names of materials, and the kilograms of each."""
    shield: str = NO_SHIELD
    """The name of its shield, for find_shield."""
    moderation: float = 1.0
    """Thermal neutrons in it, relative to those in a usual box."""
    room: float = 1.0
    """The background while it is exposed, relative to the known background."""

    @property
    def hazard(self) -> Material | None:
        """The hazardous material in it."""
        materials = [MATERIALS[name] for name, _ in self.contents]
        return next((one for one in materials if one.family is not Family.NONE), None)

    @property
    def family(self) -> Family:
        """The class of the box."""
        return Family.NONE if self.hazard is None else self.hazard.family


@dataclass(frozen=True)
class Packing:
    """The materials from which boxes are packed."""

    known: bool
    """Of the materials of the knowledge base alone, or with new ones: one harmless thing in each
    box, and whatever is hazardous, the knowledge base has never seen."""
    hazardous: float = 0.5
    """The share of boxes that contain something hazardous."""
    shields: tuple[str, ...] = LIGHT_SHIELDS
    trial: bool = False
    """New are those of trials, with which limits are chosen, in place of those of tests."""
    heaviest: float = 0.3
    """The greatest mass of a harmless thing in the beam's view, in kg."""

    @property
    def role(self) -> Role:
        """The role of the materials that decide."""
        if self.known:
            return Role.KNOWN
        return Role.TRIAL if self.trial else Role.NEW


def draw_boxes(packing: Packing, seed: int, first: int, count: int) -> list[Box]:
    """The boxes of some numbers; box 7 of a seed is the same whichever others are drawn.

    >>> draw_boxes(Packing(known=True), 1, 7, 1) == draw_boxes(Packing(known=True), 1, 0, 9)[7:8]
    True
    """
    return [_draw(packing, seed, number) for number in range(first, first + count)]


def _draw(packing: Packing, seed: int, number: int) -> Box:
    dice = np.random.default_rng((seed, number))
    contents = _harmless_things(packing, dice)
    if dice.random() < packing.hazardous:
        family = _HAZARDOUS[dice.integers(len(_HAZARDOUS))]
        choice = of_family(family, packing.role)
        hazard = choice[dice.integers(len(choice))]
        contents.append((hazard.name, float(dice.uniform(*_HAZARD_KG))))
    return Box(
        number,
        tuple(contents),
        packing.shields[dice.integers(len(packing.shields))],
        float(np.exp(dice.normal(0, _MODERATION_VARIES))),
        float(np.exp(dice.normal(0, _ROOM_VARIES))),
    )


def _harmless_things(packing: Packing, dice: np.random.Generator) -> list[tuple[str, float]]:
    """One to four, no two alike; the first is of the unknown ones where that is asked for."""
    known = of_family(Family.NONE, Role.KNOWN)
    count = int(dice.integers(_THINGS[0], _THINGS[1] + 1))
    chosen = [known[place] for place in dice.permutation(len(known))[:count]]
    if not packing.known:
        unknown = of_family(Family.NONE, packing.role)
        chosen[0] = unknown[dice.integers(len(unknown))]
    return [(thing.name, float(dice.uniform(_LIGHTEST, packing.heaviest))) for thing in chosen]


def moles(boxes: Sequence[Box]) -> npt.NDArray[np.float64]:
    """A row for each box: how many moles of each of ELEMENTS its contents have."""
    masses = np.zeros((len(boxes), len(MATERIALS)))
    for row, box in enumerate(boxes):
        for name, kilograms in box.contents:
            masses[row, _PLACES[name]] += kilograms
    amounts: npt.NDArray[np.float64] = masses @ moles_per_kilogram()
    return amounts


def shield_moles(boxes: Sequence[Box]) -> npt.NDArray[np.float64]:
    """A row for each box: how many moles of each of ELEMENTS its shield has."""
    amounts = np.zeros((len(boxes), len(ELEMENTS)))
    for row, box in enumerate(boxes):
        shield = find_shield(box.shield)
        if shield.stuff is not None and shield.stuff.material is not None:
            of_a_kilogram = moles_per_kilogram()[_PLACES[shield.stuff.material]]
            amounts[row] = shield.kilograms() * of_a_kilogram
    return amounts
