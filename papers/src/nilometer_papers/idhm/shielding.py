"""Shields around the content of a box: they absorb gammas and neutrons, and emit lines themselves.

Mass attenuation coefficients are tabulated values, rounded, interpolated linearly in the
logarithm of the energy; neutrons are lost by removal cross sections of fast neutrons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

_ENERGIES: Final = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0)


@dataclass(frozen=True)
class Stuff:
    """The material of a shield."""

    density: float
    """In g/cm³."""
    attenuation: tuple[float, ...]
    """In cm²/g, at _ENERGIES."""
    removal: float
    """For neutrons, in 1/cm."""
    material: str | None
    """The material whose lines it shows; None: it has no lines here."""


STUFFS: Final[Mapping[str, Stuff]] = {
    "steel": Stuff(
        7.87, (0.0840, 0.0599, 0.0426, 0.0331, 0.0306, 0.0299, 0.0299, 0.0303), 0.168, "steel"
    ),
    "lead": Stuff(
        11.35, (0.161, 0.0710, 0.0460, 0.0420, 0.0439, 0.0467, 0.0497, 0.0523), 0.118, None
    ),
    "plastic": Stuff(
        0.94,
        (0.0994, 0.0726, 0.0506, 0.0344, 0.0278, 0.0243, 0.0219, 0.0203),
        0.118,
        "polyethylene",
    ),
}
NO_SHIELD: Final = "none"
LIGHT_SHIELDS: Final = (NO_SHIELD, "1 mm steel", "1 mm lead", "2 mm plastic")

_SEEN_AREA: Final = 2000.0
"""The layer's area, in cm²: as much of it as neutrons hit and the detector sees."""
_CARBON_LINE: Final = 4.44


@dataclass(frozen=True)
class Shield:
    """A layer of this many centimetres between the content of a box and its wall.

    >>> find_shield("20 mm steel").heavy, find_shield("1 mm lead").heavy
    (True, False)
    """

    stuff: Stuff | None
    centimetres: float

    def gammas_left(self, energies: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The fraction of the gammas of each energy (MeV) that passes."""
        wanted = np.asarray(energies, dtype=np.float64)
        if self.stuff is None:
            return np.ones(wanted.shape)
        per_gram = np.interp(np.log(wanted), np.log(_ENERGIES), self.stuff.attenuation)
        passed: npt.NDArray[np.float64] = np.exp(-per_gram * self.stuff.density * self.centimetres)
        return passed

    def neutrons_left(self) -> float:
        """The fraction of the neutrons that comes in."""
        return 1.0 if self.stuff is None else float(np.exp(-self.stuff.removal * self.centimetres))

    def kilograms(self) -> float:
        """The mass of the part that the detector sees."""
        if self.stuff is None:
            return 0.0
        return _SEEN_AREA * self.centimetres * self.stuff.density / 1000.0

    @property
    def heavy(self) -> bool:
        """Whether the line of carbon keeps less than half of its strength without the shield."""
        return bool(self.neutrons_left() * self.gammas_left([_CARBON_LINE])[0] < 0.5)


@cache
def find_shield(name: str) -> Shield:
    """The shield with a name like 20 mm steel; none is no shield."""
    if name == NO_SHIELD:
        return Shield(None, 0.0)
    millimetres, _, stuff = name.split(" ")
    return Shield(STUFFS[stuff], float(millimetres) / 10.0)
