"""One value for all that are equal: 0.0 for -0.0, and a single NaN, also inside structs and
lists. So it does not matter which of several equal rows is shown."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pat


def canonical(column: pa.Array) -> pa.Array:
    """The same values, equal ones with equal bits; the column itself if it has no such values."""
    kind = column.type
    if not _has_floats(kind):
        return column
    if pat.is_floating(kind):
        return _canonical_floats(column)
    nulls = column.is_null() if column.null_count else None
    if pat.is_struct(kind):
        fields = [canonical(field) for field in column.flatten()]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=nulls)
    first = column.offsets[0].as_py()
    values = column.values.slice(first, column.offsets[-1].as_py() - first)
    offsets = pa.array(np.asarray(column.offsets) - first, column.offsets.type)
    if pat.is_map(kind):
        keys, items = (canonical(part) for part in values.flatten())
        return pa.MapArray.from_arrays(offsets, keys, items, kind, mask=nulls)
    return type(column).from_arrays(offsets, canonical(values), kind, mask=nulls)


def _has_floats(kind: pa.DataType) -> bool:
    if pat.is_nested(kind):
        return any(_has_floats(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pat.is_floating(kind))


def _canonical_floats(column: pa.Array) -> pa.Array:
    valid = column.is_valid() if column.null_count else None
    values = np.array(column.to_numpy(zero_copy_only=False), column.type.to_pandas_dtype())
    values += values.dtype.type(0)  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    return pa.array(values, column.type, mask=None if valid is None else ~np.asarray(valid))
