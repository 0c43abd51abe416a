"""Spectra of real detectors: files in the format ANSI N42.42, of 2006 and of 2012.

SpecUtils of Sandia National Laboratories reads them. Their channels, whatever their calibration,
are brought into the channels of this application.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.parsers.expat import ExpatError, ParserCreate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nilometer.apps.idhm.detector import CHANNELS, WIDTH
from nilometer.errors import InputError, NilometerError

if TYPE_CHECKING:
    from SpecUtils import Measurement, SpecFile

_EDGES: Final = np.arange(CHANNELS + 1) * WIDTH
_KEV: Final = 1000.0
_LARGEST: Final = 64 * 2**20
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SCHEMA: Final = pa.schema(
    [
        ("detector", pa.string()),
        ("started", pa.timestamp("us", "UTC")),
        ("live", pa.float64()),
        ("counts", pa.list_(pa.float64())),
    ]
)


class N42Error(NilometerError):
    """A file that is not what it should be."""


@dataclass(frozen=True)
class MeasuredSpectrum:
    """A spectrum as it was measured."""

    detector: str
    started: int | None
    """In microseconds; files that do not say where they are from are taken to tell UTC."""
    live: float
    """In seconds."""
    counts: npt.NDArray[np.float64]
    edges: npt.NDArray[np.float64]
    """Of the channels, in MeV: one more than there are channels."""

    def rebinned(self) -> npt.NDArray[np.float64]:
        """The counts in the channels of this application; those of a channel are spread evenly."""
        below = np.concatenate([[0.0], np.cumsum(self.counts)])
        counts: npt.NDArray[np.float64] = np.diff(np.interp(_EDGES, self.edges, below))
        return counts


def read_n42(path: Path) -> list[MeasuredSpectrum]:
    """The gamma spectra of a file, in its order, those without live time left out."""
    _check(path)
    spectra = _load(path)
    found = [_spectrum(one) for one in spectra.measurements() if _is_usable(one)]
    if not found:
        raise N42Error(f"{path.name} has no gamma spectrum with live time and energies")
    return found


def spectrum_rows(paths: Iterable[Path]) -> pa.Table:
    """Detector, started, live and counts of all spectra of files, fit for a stream or a table."""
    found = [one for path in paths for one in read_n42(path)]
    columns = (
        [one.detector for one in found],
        [one.started for one in found],
        [one.live for one in found],
        [one.rebinned().tolist() for one in found],
    )
    arrays = (pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True))
    return pa.table(list(arrays), schema=_SCHEMA)


def _check(path: Path) -> None:
    """Nothing of a file is trusted: its size, that it is whole, and that it declares nothing.

    SpecUtils would read the half of a file that was cut off, without a word.
    """
    try:
        size = path.stat().st_size
        text = path.read_bytes() if size <= _LARGEST else b""
    except OSError as error:
        raise InputError(f"cannot read {path}", detail=error.strerror) from error
    if size > _LARGEST:
        raise N42Error(f"{path.name} has {size} bytes; more than {_LARGEST} are not read")
    parser = ParserCreate()
    parser.StartDoctypeDeclHandler = partial(_refuse_declarations, path)
    try:
        parser.Parse(text, True)
    except ExpatError as error:
        raise N42Error(f"{path.name} is not well-formed XML", detail=str(error)) from error


def _refuse_declarations(path: Path, *_: object) -> None:
    raise N42Error(
        f"{path.name} declares a document type",
        detail="files of this format have none; entities are a way to exhaust memory",
    )


def _load(path: Path) -> SpecFile:
    try:
        from SpecUtils import ParserType, SpecFile  # noqa: PLC0415  an extra
    except ImportError as error:
        raise InputError(
            "N42 files cannot be read: SandiaSpecUtils is not installed",
            hint="pip install 'nilometer[mining]'",
        ) from error
    spectra = SpecFile()
    try:
        # One parser reads both forms of the standard.
        spectra.loadFile(str(path), ParserType.N42_2012)
    except RuntimeError as error:
        raise N42Error(f"{path.name} is not a file of the format N42.42") from error
    return spectra


def _is_usable(one: Measurement) -> bool:
    return one.numGammaChannels() > 0 and one.liveTime() > 0 and len(one.channelEnergies()) > 0


def _spectrum(one: Measurement) -> MeasuredSpectrum:
    counts = np.array(one.gammaCounts(), dtype=np.float64)
    edges = np.array(one.channelEnergies(), dtype=np.float64) / _KEV
    if len(edges) == len(counts):
        edges = np.append(edges, 2 * edges[-1] - edges[-2])
    return MeasuredSpectrum(
        one.detectorName(), _micros(one.startTime()), float(one.liveTime()), counts, edges
    )


def _micros(instant: datetime | None) -> int | None:
    if instant is None or instant.year <= _EPOCH.year:
        return None
    return (instant.replace(tzinfo=instant.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)
