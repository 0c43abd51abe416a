"""Energy calibrations of N42 files: from channels to energies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt

from nilometer_papers.idhm.n42_values import MOST_CHANNELS, numbers
from nilometer_papers.idhm.n42_xml import N42Error, only, whole_text

_MOST_COEFFICIENTS: Final = 20
_MEV: Final = {"ev": 1e-6, "kev": 1e-3, "mev": 1.0}


@dataclass(frozen=True)
class Calibration:
    """Coefficients of a polynomial in the channel, or the boundaries of channels themselves."""

    values: npt.NDArray[np.float64]
    are_boundaries: bool
    mev: float
    """The unit of the values, in MeV."""

    def edges(self, channels: int) -> npt.NDArray[np.float64]:
        """The edges of this many channels, in MeV: one more than there are channels."""
        energies = self._boundaries(channels) if self.are_boundaries else self._sums(channels)
        edges: npt.NDArray[np.float64] = energies * self.mev
        if not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
            raise N42Error("the energies of channels do not rise")
        return edges

    def _sums(self, channels: int) -> npt.NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.polynomial.polynomial.polyval(np.arange(channels + 1.0), self.values)

    def _boundaries(self, channels: int) -> npt.NDArray[np.float64]:
        if len(self.values) == channels + 1:
            return self.values
        if len(self.values) == channels:  # Only lower edges: the last is as wide as its neighbour.
            return np.append(self.values, 2 * self.values[-1] - self.values[-2])
        raise N42Error(f"{channels} channels have {len(self.values)} boundaries of energy")


def calibration_2012(element: Element) -> Calibration | None:
    """Read an EnergyCalibration; None if all coefficients are 0, which means that it is unknown."""
    if _values(element, "EnergyDeviationValues", MOST_CHANNELS).any():
        raise N42Error(
            "deviations from an energy calibration are not read",
            hint="have the file written with EnergyBoundaryValues",
        )
    boundaries = _values(element, "EnergyBoundaryValues", MOST_CHANNELS + 1)
    if len(boundaries):
        return Calibration(boundaries, True, _MEV["kev"])
    return _polynomial(_values(element, "CoefficientValues", _MOST_COEFFICIENTS), _MEV["kev"])


def calibration_2006(element: Element) -> Calibration | None:
    """Read a Calibration of type Energy; None if all coefficients are 0."""
    equation = only(element, "Equation")
    model = "" if equation is None else equation.get("model", "")
    if equation is None or model.lower() != "polynomial":
        raise N42Error("only polynomials are read as energy calibrations", detail=model)
    unit = element.get("energyunits", "keV")
    if unit.lower() not in _MEV:
        raise N42Error("an energy calibration has an unknown unit", detail=unit)
    return _polynomial(_values(equation, "Coefficients", _MOST_COEFFICIENTS), _MEV[unit.lower()])


def _polynomial(coefficients: npt.NDArray[np.float64], mev: float) -> Calibration | None:
    if not len(coefficients):
        raise N42Error("an energy calibration says nothing of energies")
    return Calibration(coefficients, False, mev) if coefficients.any() else None


def _values(outer: Element, name: str, limit: int) -> npt.NDArray[np.float64]:
    return numbers(whole_text(only(outer, name)), limit)
