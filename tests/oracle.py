"""DuckDB as an independent judge of joins."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from nilometer.model.network import TimeNetwork
from nilometer.model.time import FOREVER
from tests.cases import Row
from tests.graph_cases import SCHEMA, GraphCase
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


def graph_join(case: GraphCase, before: int = FOREVER) -> list[Result]:
    """A join of any shape as plain SQL, its ROWS windows by LEAD; results before an instant."""
    names, given = case.network.streams, case.network.given
    latest = f"greatest({', '.join(f'{name}.ts' for name in names)})"
    conditions = [f"{latest} < {before}"]
    for i, a in enumerate(names):
        if (window := case.rows[i]) is not None:
            conditions.append(f"{latest} < {a}.until")
            conditions += [f"{a}.chosen"] if window.selected is not None else []
        for columns in case.keys[i]:
            conditions += [f"{a}.{SCHEMA.names[c]} IS NOT NULL" for c in columns or ()]
        for j, b in enumerate(names):
            if i != j and given[i][j] < FOREVER:
                conditions.append(f"{b}.ts - {a}.ts <= {given[i][j]}")
            for mine, theirs in zip(case.keys[i], case.keys[j], strict=True):
                equal = zip(mine or (), theirs or (), strict=False)
                conditions += [f"{a}.{SCHEMA.names[c]} = {b}.{SCHEMA.names[d]}" for c, d in equal]
    tables = [f"({_graph_table(case, i)}) AS {name}" for i, name in enumerate(names)]
    chosen = ", ".join(f"{name}.id" for name in names)
    sql = f"SELECT {latest}, {chosen} FROM {', '.join(tables)} WHERE {' AND '.join(conditions)}"
    return sorted(_connection.execute(sql).fetchall())


def _graph_table(case: GraphCase, stream: int) -> str:
    kinds = ("BIGINT", "BIGINT", "BIGINT", "DOUBLE", "BOOLEAN", "BIGINT")
    literals = [
        ", ".join(f"CAST({_literal(v)} AS {kind})" for v, kind in zip(row, kinds, strict=True))
        for row in case.streams[stream]
    ]
    nothing = ", ".join(f"CAST(NULL AS {kind})" for kind in kinds)
    values = ", ".join(f"({row})" for row in [*literals, nothing])
    window = case.rows[stream]
    until = str(FOREVER)
    if window is not None:
        names = [SCHEMA.names[c] for c in window.partition]
        partition = f"PARTITION BY {', '.join(names)}" if names else ""
        order = ", ".join(f"{SCHEMA.names[c]} NULLS FIRST" for c in (0, *window.order))
        until = f"lead(ts, {window.count}, {FOREVER}) OVER ({partition} ORDER BY {order})"
    columns = ", ".join(SCHEMA.names)
    return f"SELECT *, {until} AS until FROM (VALUES {values}) t({columns}) WHERE ts IS NOT NULL"


def _literal(value: float | None) -> str:
    return "NULL" if value is None else f"'{value}'"


def _sql(value: int | None) -> str:
    return "NULL::BIGINT" if value is None else str(value)
