"""How many results there should be, by DuckDB."""

from __future__ import annotations

import duckdb

from benchmarks.loads import Load


def count_results(load: Load) -> int:
    """Results of the join on k of all streams, every two rows within the window."""
    return _count(load, [f"{a}.k = {b}.k" for a, b in _neighbours(load)])


def count_near(load: Load, distance: float) -> int:
    """Results of the join without a key: every two values less than a distance apart."""
    return _count(load, [f"abs({a}.v - {b}.v) < {distance}" for a, b in _neighbours(load)])


def _neighbours(load: Load) -> list[tuple[str, str]]:
    return list(zip(load.names, load.names[1:], strict=False))


def _count(load: Load, conditions: list[str]) -> int:
    window = load.window * 1_000_000
    names = load.names
    tables = [
        f"(SELECT epoch_us(ts) AS t, k, v FROM '{load.folder(name, 'parquet')}/*.parquet') {name}"
        for name in names
    ]
    # Both sides of a window, spelt out: DuckDB uses such conditions while it joins.
    windows = [
        f"{b}.t BETWEEN {a}.t - {window} AND {a}.t + {window}"
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    ]
    sql = f"SELECT count(*) FROM {', '.join(tables)} WHERE {' AND '.join(conditions + windows)}"
    [(found,)] = duckdb.sql(sql).fetchall()
    return int(found)
