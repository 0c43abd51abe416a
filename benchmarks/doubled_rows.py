"""`python -m benchmarks.doubled_rows`: the cost of joins of changing answers as rows double.

Each measurement runs in its own process, without Spark, all rows at once; at some instants its
answer is compared with DuckDB's. Time should double with the rows, memory should stay constant.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from nilometer.local.database import LocalDatabase

SECOND: Final = 1_000_000
LENGTH: Final = 30
SIZES: Final = (1000, 2000, 4000, 8000)
INSTANTS: Final = 12
TIMESTAMP: Final = pa.timestamp("us", "UTC")
QUESTIONS: Final = {
    "NOT EXISTS": "SELECT A.k, A.v FROM A{w} WHERE NOT EXISTS "
    "(SELECT 1 FROM B{w} WHERE B.k = A.k AND B.v > A.v)",
    "EXISTS": "SELECT A.k, A.v FROM A{w} WHERE EXISTS (SELECT 1 FROM B{w} WHERE B.k = A.k)",
    "IN": "SELECT A.k, A.v FROM A{w} WHERE A.k IN (SELECT k FROM B{w})",
    "FULL JOIN of counts": "SELECT x.n, y.n AS m FROM (SELECT COUNT(*) AS n FROM A{w}) x "
    "FULL JOIN (SELECT COUNT(*) AS n FROM B{w}) y ON x.n = y.n",
    "FULL JOIN of groups": "SELECT x.k, x.n, y.n AS m FROM "
    "(SELECT k, COUNT(*) AS n FROM A{w} GROUP BY k) x FULL JOIN "
    "(SELECT k, COUNT(*) AS n FROM B{w} GROUP BY k) y ON x.k = y.k",
    "above mean + 3 sd": "SELECT A.k, A.v FROM A{w}, "
    "(SELECT AVG(v) AS m, STDDEV(v) AS s FROM A{w}) g WHERE A.v > g.m + 3 * g.s",
}
"""{w} is replaced by the window: our own, or in DuckDB its rows at an instant."""


def stream(rows: int, keys: int, seed: int) -> pa.Table:
    """On average one row per second for each key."""
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, rows * SECOND // keys, rows))
    return pa.table(
        {
            "ts": pa.array(times, pa.int64()).cast(TIMESTAMP),
            "k": pa.array(random.integers(0, keys, rows), pa.int32()),
            "v": pa.array(np.round(random.normal(size=rows), 3)),
        }
    )


def measure(question: str, rows: int, keys: int) -> dict[str, Any]:
    """Seconds and megabytes; raises an error if the answer is wrong."""
    streams = {name: stream(rows, keys, seed) for seed, name in enumerate("AB")}
    db = LocalDatabase()
    for name, table in streams.items():
        db.create_stream(name, table, time="ts")
    began = time.perf_counter()
    changes = db.sql(QUESTIONS[question].format(w=f" [RANGE {LENGTH} SECONDS]"))
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    check(question, changes, streams)
    return {"seconds": seconds, "peak": peak, "changes": len(changes)}


def check(question: str, changes: pa.Table, streams: dict[str, pa.Table]) -> None:
    """Compare the answer at some instants with DuckDB's over the rows in the windows."""
    last = streams["A"]["ts"][-1].value
    moments = np.linspace(0, last, INSTANTS).astype(np.int64)
    times = changes["_time"].cast(pa.int64()).to_numpy()
    diffs = changes["_diff"].to_pylist()
    rows = list(
        zip(*(changes[name].to_pylist() for name in changes.column_names[:-2]), strict=True)
    )
    names = {
        name: f"(SELECT * FROM all_{name} WHERE ts BETWEEN $low AND $high) {name}" for name in "AB"
    }
    with duckdb.connect() as connection:
        for name, table in streams.items():
            connection.register(
                f"all_{name}", table.set_column(0, "ts", table["ts"].cast(pa.int64()))
            )
        sql = QUESTIONS[question]
        for name, source in names.items():
            sql = sql.replace(f"FROM {name}{{w}}", f"FROM {source}")
        for moment in moments:
            answer: Counter[Any] = Counter()
            for place in np.flatnonzero(times <= moment):
                answer[rows[place]] += diffs[place]
            window = {"low": int(moment) - LENGTH * SECOND, "high": int(moment)}
            expected = Counter(connection.execute(sql, window).fetchall())
            if +answer != expected:
                raise AssertionError(f"{question}: another answer than DuckDB's at {moment}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.doubled_rows", description=__doc__)
    parser.add_argument("--keys", type=int, default=1)
    parser.add_argument("--one", nargs=2, metavar=("QUESTION", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.keys)))
        return 0
    table = Table("question", "rows", "seconds", "times the last", "MB", "changes")
    for question in QUESTIONS:
        before = None
        for rows in SIZES:
            command = [sys.executable, "-m", "benchmarks.doubled_rows", "--keys", str(options.keys)]
            done = subprocess.run(
                [*command, "--one", question, str(rows)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                last = done.stderr.strip().splitlines()[-1:]
                table.add_row(question, f"{rows:,}", *last, "", "", "")
                break
            one = json.loads(done.stdout)
            ratio = "" if before is None else f"{one['seconds'] / before:.1f}"
            before = one["seconds"]
            table.add_row(
                question,
                f"{rows:,}",
                f"{one['seconds']:.2f}",
                ratio,
                f"{one['peak']:,}",
                f"{one['changes']:,}",
            )
    Console(highlight=False).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
