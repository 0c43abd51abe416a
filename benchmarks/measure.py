"""One measurement in its own process: python -m benchmarks.measure NAME prints JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import log_queries, queries, windowed
from benchmarks.kernel import measure_kernel
from benchmarks.loads import Load
from benchmarks.truth import count_near, count_results

BASE: Final = Load(batches=25)
SHORT: Final = Load(rows_per_batch=3_000, batches=40)
NEAR: Final = Load(streams=2, window=5, rate=200, keys=1, rows_per_batch=40_000, batches=6)
TURNS: Final = 3
DISTANCE: Final = 0.0005
WINDOWS: Final = (10, 100, 1000)
STREAMS: Final = (2, 3, 4, 5, 6)


def longer(window: int) -> Load:
    """The same rows in and out, with a longer window."""
    return Load(window=window, keys=1000 * window, batches=44)


def several(streams: int, batches: int) -> Load:
    return Load(streams=streams, rows_per_batch=300_000, batches=batches)


@dataclass(frozen=True)
class Step:
    """A query over a load, and how it is checked."""

    load: Load
    warm_up: int
    way: str
    options: tuple[tuple[str, Any], ...] = ()


def _chain(load: Load, warm_up: int, store: str = "HDFSBacked", version: int = 2) -> Step:
    return Step(load, warm_up, "chain", (("store", store), ("state_format", version)))


def _near(kernel: str) -> Step:
    where = f"abs(A.v - B.v) < {DISTANCE}"
    return Step(NEAR, 2, "nilometer", (("on", None), ("where", where), ("kernel", kernel)))


STEPS: Final[dict[str, Step]] = {
    "beside-floor": Step(BASE, 5, "beside_floor"),
    "sql-beside-join": Step(BASE, 5, "sql_beside_join"),
    "join-6-batches": Step(BASE.first(6), 2, "nilometer"),
    "chain": _chain(BASE.first(6), 2),
    "chain-rocksdb-2": _chain(BASE.first(2), 1, "RocksDB", 2),
    "chain-rocksdb-4": _chain(BASE.first(2), 1, "RocksDB", 4),
    "log-join": Step(Load(batches=80), 10, "log_join", (("batches_at_once", 4),)),
    "log-rows": Step(Load(streams=1, batches=25), 5, "log_rows"),
    "chain-600k": _chain(Load(rows_per_batch=600_000, batches=3), 1),
    "short-beside-floor": Step(SHORT, 5, "beside_floor"),
    "chain-short": _chain(SHORT, 20),
    # The first 24 micro-batches fill the longest window and let Java compile; 20 span it twice.
    **{f"window-{window}": Step(longer(window), 24, "nilometer") for window in WINDOWS},
    **{f"streams-{n}": Step(several(n, 24), 12, "nilometer") for n in STREAMS},
    **{f"chain-streams-{n}": _chain(several(n, 3), 1) for n in STREAMS},
    "near-merge": _near("merge"),
    "near-nested": _near("nested"),
    "near-spark": Step(
        NEAR.first(2),
        1,
        "chain",
        (
            ("store", "HDFSBacked"),
            ("state_format", 2),
            ("key", f"abs(vA - vB) < {DISTANCE}"),
        ),
    ),
}


WINDOWED: Final = {
    f"{question}-{way}-{window}s": (question, way, window)
    for question, asked in windowed.QUESTIONS.items()
    for way in ("rows", "columnar", *(("duckdb",) if asked.values else ()))
    for window in (windowed.SHORT, windowed.LONG)
    if way != "columnar" or window == windowed.SHORT
}
"""Queries whose answers change, each as (question, way, window)."""


TWO_STAGES: Final = {f"two-stages-{one}": one for one in windowed.EXECUTIONS}


def measure(name: str) -> dict[str, Any]:
    """Run one step and check its count."""
    if name == "kernel":
        figures = measure_kernel(BASE, 5)
        return _checked(figures, count_results(BASE))
    if name in WINDOWED:
        variants = {
            "rows": windowed.rows,
            "columnar": windowed.columnar,
            "duckdb": windowed.reference,
        }
        question, way, window = WINDOWED[name]
        return variants[way](question, window)
    if name in TWO_STAGES:
        return windowed.two_stages(TWO_STAGES[name])
    if name == "near-refusal":
        return {"says": queries.refusal_without_a_key(NEAR)}
    step = STEPS[name]
    if step.way == "beside_floor":
        return _beside_floor(step)
    if step.way == "sql_beside_join":
        return _sql_beside_join(step)
    if step.way == "log_rows":
        return _log_rows(step)
    variants = log_queries if step.way == "log_join" else queries
    run = getattr(variants, step.way)(step.load, step.warm_up, **dict(step.options))
    return _checked(run.to_json(), _truth(name, step.load))


def _beside_floor(step: Step) -> dict[str, Any]:
    """The join and the floor alternately; the last turn counts, when Java has compiled its code."""
    expected = count_results(step.load)
    for _ in range(TURNS):
        floor = queries.floor(step.load, step.warm_up).to_json()
        join = queries.nilometer(step.load, step.warm_up).to_json()
    return {
        "floor": _checked(floor, step.load.rows),
        "join": _checked(join, expected),
        "rows_per_second": join["rows_per_second"],
        "results": join["results"],
    }


def _log_rows(step: Step) -> dict[str, Any]:
    """Rows of a log and of files alternately; the last turn counts."""
    for _ in range(TURNS):
        files = log_queries.file_rows(step.load, step.warm_up).to_json()
        log = log_queries.log_rows(step.load, step.warm_up).to_json()
    return {
        "files": _checked(files, step.load.rows),
        "log": _checked(log, step.load.rows),
        "rows_per_second": log["rows_per_second"],
        "results": log["results"],
    }


def _sql_beside_join(step: Step) -> dict[str, Any]:
    """The join in SQL and in Python alternately; the last turn counts."""
    expected = count_results(step.load)
    for _ in range(TURNS):
        join = queries.nilometer(step.load, step.warm_up).to_json()
        sql = queries.sql(step.load, step.warm_up).to_json()
    return {
        "join": _checked(join, expected),
        "sql": _checked(sql, expected),
        "rows_per_second": sql["rows_per_second"],
        "results": sql["results"],
    }


def _truth(name: str, load: Load) -> int:
    return count_near(load, DISTANCE) if name.startswith("near") else count_results(load)


def _checked(figures: dict[str, Any], expected: int) -> dict[str, Any]:
    if figures["results"] != expected:
        raise SystemExit(f"wrong: {figures['results']:,} results, DuckDB says {expected:,}")
    return {**figures, "checked": expected}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(measure(sys.argv[1])))
