"""python -m benchmarks.history: ten queries over history, beside DuckDB over Parquet.

Ten million readings are stored in a log, packed as a server packs them, and in a Parquet file of
the same rows. Every answer is compared. The ratio is that of the best of three runs of each.
"""

from __future__ import annotations

import argparse
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from rich.console import Console
from rich.table import Table

from nilometer.log.layout import TIME, TIMESTAMP, LogLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER
from nilometer.past.ask import ask, prepare_question
from nilometer.past.sandbox import Sandbox
from nilometer.past.stored import LogTable, StoredTable

ROWS: Final = 10_000_000
AT_ONCE: Final = 1000
RUNS: Final = 3
BEGIN: Final = 1_767_225_600_000_000
SCHEMA: Final = pa.schema(
    [(TIME, TIMESTAMP), ("sensor", pa.int64()), ("v", pa.float64()), ("state", pa.string())]
)
QUESTIONS: Final = (
    ("count of all", "SELECT COUNT(*) FROM r"),
    ("average by sensor", "SELECT sensor, AVG(v) FROM r GROUP BY sensor"),
    ("extremes by state", "SELECT state, MIN(v), MAX(v), COUNT(*) FROM r GROUP BY state"),
    ("above a bound", "SELECT COUNT(*) FROM r WHERE v > 32"),
    ("last hour by minute", "SELECT date_trunc('minute', _time), AVG(v) FROM r "
     "WHERE {hour} GROUP BY 1"),
    ("last hour of one sensor", "SELECT _time, v FROM r WHERE {hour} AND sensor = 7"),
    ("last hour, percentiles", "SELECT quantile_cont(v, 0.99) FROM r WHERE {hour}"),
    ("last hour, latest of each", "SELECT sensor, max_by(v, _time) FROM r "
     "WHERE {hour} GROUP BY sensor"),
    ("last ten minutes, all rows", "SELECT * FROM r WHERE {minutes}"),
    ("last hour, changes", "SELECT COUNT(*) FROM (SELECT state, LAG(state) OVER "
     "(PARTITION BY sensor ORDER BY _time) AS before FROM r WHERE {hour}) WHERE state <> before"),
)  # fmt: skip


def rows_from(first: int, count: int, chance: np.random.Generator) -> pa.RecordBatch:
    """A thousand readings per second from a hundred sensors."""
    times = BEGIN + np.arange(first, first + count) * 1000
    states = pa.array(np.array(["idle", "busy", "off", "error"])[chance.integers(0, 4, count)])
    values = np.round(chance.normal(20, 5, count), 3)
    columns = [
        pa.array(times).cast(TIMESTAMP),
        pa.array(np.arange(first, first + count) % 100),
        pa.array(values),
        states,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def fill(folder: Path, rows: int) -> None:
    """The same rows in a log and in a file."""
    chance = np.random.default_rng(1)
    options = LogOptions(fsync=Fsync.NEVER, memory=0, history=FOREVER)
    layout = LogLayout(SCHEMA, TIME)
    with (
        LogWriter.open(folder / "log", layout, options) as writer,
        pq.ParquetWriter(folder / "rows.parquet", SCHEMA, compression="zstd") as parquet,
    ):
        for first in range(0, rows, 100 * AT_ONCE):
            batch = rows_from(first, min(100 * AT_ONCE, rows - first), chance)
            for start in range(0, len(batch), AT_ONCE):
                writer.append(batch.slice(start, AT_ONCE))
            parquet.write_batch(batch)
        while writer.pack():
            pass


def best(work: Callable[[], pa.Table]) -> tuple[float, pa.Table]:
    answer, seconds = work(), []
    for _ in range(RUNS):
        begun = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - begun)
    return min(seconds), answer


def measure(rows: int) -> list[dict[str, Any]]:
    """Each query with the seconds of both."""
    folder = Path(tempfile.mkdtemp(dir="build"))
    try:
        fill(folder, rows)
        end = BEGIN + rows * 1000
        bounds = {
            name: f"_time >= make_timestamptz({end - seconds * 1_000_000})"
            for name, seconds in (("hour", 3600), ("minutes", 600))
        }
        tables: dict[str, StoredTable] = {
            "r": LogTable(str(folder / "log"), LogReader.open(folder / "log"))
        }
        sandbox = Sandbox(4 << 30)
        with duckdb.connect(config={"threads": "2"}) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"CREATE VIEW r AS SELECT * FROM '{folder / 'rows.parquet'}'")
            measured = []
            for name, text in QUESTIONS:
                sql = text.format(**bounds)

                def ours(sql: str = sql) -> pa.Table:
                    tree = sqlglot.parse_one(sql, read="duckdb")
                    assert isinstance(tree, sqlglot.exp.Query)
                    return ask(sandbox, prepare_question(sandbox, tree, sql, tables), tables)

                def theirs(sql: str = sql) -> pa.Table:
                    return connection.sql(sql).to_arrow_table()

                seconds, answer = best(ours)
                peer, wanted = best(theirs)
                require_same(name, answer, wanted)
                measured.append({"question": name, "s": seconds, "DuckDB s": peer})
        return measured
    finally:
        shutil.rmtree(folder)


def require_same(name: str, answer: pa.Table, wanted: pa.Table) -> None:
    """Raise an error for answers that differ by more than the order of additions explains."""

    def plain(rows: pa.Table) -> list[tuple[Any, ...]]:
        listed = [column.to_pylist() for column in rows.columns]
        return sorted(zip(*listed, strict=True), key=lambda row: tuple(map(_roughly, row)))

    def is_same(one: Any, other: Any) -> bool:
        if isinstance(one, float) and isinstance(other, float):
            return math.isclose(one, other, rel_tol=1e-9)
        return bool(one == other)

    ours, theirs = plain(answer), plain(wanted)
    if len(ours) != len(theirs) or not all(
        is_same(*pair)
        for rows in zip(ours, theirs, strict=True)
        for pair in zip(*rows, strict=True)
    ):
        raise SystemExit(f"{name}: the answers differ")


def _roughly(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def show(measured: Sequence[dict[str, Any]]) -> None:
    table = Table("question", "s", "DuckDB over Parquet s", "ratio")
    for one in measured:
        ours, peer = one["s"], one["DuckDB s"]
        table.add_row(one["question"], f"{ours:.3f}", f"{peer:.3f}", f"{ours / peer:.1f}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    show(measure(parser.parse_args().rows))


if __name__ == "__main__":
    main()
