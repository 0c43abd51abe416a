"""`python -m benchmarks.cluster`: what a row costs on one, two and three workers of a real cluster.

Master and workers are processes of their own, with one core for each worker. This machine has fewer
cores than that, so wall time says little: counted are the processor time of executors (Java and
Python) and of the driver for each row, the bytes that executors exchange, and those of state and
results that go by way of the driver. What is read from logs is not counted. The results of
each run are compared with DuckDB's. The last run has as many buckets as a cluster of sixty cores:
what it takes beyond the one before is what tasks cost. docs/cluster.md says what follows from it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import duckdb
import psutil
import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.loads import Load
from benchmarks.log_queries import open_logs, start_statement
from nilometer.engine.channel import Channel
from nilometer.engine.plan import HostedPlan, OpenedFeed, make_plan
from nilometer.engine.plan_set import PlanEntry
from nilometer.local.database import NoEngine
from nilometer.log.reader import LogReader
from nilometer.log.writer import make_log
from nilometer.spark.engine import SharedEngine
from nilometer.spark.inputs import describe_log
from nilometer.spark.session import start_in_background
from nilometer.spark.webhdfs import _Connection as FileConnection
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.statements import read_query
from tests.spark_cluster import SparkCluster, spark_cluster

LOAD: Final = Load(streams=2, keys=10_000, rate=1000, batches=14)
RUNS: Final = ((1, 6), (2, 6), (3, 6), (3, 60))
"""Numbers of workers and of buckets; buckets are a multiple of the workers."""
QUERIES: Final = 12
_SILENCE: Final = 5.0
JOIN: Final = (
    "SELECT A.v AS a, B.v AS b FROM A, B WINDOW (A, B) = 10 SECONDS WHERE A.k = B.k AND A.k < 500"
)
COUNTS: Final = (
    "SELECT window_end AS e, k % 100 AS g, COUNT(*) AS n "
    "FROM TUMBLE(TABLE A, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_end, k % 100"
)
_CONFIG: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "700m",
    # Executors have the same host, but not the same disk.
    "spark.shuffle.readHostLocalDisk": "false",
}


@dataclass(frozen=True)
class Cost:
    """What a run has taken."""

    rows: int
    seconds: float
    executors: float
    """Seconds of processor time, and likewise of the driver with its processes."""
    driver: float
    moved: int
    """Bytes that executors wrote for one another."""
    served: int
    """Bytes of state, plans and results between executors and the driver, in both directions."""
    batches: int

    def line(self) -> tuple[str, ...]:
        return (
            f"{self.rows / self.seconds:,.0f}",
            f"{1e6 * self.executors / self.rows:.2f}",
            f"{1e6 * self.driver / self.rows:.2f}",
            str(self.batches),
            f"{1000 * self.driver / self.batches:.0f}",
            f"{self.moved / self.rows:.1f}",
            f"{self.served / self.rows:.1f}",
        )


class Served:
    """Counts the bytes of the driver's two servers of files, in this process."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        self._count(Channel, "send", lambda _, sent: sum(len(one) for one in chain(*sent[1:])))
        self._count(
            Channel, "receive", lambda received, _: 0 if received is None else len(received[1])
        )
        self._count(FileConnection, "take_file", lambda _, arguments: arguments[0].stat().st_size)
        self._count(FileConnection, "send_file", lambda _, arguments: _sent(*arguments))

    def _count(self, kind: type, name: str, size: Callable[[Any, Sequence[Any]], int]) -> None:
        do = getattr(kind, name)

        def counted(of: Any, *arguments: Any) -> Any:
            result = do(of, *arguments)
            with self._lock, suppress(FileNotFoundError):  # deleted since it was sent
                self.bytes += size(result, arguments)
            return result

        setattr(kind, name, counted)


def _sent(file: Path, start: int, length: int | None) -> int:
    rest = max(0, file.stat().st_size - start)
    return rest if length is None else min(length, rest)


SERVED: Final = Served()


class Meter:
    """Adds up what processes have used since it was made."""

    def __init__(self, session: SparkSession, cluster: SparkCluster) -> None:
        self._session = session
        self._cluster = cluster
        used = self._executors(), self._driver(), self._moved()
        self._begun = (time.perf_counter(), *used, SERVED.bytes)

    def cost(self, rows: int, batches: int, until: float | None = None) -> Cost:
        seconds, executors, driver, moved, served = self._begun
        now = time.perf_counter() if until is None else until
        return Cost(
            rows,
            now - seconds,
            self._executors() - executors,
            self._driver() - driver,
            self._moved() - moved,
            SERVED.bytes - served,
            batches,
        )

    def _executors(self) -> float:
        return sum(_used(_family(worker.pid)) for worker in self._cluster.workers)

    def _driver(self) -> float:
        others = {one.pid for worker in self._cluster.workers for one in _family(worker.pid)}
        return _used(one for one in _family(os.getpid()) if one.pid not in others)

    def _moved(self) -> int:
        store: Any = self._session.sparkContext._jsc.sc().statusStore()
        executors = store.executorList(False)
        return sum(executors.apply(one).totalShuffleWrite() for one in range(executors.size()))


def _family(pid: int) -> list[psutil.Process]:
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


def _used(processes: Iterable[psutil.Process]) -> float:
    """The processor time of processes, and of children of theirs that have ended."""
    total = 0.0
    for one in processes:
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def own_engine(session: SparkSession, folder: Path, cluster: SparkCluster) -> Cost:
    """A join of two streams from logs to a log, in a streaming query of its own: all workers."""
    logs = open_logs(session, LOAD.first(2), LOAD.rows_per_file)
    query = start_statement(logs, JOIN, folder / "warm" / "checkpoint")
    _let_run(query, 2)
    meter = Meter(session, cluster)
    query = start_statement(
        open_logs(session, LOAD, LOAD.rows_per_file), JOIN, folder / "join" / "checkpoint"
    )
    query.awaitTermination()
    batches = len([one for one in query.recentProgress if one["numInputRows"]])
    return meter.cost(LOAD.rows, batches)


