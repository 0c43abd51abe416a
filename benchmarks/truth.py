"""The expected number of results, by DuckDB."""

from __future__ import annotations

import duckdb

from benchmarks.loads import Load


def count_results(load: Load) -> int:
    """Results of the join of all streams on k, with every two rows within the window."""
    return _count(load, [f"{a}.k = {b}.k" for a, b in _neighbours(load)])


def count_near(load: Load, distance: float) -> int:
    """Results of the join without a key, with every two values less than a distance apart."""
    return _count(load, [f"abs({a}.v - {b}.v) < {distance}" for a, b in _neighbours(load)])


def _neighbours(load: Load) -> list[tuple[str, str]]:
    return list(zip(load.names, load.names[1:], strict=False))


def _count(load: Load, conditions: list[str]) -> int:
    """Count by plain SQL, with time divided into pieces as long as the window.

    Rows within a window of each other are in the same piece or in neighbouring ones, so each row of
    the first stream only meets three pieces of every other.
    """
    window = load.window * 1_000_000
    first, *others = load.names
    tables = [f"(SELECT *, t // {window} AS piece FROM {_rows(load, first)}) {first}"]
    tables += [
        f"(SELECT *, t // {window} + step AS piece "
        f"FROM {_rows(load, name)}, (VALUES (-1), (0), (1)) AS steps(step)) {name}"
        for name in others
    ]
    pieces = [f"{name}.piece = {first}.piece" for name in others]
    windows = [
        f"{b}.t BETWEEN {a}.t - {window} AND {a}.t + {window}"
        for i, a in enumerate(load.names)
        for b in load.names[i + 1 :]
    ]
    where = " AND ".join(conditions + pieces + windows)
    [(count,)] = duckdb.sql(f"SELECT count(*) FROM {', '.join(tables)} WHERE {where}").fetchall()
    return int(count)


def _rows(load: Load, name: str) -> str:
    files = load.folder(name, "parquet") / "*.parquet"
    return f"(SELECT epoch_us(ts) AS t, k, v FROM '{files}')"
