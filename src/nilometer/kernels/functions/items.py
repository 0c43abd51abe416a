"""The items of arrays and maps: looked up by their places, and taken from the column."""

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
    """The items of all arrays of a column, and where those of each begin and end."""

    def __init__(self, column: pa.Array) -> None:
        self.present = column.is_valid().to_numpy(zero_copy_only=False)
        offsets = column.offsets.to_numpy().astype(np.int64)
        self.starts = offsets[:-1]
        self.lengths = np.where(self.present, np.diff(offsets), 0)
        self.values = column.items if pat.is_map(column.type) else column.values
        self.keys: Any = column.keys if pat.is_map(column.type) else None

    def codes(self, other: pa.Array | None = None) -> tuple[Int64s, Int64s]:
        """Numbers that compare as the items do, and those of other values among them."""
        kind = self.values.type
        others = pa.array([], kind) if other is None else other.cast(kind)
        codes = order_codes(pa.concat_arrays([self.values, others]))
        return codes[: len(self.values)], codes[len(self.values) :]

    def places(self, row: int) -> Int64s:
        """Where the items of a row are."""
        start = self.starts[row]
        return np.arange(start, start + self.lengths[row])


def make_lists(items: pa.Array, chosen: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Arrays of items in chosen places; None is NULL, a place of -1 too."""
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
    """An array or a text."""
    return array(kind) or text(kind)


def require_comparable(kind: pa.DataType) -> None:
    """Refuse items that have no order."""
    if pat.is_map(kind) or pat.is_null(kind):
        raise UnavailableError(f"comparing {type_name(kind)} values is not available here")