def _let_run(query: Any, batches: int) -> None:
    """Run some micro-batches, so that all workers have loaded what they need."""
    while query.isActive and len(query.recentProgress) < batches:
        time.sleep(0.1)
    query.stop()


def shared_engine(session: SparkSession, folder: Path, cluster: SparkCluster) -> Cost:
    """Twelve counts of one stream in the engine that they share: a core for each bucket."""
    log = str(LOAD.folder("A", "log"))
    reader = LogReader.open(log)
    catalog = Catalog({"A": describe_log("A", reader.layout)}, {}, NoEngine())
    plan = make_plan(compile_statement(read_query(COUNTS), catalog, 1), {})
    engine = SharedEngine(session, folder / "engine", 2.0, set(), str(folder))
    engine.warm_up()
    meter = Meter(session, cluster)
    names = [f"q{number}" for number in range(QUERIES)]
    with engine.together():
        for name in names:
            results = str(folder / name)
            feeds = tuple(
                OpenedFeed(one, log, reader.start, name, reader.layout) for one in plan.feeds
            )
            log_id = make_log(results, plan.layout)
            entry = PlanEntry(name, 0, None, results=results, log_id=log_id)
            engine.host(name, HostedPlan(plan, feeds, "zstd", None), entry)
    rows, heard = -1, time.perf_counter()
    while time.perf_counter() - heard < _SILENCE:
        time.sleep(0.1)
        reached = sum(LogReader.open(str(folder / name)).end.row for name in names)
        if reached != rows:
            rows, heard = reached, time.perf_counter()
    reports = (query.lastProgress for query in engine._streams.running)
    batches = sum(one["batchId"] + 1 for one in reports if one is not None)
    cost = meter.cost(QUERIES * LOAD.rows // LOAD.streams, batches, heard)
    engine.close()
    return cost


PARTS: Final[dict[str, Callable[[SparkSession, Path, SparkCluster], Cost]]] = {
    "a join, own engine": own_engine,
    "12 counts, shared engine": shared_engine,
}


def measure(workers: int, buckets: int) -> dict[str, Any]:
    """The costs on a cluster of so many workers, with checked results."""
    SERVED.begin()
    for name in LOAD.names:
        LOAD.folder(name, "log"), LOAD.folder(name, "parquet")
        LOAD.first(2).folder(name, "log")
    build = Path.cwd() / "build"
    with tempfile.TemporaryDirectory(dir=build) as temporary:
        folder = Path(temporary)
        with spark_cluster(folder, workers) as cluster:
            os.environ["PYSPARK_PYTHON"] = sys.executable
            session = start_in_background(
                name="benchmark",
                cores=None,
                config={**_CONFIG, "spark.sql.shuffle.partitions": str(buckets)},
                said=lambda _: None,
                master=cluster.url,
            )()
            figures = {name: vars(run(session, folder, cluster)) for name, run in PARTS.items()}
            session.stop()
        check(folder)
        shutil.rmtree(folder / "engine", ignore_errors=True)
    return figures


def check(folder: Path) -> None:
    """Raise an error if a result differs from DuckDB's."""
    files = {name: LOAD.folder(name, "parquet") / "*.parquet" for name in LOAD.names}
    pairs = (
        f"SELECT count(*), sum(A.v), sum(B.v) FROM '{files['A']}' A JOIN '{files['B']}' B "
        "ON A.k = B.k AND A.k < 500 AND abs(epoch_us(A.ts) - epoch_us(B.ts)) <= 10000000"
    )
    counts = (
        "SELECT count(*), sum(n) FROM (SELECT date_trunc('minute', ts) AS e, k % 100 AS g, "
        f"count(*) AS n FROM '{files['A']}' WHERE ts < (SELECT date_trunc('minute', max(ts)) "
        f"FROM '{files['A']}') GROUP BY ALL)"
    )
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        [(rows, a, b)] = connection.execute(pairs).fetchall()
        [expected] = connection.execute(counts).fetchall()
        connection.register("pairs", _table(folder / "join" / "results"))
        [same] = connection.execute("SELECT count(*), sum(a), sum(b) FROM pairs").fetchall()
        if same[0] != rows or abs(same[1] - a) > 1e-3 or abs(same[2] - b) > 1e-3:
            raise AssertionError(f"the join has {same}, and DuckDB {(rows, a, b)}")
        for number in range(QUERIES):
            connection.register("counts", _table(folder / f"q{number}"))
            [same] = connection.execute("SELECT count(*), sum(n) FROM counts").fetchall()
            if same != expected:
                raise AssertionError(f"query {number} has {same}, and DuckDB {expected}")


def _table(log: Path) -> pa.Table:
    reader = LogReader.open(str(log))
    return pa.Table.from_batches([one.rows for one in reader.read(reader.start)])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(*options.one)))
        return 0
    times = ("executors, µs a row", "driver, µs a row", "micro-batches", "driver, ms each")
    moved = ("bytes executors exchange a row", "bytes by way of the driver a row")
    table = Table("", "workers", "buckets", "rows a second", *times, *moved)
    for run in RUNS:
        numbers = [str(one) for one in run]
        command = [sys.executable, "-m", "benchmarks.cluster", "--one", *numbers]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr[-5000:], file=sys.stderr)
            return 1
        for name, cost in json.loads(done.stdout.strip().splitlines()[-1]).items():
            table.add_row(name, *numbers, *Cost(**cost).line())
    Console(highlight=False, width=160).print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
