"""Known lines and materials, as INSERTs into the tables of `pipeline.sql`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer_papers.idhm.insert_rows import insert_statements
from nilometer_papers.idhm.knowledge import line_rows, rows, template_rows
from nilometer_papers.idhm.spectrum_model import background

KNOWN_BOXES: Final = 300
"""For each of the exposures of the knowledge base: fewer than in experiments, and soon there."""
_LONG: Final = 3600.0
"""How many seconds the background was counted."""


def knowledge_statements(kinds: Iterable[str], boxes: int = KNOWN_BOXES) -> Iterator[str]:
    """Statements that fill the tables for detectors of some kinds."""
    yield from insert_statements("Lines", line_rows())
    for kind in dict.fromkeys(kinds):
        yield from insert_statements("Templates", of_kind(kind, template_rows(kind)))
        yield from insert_statements("Backgrounds", of_kind(kind, background_table(kind)))
        yield from insert_statements("Library", of_kind(kind, rows(kind, boxes)))


def of_kind(kind: str, table: pa.Table) -> pa.Table:
    """The rows, with the kind of detectors in front."""
    return table.add_column(0, "kind", pa.array([kind] * len(table)))


def background_table(kind: str) -> pa.Table:
    """The counts without a box: per second, as expected, and as counted."""
    rates = background(kind)
    counted = np.random.default_rng(len(kind)).poisson(rates * _LONG).astype(np.float64)
    return pa.table({"rates": [rates.tolist()], "counts": [counted.tolist()], "live": [_LONG]})
