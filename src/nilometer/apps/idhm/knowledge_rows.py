"""What is known of lines and materials, as INSERTs into the tables of `pipeline.sql`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.apps.idhm.knowledge import line_rows, rows, template_rows
from nilometer.apps.idhm.spectrum_model import background
from nilometer.apps.insert_rows import insert_statements

KNOWN_BOXES: Final = 300
"""For each of the exposures of the knowledge base: fewer than in experiments, and soon there."""
_LONG: Final = 3600.0
"""How many seconds the background was counted."""


def knowledge_statements(kinds: Iterable[str], boxes: int = KNOWN_BOXES) -> Iterator[str]:
    """Statements that fill the tables for detectors of some kinds."""
    yield from insert_statements("Lines", line_rows())
    for kind in dict.fromkeys(kinds):
        yield from insert_statements("Templates", _of(kind, template_rows(kind)))
        yield from insert_statements("Backgrounds", _of(kind, _background(kind)))
        yield from insert_statements("Library", _of(kind, rows(kind, boxes)))


def _of(kind: str, table: pa.Table) -> pa.Table:
    return table.add_column(0, "kind", pa.array([kind] * len(table)))


def _background(kind: str) -> pa.Table:
    rates = background(kind)
    counted = np.random.default_rng(len(kind)).poisson(rates * _LONG).astype(np.float64)
    return pa.table({"rates": [rates.tolist()], "counts": [counted.tolist()], "live": [_LONG]})
