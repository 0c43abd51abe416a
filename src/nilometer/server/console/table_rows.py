"""Arrow tables as the table in the browser wants them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.json_values import columns_of, values_of
from nilometer.server.console.chart_points import is_number


def table_columns(schema: pa.Schema) -> list[dict[str, Any]]:
    """Name, SQL type, and how to set each column."""
    return [
        {**named, "is_number": is_number(kind), "is_time": pat.is_timestamp(kind)}
        for named, kind in zip(columns_of(schema), schema.types, strict=True)
    ]


def table_rows(table: pa.Table) -> list[list[Any]]:
    """The values of each row."""
    return [list(row) for row in zip(*map(values_of, table.columns), strict=True)]
