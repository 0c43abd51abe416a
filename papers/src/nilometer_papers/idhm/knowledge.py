"""The knowledge base: templates of elements, and patterns of boxes whose contents are known.

All of it are rows of static tables, for LINES and CLASSIFY. Patterns are what LINES gives for
simulated boxes of known materials, each after another exposure, so that a pattern of a short
exposure is compared with such patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nilometer.mining.lines import FUNCTION
from nilometer.mining.table_function import CheckedCall, RowWorker
from nilometer_papers.idhm.boxes import Box, Packing, draw_boxes
from nilometer_papers.idhm.elements import ELEMENTS, LINES
from nilometer_papers.idhm.spectrum_model import Spectra, background, expected_rates, templates

EXPOSURES: Final = (8.0, 16.0, 32.0, 64.0, 120.0)
"""The exposures of the known boxes, in seconds."""
FULL_EXPOSURE: Final = 120.0
"""The exposure after which there must be a decision."""
_TELLING: Final = ("C", "Cl", "H", "N", "O", "P", "S")
"""The elements of patterns; metals and glass are fitted, too, but do not indicate the class."""
_SEED: Final = 20_231
_DECIMALS: Final = 4


def line_rows() -> pa.Table:
    """The existing lines: energy in MeV, name."""
    return pa.table(
        {"energy": [line.energy for line in LINES], "name": [line.name for line in LINES]}
    )


def template_rows(kind: str) -> pa.Table:
    """The templates for LINES: name, counts, weight. The unit is a mole."""
    return pa.table(
        {
            "name": list(ELEMENTS),
            "counts": pa.array(templates(kind).tolist(), pa.list_(pa.float64())),
            "weight": [1.0 if element in _TELLING else 0.0 for element in ELEMENTS],
        }
    )


def background_rows(kind: str) -> pa.Table:
    """The background for LINES: counts."""
    return pa.table({"counts": pa.array([background(kind).tolist()], pa.list_(pa.float64()))})


@cache
def line_worker(kind: str) -> RowWorker:
    """LINES over the templates of a detector kind, as statements call it."""
    tables = {"templates": template_rows(kind), "background": background_rows(kind)}
    types = {"counts": pa.list_(pa.float64()), "live": pa.float64()}
    options = {option.name: option.default for option in FUNCTION.options}
    return FUNCTION.row_worker(
        CheckedCall(types, options), {name: numbered(table) for name, table in tables.items()}
    )


def numbered(table: pa.Table) -> pa.RecordBatch:
    """The rows as functions receive them: columns c0, c1, …"""
    names = [f"c{place}" for place in range(table.num_columns)]
    return table.rename_columns(names).combine_chunks().to_batches()[0]


def find_lines(kind: str, counts: npt.ArrayLike, live: npt.ArrayLike) -> pa.RecordBatch:
    """The columns that LINES returns for spectra, with these exposures in seconds."""
    spectra = np.asarray(counts, np.float64)
    values = pa.array(spectra.ravel())
    offsets = np.arange(len(spectra) + 1, dtype=np.int32) * spectra.shape[1]
    columns = {
        "counts": pa.ListArray.from_arrays(offsets, values),
        "live": pa.array(np.broadcast_to(np.asarray(live, np.float64), len(spectra))),
    }
    names = [column.name for column in FUNCTION.results(CheckedCall({}, {}))]
    return pa.RecordBatch.from_arrays(list(line_worker(kind).look(columns).columns), names)


def rows(kind: str, boxes: int = 3000) -> pa.Table:
    """Pattern, family and material of simulated boxes, this many for each of EXPOSURES.

    The material of a box without anything hazardous is none.
    """
    return pa.concat_tables(
        _known_rows(kind, draw_boxes(Packing(known=True), _SEED, place * boxes, boxes), exposure)
        for place, exposure in enumerate(EXPOSURES)
    )


def _known_rows(kind: str, boxes: Sequence[Box], exposure: float) -> pa.Table:
    counts = exposed(kind, boxes, exposure, _SEED)
    pattern = find_lines(kind, counts, exposure)["pattern"]
    rounded = np.round(pattern.flatten().to_numpy(), _DECIMALS)
    families = [box.family.value for box in boxes]
    materials = [box.family.value if box.hazard is None else box.hazard.name for box in boxes]
    patterns = pa.ListArray.from_arrays(pattern.offsets, rounded)
    return pa.table({"pattern": patterns, "family": families, "material": materials})


def exposed(kind: str, boxes: Sequence[Box], seconds: float, seed: int) -> Spectra:
    """Counts of boxes after an exposure; each box has its own random generator."""
    rates = expected_rates(boxes, kind) * seconds
    dice = (np.random.default_rng((seed, box.number, round(seconds * 1000))) for box in boxes)
    return np.stack([one.poisson(rate) for one, rate in zip(dice, rates, strict=True)]).astype(
        np.float64
    )
