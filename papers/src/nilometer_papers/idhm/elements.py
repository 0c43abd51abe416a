"""Elements, and the gammas that they emit under neutrons.

Energies are those that the literature on neutron interrogation uses. Cross sections are of one line
each, in barns, rounded: of thermal capture as prompt-gamma tables give them, of inelastic
scattering at 14 MeV as evaluated data give them, within some tens of percent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Reaction(StrEnum):
    """The neutrons that cause a line."""

    CAPTURE = "capture of thermal neutrons"
    INELASTIC = "inelastic scattering of fast neutrons"


@dataclass(frozen=True)
class Line:
    """A gamma line of an element."""

    element: str
    energy: float
    """In MeV."""
    barns: float
    """The cross section of this line, for an atom of the element."""
    reaction: Reaction

    @property
    def name(self) -> str:
        """Its usual notation: N 10.83."""
        return f"{self.element} {self.energy:.2f}"


LINES: Final = (
    Line("H", 2.223, 0.333, Reaction.CAPTURE),
    Line("C", 4.44, 0.19, Reaction.INELASTIC),
    Line("N", 10.83, 0.0113, Reaction.CAPTURE),
    Line("N", 5.11, 0.05, Reaction.INELASTIC),
    Line("N", 2.31, 0.045, Reaction.INELASTIC),
    Line("O", 6.13, 0.14, Reaction.INELASTIC),
    Line("Cl", 6.11, 6.6, Reaction.CAPTURE),
    Line("Cl", 1.95, 6.3, Reaction.CAPTURE),
    Line("Cl", 1.17, 8.9, Reaction.CAPTURE),
    Line("S", 5.42, 0.31, Reaction.CAPTURE),
    Line("S", 0.84, 0.35, Reaction.CAPTURE),
    Line("P", 3.90, 0.029, Reaction.CAPTURE),
    Line("P", 0.64, 0.031, Reaction.CAPTURE),
    Line("Fe", 7.63, 1.2, Reaction.CAPTURE),
    Line("Al", 7.72, 0.049, Reaction.CAPTURE),
    Line("Al", 1.78, 0.233, Reaction.CAPTURE),
    Line("Si", 3.54, 0.119, Reaction.CAPTURE),
    Line("Si", 4.93, 0.112, Reaction.CAPTURE),
)

ELEMENTS: Final = tuple(dict.fromkeys(line.element for line in LINES))
"""The elements that have lines."""

ATOMIC_MASSES: Final[Mapping[str, float]] = {
    "H": 1.008,
    "C": 12.011,
    "N": 14.007,
    "O": 15.999,
    "F": 18.998,
    "Na": 22.990,
    "Al": 26.982,
    "Si": 28.085,
    "P": 30.974,
    "S": 32.06,
    "Cl": 35.45,
    "K": 39.098,
    "Ca": 40.078,
    "Fe": 55.845,
    "As": 74.922,
    "Pb": 207.2,
}
"""In grams a mole; the elements without lines here only have weight."""
