"""Group equal rows: they get the same number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s, changes
from nilometer.kernels.row_ids import RowIds, identify_rows


@dataclass(frozen=True, slots=True)
class RowGroups:
    """The distinct rows among some, numbered in the order of (h1, h2)."""

    ids: RowIds
    """Of each group."""
    numbers: Int64s
    """The group of each row."""
    firsts: Int64s
    """The first row of each group."""

    def __len__(self) -> int:
        return len(self.firsts)


def row_groups(columns: Sequence[pa.Array], size: int) -> RowGroups:
    """The groups of equal rows."""
    return group_ids(identify_rows(columns, size))


def group_ids(ids: RowIds) -> RowGroups:
    """The groups of equal identities."""
    order, starts = _sort(ids)
    firsts = order[starts]
    numbers = np.empty(len(ids), np.int64)
    numbers[order] = np.cumsum(starts) - 1
    return RowGroups(ids.only(firsts), numbers, firsts)


def _sort(ids: RowIds) -> tuple[Int64s, Bools]:
    """The rows in stable order of identity, and where a new identity begins.

    The upper bits of the first hash with the row's number below them are one integer, and
    sorting integers is several times faster than sorting rows by integers.
    """
    row_bits = len(ids).bit_length()
    low = np.int64((1 << row_bits) - 1)
    packed = (ids.h1 & ~low) | np.arange(len(ids))
    packed.sort()
    order = packed & low
    starts = changes(packed >> row_bits)
    if (~starts & _id_changes(ids.only(order))).any():  # different rows with equal upper bits
        order = np.lexsort((ids.h2, ids.h1))
        starts = _id_changes(ids.only(order))
    return order, starts


def _id_changes(ids: RowIds) -> Bools:
    return changes(ids.h1) | changes(ids.h2)
