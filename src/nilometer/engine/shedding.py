"""Which rows a query leaves unread when it is too far behind: those that matter least."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Float64s, UInt64s
from nilometer.kernels.key_hashes import hash_rows
from nilometer.kernels.row_errors import RowErrors, Rows, compute, leaving_out
from nilometer.model.expressions import Expression

LEAST_KEPT: Final = 0.1
"""The share of the rows that is read however far behind a query is."""


@dataclass(frozen=True)
class Threshold:
    """The row that matters least of those that are read, by its utility, then by its hash."""

    utility: float
    hash: int

    def passed(self, utilities: Float64s, hashes: UInt64s) -> Bools:
        """Which rows are read."""
        ties = utilities == self.utility
        passed: Bools = (utilities > self.utility) | (ties & (hashes >= np.uint64(self.hash)))
        return passed


def share_to_read(waiting: int, above: int) -> float:
    """The share of the rows to read when so many wait, and more than `above` are too many.

    >>> share_to_read(1_000, 1_000), share_to_read(2_000, 1_000), share_to_read(10**9, 1_000)
    (1.0, 0.5, 0.1)
    """
    return max(LEAST_KEPT, min(1.0, above / max(1, waiting)))


def select_rows(
    rows: pa.RecordBatch, everything: pa.RecordBatch, utility: Expression | None, share: float
) -> pa.RecordBatch:
    """The rows with the greatest utility, in their order.

    `everything` are the rows of which a share is read; `rows` are some of them. Whoever reads some
    of the same decides alike about each.
    """
    threshold = _threshold(_utilities(everything, utility), hash_rows(everything.columns), share)
    passed = threshold.passed(_utilities(rows, utility), hash_rows(rows.columns))
    return rows.filter(pa.array(passed))


def _threshold(utilities: Float64s, hashes: UInt64s, share: float) -> Threshold:
    order = np.lexsort((hashes, utilities))
    place = order[len(order) - math.ceil(share * len(order))]
    return Threshold(float(utilities[place]), int(hashes[place]))


def _utilities(rows: pa.RecordBatch, utility: Expression | None) -> Float64s:
    """NULL, NaN and what cannot be computed matter least."""
    if utility is None:
        return np.zeros(len(rows))
    with leaving_out(RowErrors()):
        (values,), computable = compute(
            [(utility, pa.float64())], Rows(rows.columns, len(rows), rows.schema.names)
        )
    utilities = np.full(len(rows), -np.inf)
    known = np.asarray(values.fill_null(-np.inf).to_numpy(), np.float64)
    utilities[slice(None) if computable is None else computable] = np.nan_to_num(
        known, nan=-np.inf, posinf=np.inf, neginf=-np.inf
    )
    return utilities
