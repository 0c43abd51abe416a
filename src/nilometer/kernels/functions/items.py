"""The items of arrays and maps, found and taken by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import UnavailableError
from nilometer.kernels.arrays import Int64s
from nilometer.kernels.expression_types import type_name
from nilometer.kernels.functions.function import text
from nilometer.kernels.order_codes import order_codes


class Items:
    """The items of all arrays of a column, and where each array begins and ends."""

    def __init__(self, column: pa.Array) -> None:
        self.present = column.is_valid().to_numpy(zero_copy_only=False)
        offsets = column.offsets.to_numpy().astype(np.int64)
        self.starts = offsets[:-1]
        self.lengths = np.where(self.present, np.diff(offsets), 0)
        self.values = column.items if pat.is_map(column.type) else column.values
        self.keys: Any = column.keys if pat.is_map(column.type) else None

    def codes(self, other: pa.Array | None = None) -> tuple[Int64s, Int64s]:
        """Numbers that order like the items, and those of other values in the same order."""
        kind = self.values.type
        others = pa.array([], kind) if other is None else other.cast(kind)
        codes = order_codes(pa.concat_arrays([self.values, others]))
        return codes[: len(self.values)], codes[len(self.values) :]

    def places(self, row: int) -> Int64s:
        """The positions of a row's items."""
        start = self.starts[row]
        return np.arange(start, start + self.lengths[row])


def make_lists(items: pa.Array, chosen: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Arrays of items at chosen positions; None is a NULL array, a position of -1 a NULL item."""
    lengths = [0 if one is None else len(one) for one in chosen]
    parts = [np.asarray(one, np.int64) for one in chosen if one is not None and len(one)]
    places = np.concatenate(parts) if parts else np.array([], np.int64)
    taken = items.take(pa.array(places, mask=places < 0))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    missing = np.array([one is None for one in chosen], np.bool_)
    mask = pa.array(missing) if missing.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets), taken, mask=mask).cast(kind)


def array(kind: pa.DataType) -> pa.DataType | None:
    """An array."""
    return kind if pat.is_list(kind) else None


def mapping(kind: pa.DataType) -> pa.DataType | None:
    """A map."""
    return kind if pat.is_map(kind) else None


def array_or_map(kind: pa.DataType) -> pa.DataType | None:
    """An array or a map."""
    return array(kind) or mapping(kind)


def array_or_text(kind: pa.DataType) -> pa.DataType | None:
    """An array or a string."""
    return array(kind) or text(kind)


def require_comparable(kind: pa.DataType) -> None:
    """Refuse items of a type without an order."""
    if pat.is_map(kind) or pat.is_null(kind):
        raise UnavailableError(f"comparing {type_name(kind)} values is not available here")
