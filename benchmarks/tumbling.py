"""`python -m benchmarks.tumbling`: tumbling COUNT and SUM per key, beside Spark's own windows.

Each runs in its own process, over the same rows; their results are compared with DuckDB's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.table import Table

import nilometer as nm
from benchmarks.loads import Load
from benchmarks.log_queries import open_logs, start_statement
from benchmarks.queries import read, session
from nilometer.engine.plan import HostedPlan, OpenedFeed, make_plan
from nilometer.engine.plan_set import PlanEntry
from nilometer.local.database import NoEngine
from nilometer.log.reader import LogReader
from nilometer.log.writer import make_log
from nilometer.spark.engine import SharedEngine
from nilometer.spark.inputs import describe_log
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.statements import read_query

LOAD: Final = Load(streams=1, keys=1000, rate=1000, batches=14)
WARM_UP: Final = 4
"""Micro-batches that do not count."""
_SILENCE: Final = 3.0
"""A named query has come to the end when this many seconds bring nothing new."""
STATEMENT: Final = (
    "SELECT window_end AS e, k, COUNT(*) AS n, SUM(v) AS s "
    "FROM TUMBLE(TABLE A, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_end, k"
)


def by_spark(folder: Path) -> float:
    """Spark's own windows, over files."""
    frame = read(session(), LOAD)["A"].withWatermark("ts", "0 seconds")
    grouped = frame.groupBy(F.window("ts", "1 minute").alias("w"), "k")
    counted = grouped.agg(F.count(F.lit(1)).alias("n"), F.sum("v").alias("s"))
    return _watch(_write(counted.select(F.col("w.end").alias("e"), "k", "n", "s"), folder))


def by_nilometer(folder: Path) -> float:
    """The same statement over the same files."""
    spark = session()
    db = nm.connect(spark)
    db.create_stream("A", read(spark, LOAD)["A"], time="ts")
    return _watch(_write(db.sql(STATEMENT).drop("_time"), folder))


def from_log(folder: Path) -> float:
    """From a log to a log, in a streaming query of its own."""
    logs = open_logs(session(), LOAD, LOAD.rows_per_file)
    return _watch(start_statement(logs, STATEMENT, folder / "checkpoint"))


def in_engine(folder: Path) -> float:
    """From a log to a log, as named queries run: in the engine that they share, on one core."""
    log, results = str(LOAD.folder("A", "log")), str(folder / "results")
    reader = LogReader.open(log)
    catalog = Catalog({"A": describe_log("A", reader.layout)}, {}, NoEngine())
    plan = make_plan(compile_statement(read_query(STATEMENT), catalog, 1), {})
    feeds = tuple(OpenedFeed(one, log, reader.start, "q", reader.layout) for one in plan.feeds)
    entry = PlanEntry("q", 0, None, results=results, log_id=make_log(results, plan.layout))
    engine = SharedEngine(session(), folder / "engine", 2.0, set(), str(folder))
    engine.warm_up()
    engine.host("q", HostedPlan(plan, feeds, "zstd", None), entry)
    progress: list[tuple[float, int]] = []
    while not progress or time.perf_counter() - progress[-1][0] < _SILENCE:
        time.sleep(0.01)
        reached = LogReader.open(results).watermark
        if reached is not None and (not progress or reached > progress[-1][1]):
            progress.append((time.perf_counter(), reached))
    engine.close()
    (began, first), (ended, last) = progress[0], progress[-1]
    return LOAD.rate * (last - first) / 1e6 / (ended - began)


def _write(frame: DataFrame, folder: Path) -> StreamingQuery:
    writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
    checkpoint = str(folder / "checkpoint")
    return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def _watch(query: StreamingQuery) -> float:
    """Rows per second in the micro-batches after the warm-up."""
    query.awaitTermination()
    durations = [
        report["durationMs"]["triggerExecution"]
        for report in query.recentProgress
        if report["numInputRows"] or "addBatch" in report["durationMs"]
    ]
    counted = durations[WARM_UP : LOAD.batches]
    return LOAD.rows_per_file * len(counted) / (sum(counted) / 1000)


CONTENDERS: Final[dict[str, Callable[[Path], float]]] = {
    "Spark's groupBy(window)": by_spark,
    "Nilometer, files": by_nilometer,
    "Nilometer, from log to log": from_log,
    "Nilometer, log to log, shared engine": in_engine,
}


def measure(name: str) -> dict[str, Any]:
    """Rows per second after the warm-up, with checked results."""
    LOAD.folder("A", "log"), LOAD.folder("A", "parquet")
    with tempfile.TemporaryDirectory() as temporary:
        began = time.perf_counter()
        rate = CONTENDERS[name](Path(temporary))
        seconds = time.perf_counter() - began
        return {"rate": rate, "seconds": seconds, "windows": check(name, Path(temporary))}


def check(name: str, folder: Path) -> int:
    """The number of results; raises an error if one differs from DuckDB's."""
    if "log" in name:
        log = LogReader.open(folder / "results")
        batches = [frame.rows for frame in log.read(log.start)]
        stored = pa.Table.from_batches(batches).select(["e", "k", "n", "s"])
        table = "stored"
    else:
        table = f"'{folder}/out/*.parquet'"
    files = LOAD.folder("A", "parquet") / "*.parquet"
    right = (
        "SELECT date_trunc('minute', ts) + INTERVAL 1 MINUTE AS e, k, count(*) AS n, sum(v) AS s "
        f"FROM '{files}' GROUP BY ALL"
    )
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        if "log" in name:
            connection.register("stored", stored)
        [(results, ends, same)] = connection.execute(
            f"SELECT count(*), count(DISTINCT f.e), count(*) FILTER (WHERE f.n = r.n "
            f"AND abs(f.s - r.s) < 1e-6) FROM {table} f LEFT JOIN ({right}) r "
            "ON f.e = r.e AND f.k = r.k"
        ).fetchall()
        [(expected,)] = connection.execute(
            f"SELECT count(*) FROM ({right}) WHERE e IN (SELECT e FROM {table})"
        ).fetchall()
    if not results == same == expected or ends < 10:
        raise AssertionError(f"{name}: {results} results, {same} right, {expected} expected")
    return int(ends)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tumbling", description=__doc__)
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(options.one)))
        return 0
    table = Table("", "rows a second", "times Spark's own", "seconds in all", "windows")
    first = None
    for name in CONTENDERS:
        command = [sys.executable, "-m", "benchmarks.tumbling", "--one", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            table.add_row(name, *done.stderr.strip().splitlines()[-1:], "", "", "")
            continue
        one = json.loads(done.stdout.strip().splitlines()[-1])
        first = first or one["rate"]
        table.add_row(
            name,
            f"{one['rate']:,.0f}",
            f"{one['rate'] / first:.1f}",
            f"{one['seconds']:.0f}",
            f"{one['windows']}",
        )
    Console(highlight=False).print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
