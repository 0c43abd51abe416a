"""Spectra of real detectors: files in the format ANSI N42.42, of 2006 and of 2012.

Their channels, whatever their calibration, are brought into the channels of this application.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nilometer_papers.idhm.detector import CHANNELS, WIDTH
from nilometer_papers.idhm.n42_forms import Form, SpectrumElement, form_of, spectra
from nilometer_papers.idhm.n42_values import counts, micros, seconds
from nilometer_papers.idhm.n42_xml import N42Error, only, read_xml, whole_text

_EDGES: Final = np.arange(CHANNELS + 1) * WIDTH
_MOST_SPECTRA: Final = 2**14
_MOST_CHANNELS: Final = 2**25
"""The maximum number of channels of all spectra together: 256 MB of counts."""
_SCHEMA: Final = pa.schema(
    [
        ("detector", pa.string()),
        ("started", pa.timestamp("us", "UTC")),
        ("live", pa.float64()),
        ("counts", pa.list_(pa.float64())),
    ]
)


@dataclass(frozen=True)
class MeasuredSpectrum:
    """A measured spectrum."""

    detector: str
    started: int | None
    """In microseconds; files without a time zone are assumed to be in UTC."""
    live: float
    """In seconds."""
    counts: npt.NDArray[np.float64]
    edges: npt.NDArray[np.float64]
    """The edges of the channels, in MeV: one more than there are channels."""

    def rebinned(self) -> npt.NDArray[np.float64]:
        """The counts in the channels of this application; those of a channel are spread evenly."""
        below = np.concatenate([[0.0], np.cumsum(self.counts)])
        counts: npt.NDArray[np.float64] = np.diff(np.interp(_EDGES, self.edges, below))
        return counts


def read_n42(path: Path) -> list[MeasuredSpectrum]:
    """The gamma spectra of a file, in order, omitting those without live time or energies."""
    root = read_xml(path)
    try:
        measured = list(_spectra(root))
    except N42Error as error:
        message = f"{path.name} {error.message}"
        raise N42Error(message, detail=error.detail, hint=error.hint) from error
    if not measured:
        raise N42Error(f"{path.name} has no gamma spectrum with live time and energies")
    return measured


def spectrum_rows(paths: Iterable[Path]) -> pa.Table:
    """Detector, started, live and counts of all spectra of files, fit for a stream or a table."""
    measured = [one for path in paths for one in read_n42(path)]
    columns = (
        [one.detector for one in measured],
        [one.started for one in measured],
        [one.live for one in measured],
        [one.rebinned() for one in measured],
    )
    arrays = (pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True))
    return pa.table(list(arrays), schema=_SCHEMA)


def _spectra(root: Element) -> Iterator[MeasuredSpectrum]:
    form = form_of(root)
    if form is None:
        raise N42Error("is not a file of the format N42.42")
    channels = 0
    for number, one in enumerate(spectra(root), 1):
        if number > _MOST_SPECTRA:
            raise N42Error(f"has more than {_MOST_SPECTRA} spectra")
        try:
            spectrum = _spectrum(form, one)
        except N42Error as error:
            problem = f"has a spectrum, number {number}, that cannot be read: {error.message}"
            raise N42Error(problem, detail=error.detail, hint=error.hint) from error
        if spectrum is not None:
            channels += len(spectrum.counts)
            if channels > _MOST_CHANNELS:
                raise N42Error(f"has spectra of more than {_MOST_CHANNELS} channels together")
            yield spectrum


def _spectrum(form: Form, one: SpectrumElement) -> MeasuredSpectrum | None:
    """None if it is not a gamma spectrum, or has no live time or energies."""
    data = only(one.element, "ChannelData")
    if data is None or not form.is_gamma(one):
        return None
    if data.get("start", "1") not in ("0", "1"):
        raise N42Error("its counts do not begin with the first channel", detail=data.get("start"))
    channels = counts(whole_text(data), data.get("compressioncode", data.get("compression", "")))
    live = seconds(one.says("LiveTimeDuration", "LiveTime") or "PT0S")
    calibration = form.calibration(one)
    if len(channels) < 2 or not live or calibration is None:
        return None
    start = one.says("StartDateTime", "StartTime")
    started = micros(start) if start else None
    return MeasuredSpectrum(
        form.detector(one), started, live, channels, calibration.edges(len(channels))
    )
