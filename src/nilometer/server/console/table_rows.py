"""Arrow tables as the table in the browser wants them."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.json_values import columns_of, values_of
from nilometer.server.console.chart_points import TIME, is_number

_SIZES: Final = frozenset({"stored_bytes", "result_bytes", "state_bytes"})
"""Columns that SHOW gives in bytes; people read larger units."""


def table_columns(schema: pa.Schema) -> list[dict[str, Any]]:
    """Name, SQL type, and format of each column; rows are ordered by their `_time`."""
    return [
        {
            **named,
            "is_number": is_number(kind),
            "is_time": pat.is_timestamp(kind),
            "is_span": pat.is_duration(kind),
            "is_order": named["name"] == TIME,
            "is_size": named["name"] in _SIZES,
        }
        for named, kind in zip(columns_of(schema), schema.types, strict=True)
    ]


def in_order(rows: pa.Table) -> pa.Table:
    """Rows sorted by their columns, left to right, so that a refreshed answer does not jump.

    >>> in_order(pa.table({"k": ["b", "a", None], "v": [[1], [2], [3]]}))["k"].to_pylist()
    ['a', 'b', None]
    """
    named = rows.rename_columns([str(place) for place in range(rows.num_columns)])
    keys = [(one.name, "ascending") for one in named.schema if _is_sorted_by(one.type)]
    return rows.take(pc.sort_indices(named, sort_keys=keys)) if keys else rows


def table_rows(table: pa.Table) -> list[list[Any]]:
    """The values of each row."""
    return [list(row) for row in zip(*map(values_of, table.columns), strict=True)]


def _is_sorted_by(kind: pa.DataType) -> bool:
    is_text = pat.is_string(kind) or pat.is_large_string(kind)
    return bool(is_number(kind) or is_text or pat.is_boolean(kind) or pat.is_timestamp(kind))
