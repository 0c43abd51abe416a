"""Rows in the order of their columns, as in Spark: the first decides, then the next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.order_codes import NULL_CODE, order_codes
from nilometer.kernels.order_keys import has_order_keys, order_keys


class Sorted(NamedTuple):
    """A column to order by, and which of its values come first."""

    column: pa.Array
    descending: bool = False
    nulls_first: bool = True


def has_order(kind: pa.DataType) -> bool:
    """Whether values of a type are larger or smaller than one another: all but maps are."""
    if pat.is_nested(kind):
        return not pat.is_map(kind) and all(
            has_order(kind.field(i).type) for i in range(kind.num_fields)
        )
    return True


def sort_places(by: Iterable[Sorted], size: int) -> Int64s:
    """The positions of rows in this order; the sort is stable.

    A column is only read where those before it leave ties.
    """
    places = np.arange(size)
    groups = np.zeros(size, np.int64)
    for one in by:
        together = np.flatnonzero(_is_shared(groups))
        if not len(together):
            break
        chosen = places[together]
        codes = _codes(one, one.column.take(pa.array(chosen)))
        own = groups[together]
        is_one = own[0] == own[-1]
        order = np.argsort(codes, kind="stable") if is_one else np.lexsort((codes, own))
        places[together] = chosen[order]
        _split(groups, together, codes[order])
    return places


def _is_shared(groups: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of the consecutive groups have several rows."""
    same = groups[1:] == groups[:-1]
    shared = np.zeros(len(groups), np.bool_)
    shared[1:] |= same
    shared[:-1] |= same
    return shared


def _split(groups: Int64s, together: Int64s, codes: Int64s) -> None:
    """Split groups where codes differ; a group is the position of its first row."""
    own = groups[together]
    begins = np.ones(len(together), np.bool_)
    begins[1:] = (own[1:] != own[:-1]) | (codes[1:] != codes[:-1])
    firsts = np.maximum.accumulate(np.where(begins, np.arange(len(together)), 0))
    groups[together] = together[firsts]


def _codes(one: Sorted, column: pa.Array) -> Int64s:
    """Integers in the requested order."""
    if not column.null_count and has_order_keys(column.type):
        keys = order_keys(column)
        return ~keys if one.descending else keys
    codes = order_codes(column)
    largest = int(codes.max(initial=0)) + 1
    wanted = largest - codes if one.descending else codes
    return np.where(codes == NULL_CODE, 0 if one.nulls_first else largest + 1, wanted)
