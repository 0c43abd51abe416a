"""PEAKS in FROM: the peaks of a spectrum above its background, and the lines they belong to."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.mining.energy_scale import EnergyScale
from nilometer.mining.known_lines import KnownLines
from nilometer.mining.peak_arguments import COLUMNS, OPTIONS, RESULTS, TABLES
from nilometer.mining.ragged_vectors import matrices_of
from nilometer.mining.table_function import (
    CheckedCall,
    Columns,
    MiningError,
    Numbers,
    ResultColumn,
    RowFunction,
    RowResults,
    Tables,
    WindowUse,
)
from nilometer.mining.vectors import as_matrix, as_numbers

if TYPE_CHECKING:
    from nilometer.mining.spectrum_peaks import SpectrumPeaks

_MOST_COUNTS: Final = 2.0**53
"""The most counts in a channel: a double cannot count further."""
_MOST_CHANNELS: Final = 1 << 15
"""More than detectors have; weights for longer spectra could take gigabytes."""


class PeakFinding:
    """Finds the peaks of rows; `blank` is a background for all of them, with its live time."""

    def __init__(
        self, peaks: SpectrumPeaks, lines: KnownLines, blank: tuple[Numbers, float] | None
    ) -> None:
        self._peaks = peaks
        self._lines = lines
        self._blank = blank

    def look(self, columns: Columns) -> RowResults:
        parts = [
            self._look(columns, rows, counts)
            for rows, counts in matrices_of(columns["counts"])
            if counts.shape[1] <= _MOST_CHANNELS
        ]
        rows = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in parts)])
        values = np.concatenate([np.zeros((5, 0)), *(values for _, values in parts)], axis=1)
        order = np.argsort(rows, kind="stable")
        values = values[:, order]
        names, energies = self._lines.match(values[1])
        return RowResults(
            rows[order],
            (
                *map(pa.array, values),
                pa.array(names, pa.string()),
                pa.array(energies, from_pandas=True),
            ),
        )

    def _look(self, columns: Columns, rows: Int64s, counts: Numbers) -> tuple[Int64s, Numbers]:
        """The peaks of spectra of equal length: their rows, and the properties of each."""
        background, scale, usable = self._background(columns, rows, counts.shape[1])
        usable &= _are_counts(counts)
        peaks = self._peaks.find(counts[usable], background[usable], scale[usable])
        properties = (peaks.channel, peaks.energy, peaks.area, peaks.sigma, peaks.significance)
        return rows[usable][peaks.spectrum], np.stack(properties)

    def _background(
        self, columns: Columns, rows: Int64s, length: int
    ) -> tuple[Numbers, Numbers, Bools]:
        """The backgrounds of rows, the factor of each, and whether it is usable."""
        if self._blank is not None:
            blank, live = self._blank
            fits = np.full(len(rows), len(blank) == length)
            background = np.broadcast_to(blank if fits.all() else 0.0, (len(rows), length))
            scale = as_numbers(columns["live"])[rows] / live
        elif "background" in columns:
            background, fits = as_matrix(columns["background"].take(pa.array(rows)), length)
            scale = as_numbers(columns["scale"])[rows] if "scale" in columns else np.ones(len(rows))
        else:
            background = np.broadcast_to(0.0, (len(rows), length))
            fits, scale = np.ones(len(rows), np.bool_), np.zeros(len(rows))
        fits &= (scale >= 0) & (scale <= _MOST_COUNTS) & _are_counts(background)
        return background, scale, fits


class Peaks:
    """Finds the peaks of each spectrum (STEAM section 7.3)."""

    name = "PEAKS"
    about = "the peaks of a spectrum: energy, area and significance, and the line of each"
    columns = COLUMNS
    options = OPTIONS
    tables = TABLES
    window = WindowUse.NONE
    needs = ("scipy",)

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        _check_scale(_scale(call))
        _check_background(call)
        return RESULTS

    def row_worker(self, call: CheckedCall, tables: Tables) -> PeakFinding:
        from nilometer.mining.spectrum_peaks import SpectrumPeaks  # noqa: PLC0415  scipy is slow

        scale = _scale(call)
        peaks = SpectrumPeaks(scale, call.options["significance"], call.options["most"])
        lines = _lines(tables.get("lines"), scale, call.options["tolerance"])
        return PeakFinding(peaks, lines, _blank(tables["blank"]) if "blank" in tables else None)


def _scale(call: CheckedCall) -> EnergyScale:
    return EnergyScale(**{one.name: call.options[one.name] for one in fields(EnergyScale)})


def _check_scale(scale: EnergyScale) -> None:
    for name in ("channel_width", "fwhm", "fwhm_at"):
        value = getattr(scale, name)
        if value is not None and not value > 0:
            raise MiningError(f"{name} must be more than 0, but is {value:g}", argument=name)
    if not 0 <= scale.fwhm_floor <= scale.fwhm:
        raise MiningError(
            f"fwhm_floor must be from 0 to fwhm, but is {scale.fwhm_floor:g}",
            detail="it is the part of fwhm that does not grow with the energy",
            argument="fwhm_floor",
        )


def _check_background(call: CheckedCall) -> None:
    arguments = {*call.types, *call.tables}
    if {"background", "blank"} <= arguments:
        raise MiningError(
            "background and blank are given, but there is one background only",
            hint="background is a column of the input, blank a table: leave one out",
            argument="blank",
        )
    for name, other in (("blank", "live"), ("live", "blank"), ("scale", "background")):
        if name in arguments and other not in arguments:
            raise MiningError(f"{name} is given without {other}", argument=name)


def _blank(rows: pa.RecordBatch) -> tuple[Numbers, float]:
    """The sum of all background rows in the table, and its live time."""
    matrix, usable = as_matrix(rows["c0"])
    live = as_numbers(rows["c1"])
    fit = usable & _are_counts(matrix) & np.isfinite(live) & (live > 0)
    if not len(rows) or not fit.all():
        raise MiningError(
            "the blank spectrum cannot be used",
            detail="it has no rows"
            if not len(rows)
            else "it needs counts of one length, none below 0 or NULL, and live times above 0",
            argument="blank",
        )
    return matrix.sum(axis=0), float(live.sum())


def _are_counts(spectra: Numbers) -> Bools:
    """Which rows only have numbers that can be counts."""
    can_be: Bools = np.all((spectra >= 0) & (spectra <= _MOST_COUNTS), axis=1)
    return can_be


def _lines(rows: pa.RecordBatch | None, scale: EnergyScale, tolerance: float) -> KnownLines:
    if rows is None:
        return KnownLines([], [], scale, tolerance)
    energies = as_numbers(rows["c0"])
    known = np.isfinite(energies) & rows["c1"].is_valid().to_numpy(zero_copy_only=False)
    names = rows["c1"].cast(pa.string()).filter(pa.array(known)).to_pylist()
    return KnownLines(energies[known], names, scale, tolerance)


FUNCTION: Final[RowFunction] = Peaks()
