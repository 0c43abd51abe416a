"""DuckDB as an independent judge of statements."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from tests.queries import RELATIONS, Data, QueryCase

_connection = duckdb.connect()
_connection.execute("SET TimeZone = 'UTC'")


def answer(case: QueryCase, data: Data) -> list[tuple[Any, ...]]:
    """The rows of a statement, sorted."""
    for name in RELATIONS:
        _connection.register(name, pa.Table.from_batches([data.batch(name)]))
    _connection.register("T", pa.Table.from_batches([data.static()]))
    rows = _connection.sql(case.oracle).to_arrow_table()
    return sorted_rows(rows)


def sorted_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples, timestamps as microseconds, in a fixed order."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us")).cast(pa.int64())  # noqa: PLW2901
        columns.append(column.to_pylist())
    return sorted(zip(*columns, strict=True), key=repr)
