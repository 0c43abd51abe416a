"""The two forms of N42 files, and where each keeps the parts of a spectrum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Protocol
from xml.etree.ElementTree import Element

from nilometer_papers.idhm.n42_energies import Calibration, calibration_2006, calibration_2012
from nilometer_papers.idhm.n42_xml import N42Error, whole_text

_AROUND: Final = (
    *("RadMeasurement", "DerivedData"),
    *("Measurement", "DetectorData", "DetectorMeasurement", "SpectrumMeasurement"),
)
_TEXTS: Final = ("LiveTimeDuration", "LiveTime", "StartDateTime", "StartTime", "DetectorType")
_ATTRIBUTES: Final = ("detector", "sensor", "detectortype")
_CALIBRATIONS_2006: Final = (
    *("Calibration", "InstrumentInformation/Calibration"),
    *("Measurement/Calibration", "Measurement/InstrumentInformation/Calibration"),
)
_NO_GAMMAS: Final = ("neutron", "gmtube")


@dataclass(frozen=True)
class SpectrumElement:
    """A spectrum of a file, with what it or its nearest enclosing element says."""

    element: Element
    stated: dict[str, str]

    def says(self, *names: str) -> str:
        """The value of the first of these names that is given; empty if none is."""
        return next((self.stated[name] for name in names if name in self.stated), "")


class Form(Protocol):
    """What must be known about the spectra of a file."""

    def is_gamma(self, spectrum: SpectrumElement) -> bool: ...

    def detector(self, spectrum: SpectrumElement) -> str: ...

    def calibration(self, spectrum: SpectrumElement) -> Calibration | None: ...


class Form2012:
    """RadInstrumentData: detectors and calibrations by reference."""

    def __init__(self, root: Element) -> None:
        self._kinds = {
            one.get("id", ""): one.findtext("RadDetectorCategoryCode", "Gamma").strip().lower()
            for one in root.findall("RadDetectorInformation")
        }
        gammas = [name for name, kind in self._kinds.items() if kind == "gamma"]
        self._only = gammas[0] if len(gammas) == 1 else ""
        self._calibrations = _Calibrations(root.findall("EnergyCalibration"), calibration_2012)

    def is_gamma(self, spectrum: SpectrumElement) -> bool:
        return self._kinds.get(self.detector(spectrum), "gamma") == "gamma"

    def detector(self, spectrum: SpectrumElement) -> str:
        return spectrum.element.get("raddetectorinformationreference") or self._only

    def calibration(self, spectrum: SpectrumElement) -> Calibration | None:
        return self._calibrations.find(spectrum.element.get("energycalibrationreference", ""))


class Form2006:
    """N42InstrumentData: calibrations in spectra, or by reference."""

    def __init__(self, root: Element) -> None:
        elements = [one for place in _CALIBRATIONS_2006 for one in root.findall(place)]
        self._calibrations = _Calibrations(elements, calibration_2006)

    def is_gamma(self, spectrum: SpectrumElement) -> bool:
        kind = spectrum.says("DetectorType", "detectortype")
        description = f"{kind} {self.detector(spectrum)}".lower()
        return "gamma" in description or not any(other in description for other in _NO_GAMMAS)

    def detector(self, spectrum: SpectrumElement) -> str:
        return spectrum.says("detector", "sensor")

    def calibration(self, spectrum: SpectrumElement) -> Calibration | None:
        own = list(filter(_is_of_energy, spectrum.element.findall("Calibration")))
        if len(own) > 1:
            raise N42Error("it has several energy calibrations")
        if own:
            return calibration_2006(own[0])
        return self._calibrations.find(spectrum.element.get("calibrationids", ""))


class _Calibrations:
    """The calibrations of a file; in the form of 2006 not all of them are for energy."""

    def __init__(
        self, elements: Iterable[Element], parse: Callable[[Element], Calibration | None]
    ) -> None:
        self._parse = parse
        self._named: dict[str, Element] = {}
        self._of_energy: list[Element] = []
        self._parsed: dict[Element, Calibration | None] = {}
        for one in elements:
            self._add(one)

    def find(self, names: str) -> Calibration | None:
        """The energy calibration among those named; if none is named, the only one there is."""
        for name in names.split():
            if name not in self._named:
                raise N42Error("it has a calibration that does not exist", detail=name)
        named = [self._named[name] for name in names.split()] or self._of_energy
        of_energy = [one for one in named if _is_of_energy(one)]
        if len(of_energy) != 1:
            if names and of_energy:
                raise N42Error("it has several energy calibrations", detail=names)
            return None
        if of_energy[0] not in self._parsed:
            self._parsed[of_energy[0]] = self._parse(of_energy[0])
        return self._parsed[of_energy[0]]

    def _add(self, one: Element) -> None:
        name = one.get("id", "")
        if name in self._named:
            if not _are_same(one, self._named[name]):
                raise N42Error("has two calibrations of one id", detail=name)
            return
        if name:
            self._named[name] = one
        if _is_of_energy(one):
            self._of_energy.append(one)


def form_of(root: Element) -> Form | None:
    """The form of a file by its root element; None if it is neither."""
    match root.tag:
        case "RadInstrumentData":
            return Form2012(root)
        case "N42InstrumentData":
            return Form2006(root)
    return None


def spectra(outer: Element, inherited: dict[str, str] | None = None) -> Iterator[SpectrumElement]:
    """All spectra in an element, in the order of the file."""
    for one in outer:
        if one.tag == "Spectrum":
            yield SpectrumElement(one, {**(inherited or {}), **_texts_of(one)})
        elif one.tag in _AROUND:
            yield from spectra(one, {**(inherited or {}), **_texts_of(one)})


def _texts_of(element: Element) -> dict[str, str]:
    texts = {name: element.get(name, "") for name in _ATTRIBUTES}
    for one in element:
        if one.tag in _TEXTS:
            texts.setdefault(one.tag, whole_text(one))
    return {name: text for name, text in texts.items() if text}


def _is_of_energy(calibration: Element) -> bool:
    return calibration.tag == "EnergyCalibration" or calibration.get("type", "").lower() == "energy"


def _are_same(one: Element, other: Element) -> bool:
    return all(
        a is not None and b is not None and (a.tag, a.text, a.attrib) == (b.tag, b.text, b.attrib)
        for a, b in zip_longest(one.iter(), other.iter())
    )
