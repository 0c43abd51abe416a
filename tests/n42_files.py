"""Writes ANSI N42.42 files, of 2006 and of 2012, in the variants that are in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

SPACE_2006 = "http://physics.nist.gov/Divisions/Div846/Gp4/ANSIN4242/2005/ANSIN4242"
SPACE_2012 = "http://physics.nist.gov/N42/2011/N42"


@dataclass(frozen=True)
class Measured:
    """A spectrum to be written."""

    counts: Sequence[float] = (5, 0, 0, 7)
    energies: Sequence[float] = (0, 3, 0)
    """Coefficients, in keV, or boundaries: one for each channel, or one more."""
    are_boundaries: bool = False
    detector: str = "Aa1"
    kind: str = "Foreground"
    start: datetime | None = datetime(2026, 1, 2, 3, 4, 5)
    live: str = "PT9.5S"


@dataclass(frozen=True)
class Ways:
    """How a file is written."""

    namespace: bool = True
    separator: str = " "
    counted_zeroes: bool = False
    by_reference: bool = True
    """For the 2006 format; in the 2012 format it is always so."""
    calibrations_last: bool = False
    in_detector_data: bool = False
    """For the 2006 format: as portals write it."""


USUAL = Ways()


def counted_zeroes(counts: Sequence[float]) -> list[float]:
    """Each run of zeros as a zero and its length."""
    packed: list[float] = []
    run = 0
    for one in [*counts, None]:
        if one == 0:
            run += 1
            continue
        if run:
            packed += [0, run]
            run = 0
        if one is not None:
            packed.append(one)
    return packed


def text_2012(spectra: Sequence[Measured], ways: Ways = USUAL) -> str:
    """The text of a file in the 2012 format."""
    names = sorted({one.detector for one in spectra})
    detectors = "".join(
        f'<RadDetectorInformation id="{name}"><RadDetectorCategoryCode>Gamma'
        f"</RadDetectorCategoryCode><RadDetectorKindCode>NaI</RadDetectorKindCode>"
        f"</RadDetectorInformation>"
        for name in names
    )
    scales = "".join(_scale_2012(number, one) for number, one in enumerate(spectra))
    measured = "".join(_measurement_2012(number, one, ways) for number, one in enumerate(spectra))
    inner = measured + scales if ways.calibrations_last else scales + measured
    return _document("RadInstrumentData", SPACE_2012, detectors + inner, ways)


def text_2006(spectra: Sequence[Measured], ways: Ways = USUAL) -> str:
    """The text of a file in the 2006 format; it has no boundaries."""
    scales = ""
    if ways.by_reference:
        scales = "".join(_scale_2006(one, f' ID="S{n}"') for n, one in enumerate(spectra))
    measured = "".join(_measurement_2006(number, one, ways) for number, one in enumerate(spectra))
    inner = measured + scales if ways.calibrations_last else scales + measured
    return _document("N42InstrumentData", SPACE_2006, inner, ways)


def _document(root: str, space: str, inner: str, ways: Ways) -> str:
    named = f' xmlns="{space}"' if ways.namespace else ""
    remark = f"<Remark>{'long enough for all readers ' * 20}</Remark>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root}{named}>{remark}{inner}</{root}>\n'


def _scale_2012(number: int, one: Measured) -> str:
    name = "EnergyBoundaryValues" if one.are_boundaries else "CoefficientValues"
    values = " ".join(map(str, one.energies))
    return f'<EnergyCalibration id="S{number}"><{name}>{values}</{name}></EnergyCalibration>'


def _measurement_2012(number: int, one: Measured, ways: Ways) -> str:
    start = f"<StartDateTime>{one.start.isoformat()}Z</StartDateTime>" if one.start else ""
    return (
        f'<RadMeasurement id="M{number}"><MeasurementClassCode>{one.kind}</MeasurementClassCode>'
        f"{start}<RealTimeDuration>{one.live}</RealTimeDuration>"
        f'<Spectrum id="C{number}" radDetectorInformationReference="{one.detector}" '
        f'energyCalibrationReference="S{number}">'
        f"<LiveTimeDuration>{one.live}</LiveTimeDuration>"
        f"{_channels(one, ways, 'compressionCode')}</Spectrum></RadMeasurement>"
    )


def _scale_2006(one: Measured, named: str = "") -> str:
    values = " ".join(map(str, one.energies))
    return (
        f'<Calibration Type="Energy"{named} EnergyUnits="keV"><Equation Model="Polynomial">'
        f"<Coefficients>{values}</Coefficients></Equation></Calibration>"
    )


def _measurement_2006(number: int, one: Measured, ways: Ways) -> str:
    start = f"<StartTime>{one.start.isoformat()}Z</StartTime>" if one.start else ""
    kind = "Item" if one.kind == "Foreground" else one.kind
    refers = f' CalibrationIDs="S{number}"' if ways.by_reference else ""
    names = ("" if ways.in_detector_data else f' Detector="{one.detector}"') + refers
    spectrum = (
        f'<Spectrum Type="PHA"{names}>{"" if ways.in_detector_data else start}'
        f"<RealTime>{one.live}</RealTime><LiveTime>{one.live}</LiveTime>"
        f"<SourceType>{kind}</SourceType>{'' if ways.by_reference else _scale_2006(one)}"
        f"{_channels(one, ways, 'Compression')}</Spectrum>"
    )
    if ways.in_detector_data:
        spectrum = (
            f'<DetectorData>{start}<DetectorMeasurement Detector="{one.detector}" '
            f'DetectorType="Gamma"><SpectrumMeasurement>{spectrum}</SpectrumMeasurement>'
            f"</DetectorMeasurement></DetectorData>"
        )
    return f"<Measurement>{spectrum}</Measurement>"


def _channels(one: Measured, ways: Ways, attribute: str) -> str:
    counts = counted_zeroes(one.counts) if ways.counted_zeroes else one.counts
    compression = f' {attribute}="CountedZeroes"' if ways.counted_zeroes else ""
    return f"<ChannelData{compression}>{ways.separator.join(map(str, counts))}</ChannelData>"
