"""Keys for tuples of a query's rows: Python values, equal where Spark's are.

0.0 is -0.0 and all NaNs are one. The values follow from the rows alone, so they are the same in
every micro-batch and after a restart.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arrays import validity
from nilometer.kernels.chunk import RowLayout
from nilometer.kernels.key_hashes import is_exact, key_hashes
from nilometer_papers.algorithms.conditions import Always, Condition, LinkedKeys, SameKey


def condition_of(layouts: Sequence[RowLayout]) -> Condition:
    """The condition formed by all keys of a query, for tuples with the keys of `tuple_keys`."""
    if not layouts[0].keys:
        return Always()
    links = tuple(
        frozenset(i for i, layout in enumerate(layouts) if layout.keys[key] is not None)
        for key in range(len(layouts[0].keys))
    )
    shared = all(len(streams) == len(layouts) for streams in links)
    return SameKey() if shared else LinkedKeys(links)


def tuple_keys(rows: pa.RecordBatch, layout: RowLayout, condition: Condition) -> list[Hashable]:
    """The tuple key of each row, in the form that the condition needs."""
    if not layout.keys:
        return [None] * len(rows)
    places = [_key(rows, columns) for columns in layout.keys]
    if len(places) == 1 and isinstance(condition, SameKey):
        return places[0]
    return list(zip(*places, strict=True))


def _key(rows: pa.RecordBatch, columns: tuple[int, ...] | None) -> list[Hashable]:
    if columns is None:
        return [None] * len(rows)
    values = [_values(rows.column(c)) for c in columns]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def _values(column: pa.Array) -> list[Hashable]:
    """A value for each row, None for NULL."""
    kind = column.type
    if is_exact([kind]):
        values: list[Hashable] = key_hashes([column]).tolist()
    elif pat.is_struct(kind):
        fields = [_values(field) for field in column.flatten()]
        values = list(zip(*fields, strict=True)) if fields else [()] * len(column)
    elif pat.is_list(kind) or pat.is_large_list(kind):
        items, offsets = _values(column.values), column.offsets.to_pylist()
        values = [tuple(items[a:b]) for a, b in pairwise(offsets)]
    else:
        return list(column.to_pylist())
    valid = validity(column)
    if valid is None:
        return values
    return [v if known else None for v, known in zip(values, valid, strict=True)]
