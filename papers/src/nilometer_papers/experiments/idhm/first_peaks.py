"""The exposure after which PEAKS finds the lines of elements in a box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.mining.peaks import FUNCTION
from nilometer.mining.table_function import CheckedCall, RowWorker
from nilometer_papers.experiments.experiment import Row
from nilometer_papers.experiments.idhm.looks import BURST, FULL, accumulated
from nilometer_papers.idhm.boxes import Box, moles
from nilometer_papers.idhm.detector import DETECTORS, WIDTH
from nilometer_papers.idhm.elements import ELEMENTS, LINES
from nilometer_papers.idhm.knowledge import line_rows, numbered
from nilometer_papers.idhm.spectrum_model import Spectra, background

SHOWN: Final = ("H 2.22", "C 4.44", "O 6.13", "N 5.11", "N 10.83", "Cl 1.95")
_LEAST: Final = 3.0
"""The minimum moles of an element in a box for its line to be searched."""
_BURSTS: Final = (1, 2, 4, 8, FULL)
_BLANK_SECONDS: Final = 3600.0


def peak_rows(kind: str, boxes: Sequence[Box], seed: int) -> list[Row]:
    """The share of boxes with an element in which its line is found, after some exposures."""
    worker = _peaks(kind)
    amounts = moles(boxes)
    rows: list[Row] = []
    for bursts, counts in zip(_BURSTS, accumulated(kind, boxes, _BURSTS, seed), strict=True):
        seen = _seen(worker, counts, bursts * BURST)
        for line in (line for line in LINES if line.name in SHOWN):
            among = amounts[:, ELEMENTS.index(line.element)] >= _LEAST
            hits = [(row, line.name) in seen for row in np.flatnonzero(among).tolist()]
            rows.append(_row(kind, line.name, bursts * BURST, hits))
    return rows


def _row(kind: str, line: str, seconds: float, hits: Sequence[bool]) -> Row:
    return {
        "curve": "peaks",
        "at": line,
        "detector": kind,
        "classifier": "",
        "hazardous": 0,
        "harmless": len(hits),
        "detected": round(float(np.mean(hits)), 4) if hits else 0.0,
        "false_alarms": 0.0,
        "decided": 1.0,
        "seconds": seconds,
    }


def _peaks(kind: str) -> RowWorker:
    """PEAKS with the resolution of a detector, over a background counted for an hour."""
    detector = DETECTORS[kind]
    options = {option.name: option.default for option in FUNCTION.options}
    options |= {
        "channel_width": WIDTH,
        "fwhm": float(detector.full_width(1.0)),
        "fwhm_at": 1.0,
        "fwhm_floor": detector.width_at_zero,
    }
    blank = pa.table(
        {"counts": [(background(kind) * _BLANK_SECONDS).tolist()], "live": [_BLANK_SECONDS]}
    )
    tables = {"blank": numbered(blank), "lines": numbered(line_rows())}
    types = {"counts": pa.list_(pa.float64()), "live": pa.float64()}
    return FUNCTION.row_worker(CheckedCall(types, options), tables)


def _seen(worker: RowWorker, counts: Spectra, seconds: float) -> set[tuple[int, str]]:
    """Rows and the lines whose peaks are found in them."""
    spectra = pa.array(counts.tolist(), pa.list_(pa.float64()))
    live = pa.array(np.full(len(counts), seconds))
    peaks = worker.look({"counts": spectra, "live": live})
    lines = peaks.columns[-2].to_pylist()
    return set(zip(peaks.rows.tolist(), lines, strict=True))
