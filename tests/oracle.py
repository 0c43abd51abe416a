"""DuckDB as an independent judge of joins."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from nilometer.model.network import TimeNetwork
from nilometer.model.time import FOREVER
from tests.cases import Row
from tests.naive import Result

_connection = duckdb.connect()


def window_join(
    streams: Sequence[Sequence[Row]], network: TimeNetwork, keyed: bool = True
) -> list[Result]:
    """The join as plain SQL with one predicate per pair of streams."""
    names = network.streams
    conditions = []
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            if i != j and network.given[i][j] < FOREVER:
                conditions.append(f"{b}.ts - {a}.ts <= {network.given[i][j]}")
            if keyed and i < j:
                conditions.append(f"{a}.k = {b}.k")
    tables = []
    for name, rows in zip(names, streams, strict=True):
        values = ", ".join(f"({_sql(t)}, {_sql(k)}, {v}, {i})" for t, k, v, i in rows)
        body = f"VALUES {values}" if rows else "SELECT 0, 0, 0, 0 WHERE false"
        tables.append(f"({body}) AS {name}(ts, k, v, id)")
    chosen = ", ".join(f"{name}.id" for name in names)
    sql = f"SELECT {chosen} FROM {', '.join(tables)} WHERE {' AND '.join(conditions)}"
    return sorted(_connection.execute(sql).fetchall())


def _sql(value: int | None) -> str:
    return "NULL::BIGINT" if value is None else str(value)
