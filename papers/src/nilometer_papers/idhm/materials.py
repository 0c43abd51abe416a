"""Materials by what they are made of: hazardous ones of three families, and harmless ones.

Formulas only, as any handbook has them: they say what a detector sees, and nothing of making.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from nilometer_papers.idhm.elements import ATOMIC_MASSES, ELEMENTS

_PART = re.compile(r"([A-Z][a-z]?)(\d*)")


class Role(StrEnum):
    """The use of a material: new ones first appear when the system is tested."""

    KNOWN = "in the knowledge base"
    TRIAL = "in boxes with which limits of decisions are chosen"
    NEW = "in boxes with which the system is tested"


class Family(StrEnum):
    """What a material is to those who look for it; NONE is the class of a safe box."""

    EXPLOSIVE = "explosive"
    AGENT = "agent"
    NARCOTIC = "narcotic"
    NONE = "none"


@dataclass(frozen=True)
class Material:
    """A substance: parts by mass, each a formula.

    >>> water = Material("water", {"H2O": 1.0}, Family.NONE)
    >>> {name: round(share, 3) for name, share in water.mass_shares().items()}
    {'H': 0.112, 'O': 0.888}
    """

    name: str
    parts: Mapping[str, float]
    family: Family
    role: Role = Role.KNOWN

    def mass_shares(self) -> dict[str, float]:
        """How much of a kilogram each element is, in kilograms."""
        whole = sum(self.parts.values())
        shares: dict[str, float] = {}
        for formula, part in self.parts.items():
            masses = {e: n * ATOMIC_MASSES[e] for e, n in atoms(formula).items()}
            for element, mass in masses.items():
                share = part / whole * mass / sum(masses.values())
                shares[element] = shares.get(element, 0.0) + share
        return shares


def atoms(formula: str) -> dict[str, int]:
    """How many atoms of each element.

    >>> atoms("C7H5N3O6")
    {'C': 7, 'H': 5, 'N': 3, 'O': 6}
    """
    counts: dict[str, int] = {}
    for element, number in _PART.findall(formula):
        counts[element] = counts.get(element, 0) + int(number or 1)
    return counts


def _of(family: Family, role: Role, **formulas: str | Mapping[str, float]) -> list[Material]:
    return [
        Material(
            name.replace("_", " "),
            {parts: 1.0} if isinstance(parts, str) else dict(parts),
            family,
            role,
        )
        for name, parts in formulas.items()
    ]


_WOOL = {"C": 50.0, "H": 7.0, "N": 16.5, "O": 22.5, "S": 3.5}
_SILK = {"C": 48.0, "H": 6.5, "N": 18.0, "O": 27.0}
_LEATHER = {"C": 51.0, "H": 7.0, "N": 16.5, "O": 24.0, "S": 1.0}
_FOAM = {"C": 62.0, "H": 7.0, "N": 6.0, "O": 25.0}
_FLOUR = {"C6H10O5": 0.75, "C4H7NO2": 0.11, "H2O": 0.13}

_EXPLOSIVES: Final = (
    *_of(
        Family.EXPLOSIVE,
        Role.KNOWN,
        TNT="C7H5N3O6",
        RDX="C3H6N6O6",
        PETN="C5H8N4O12",
        tetryl="C7H5N5O8",
        EGDN="C2H4N2O6",
        ammonium_nitrate="H4N2O3",
        ANFO={"H4N2O3": 0.94, "C12H24": 0.06},
        urea_nitrate="CH5N3O4",
        nitrocellulose="C6H7N3O11",
        black_powder={"KNO3": 0.75, "C": 0.15, "S": 0.10},
    ),
    *_of(
        Family.EXPLOSIVE,
        Role.TRIAL,
        DNT="C7H6N2O4",
        nitroguanidine="CH4N4O2",
        nitromethane="CH3NO2",
    ),
    *_of(
        Family.EXPLOSIVE,
        Role.NEW,
        HMX="C4H8N8O8",
        picric_acid="C6H3N3O7",
        nitroglycerin="C3H5N3O9",
        Semtex={"C5H8N4O12": 0.49, "C3H6N6O6": 0.38, "C8H12": 0.13},
    ),
)

_AGENTS: Final = (
    *_of(
        Family.AGENT,
        Role.KNOWN,
        sarin="C4H10FO2P",
        tabun="C5H11N2O2P",
        DFP="C6H14FO3P",
        VX="C11H26NO2PS",
        mustard="C4H8Cl2S",
        nitrogen_mustard_1="C6H13Cl2N",
        lewisite="C2H2AsCl3",
    ),
    *_of(
        Family.AGENT,
        Role.TRIAL,
        cyclosarin="C7H14FO2P",
        VG="C11H26NO3PS",
        diphosgene="C2Cl4O2",
    ),
    *_of(
        Family.AGENT,
        Role.NEW,
        soman="C7H16FO2P",
        VE="C10H24NO2PS",
        sesquimustard="C6H12Cl2S2",
        nitrogen_mustard_3="C6H12Cl3N",
        phosgene="COCl2",
    ),
)

_NARCOTICS: Final = (
    *_of(
        Family.NARCOTIC,
        Role.KNOWN,
        cocaine="C17H22ClNO4",
        heroin="C21H24ClNO5",
        codeine="C18H22ClNO3",
        methamphetamine="C10H16ClN",
        mephedrone="C11H16ClNO",
        amphetamine="C18H28N2O4S",
    ),
    *_of(
        Family.NARCOTIC,
        Role.TRIAL,
        methadone="C21H28ClNO",
        oxycodone="C18H22ClNO4",
    ),
    *_of(
        Family.NARCOTIC,
        Role.NEW,
        MDMA="C11H16ClNO2",
        morphine="C17H20ClNO3",
        ketamine="C13H17Cl2NO",
        fentanyl="C22H29ClN2O",
    ),
)

_HARMLESS: Final = (
    *_of(
        Family.NONE,
        Role.KNOWN,
        water="H2O",
        sugar="C12H22O11",
        flour=_FLOUR,
        gelatine={"C": 50.0, "H": 7.0, "N": 18.0, "O": 25.0},
        olive_oil="C18H34O2",
        cotton="C6H10O5",
        nylon="C6H11NO",
        wool=_WOOL,
        leather=_LEATHER,
        polyester="C10H8O4",
        acrylic="C3H3N",
        PVC="C2H3Cl",
        polyethylene="CH2",
        perspex="C5H8O2",
        rubber="C5H8",
        soap="C18H35NaO2",
        glass={"SiO2": 0.73, "Na2O": 0.15, "CaO": 0.12},
        aluminium="Al",
        steel="Fe",
    ),
    *_of(
        Family.NONE,
        Role.TRIAL,
        linen={"C6H10O5": 0.92, "H2O": 0.08},
        cheese={"C": 47.0, "H": 9.0, "N": 4.0, "O": 39.0},
        polycarbonate="C16H14O3",
        isopropanol="C3H8O",
        fibreglass={"SiO2": 0.6, "C21H24O4": 0.4},
    ),
    *_of(
        Family.NONE,
        Role.NEW,
        paper={"C6H10O5": 0.85, "CaCO3": 0.15},
        silk=_SILK,
        foam=_FOAM,
        ethanol="C2H6O",
        polystyrene="C8H8",
        ceramics={"SiO2": 0.6, "Al2O3": 0.25, "H2O": 0.15},
    ),
)

MATERIALS: Final[Mapping[str, Material]] = {
    material.name: material for material in (*_EXPLOSIVES, *_AGENTS, *_NARCOTICS, *_HARMLESS)
}


@cache
def of_family(family: Family, role: Role) -> tuple[Material, ...]:
    """The materials of a family that have a role."""
    return tuple(m for m in MATERIALS.values() if m.family is family and m.role is role)


@cache
def moles_per_kilogram() -> npt.NDArray[np.float64]:
    """A row for each of MATERIALS: how many moles of each of ELEMENTS a kilogram has."""
    return np.array(
        [
            [1000.0 * shares.get(element, 0.0) / ATOMIC_MASSES[element] for element in ELEMENTS]
            for shares in (material.mass_shares() for material in MATERIALS.values())
        ]
    )
