"""What queries save that share the state of a sub-plan, beside the same queries by themselves.

Run separately: python -m benchmarks.shared_state [--queries 100] [--rows 200,2000]. One bucket of
the shared engine without Spark, two streams of 1000 rows a second each, windows of ten seconds,
1000 keys. Both ways of running must store the same results.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest import mock

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from nilometer.engine.held_queries import HeldQueries
from nilometer.engine.sharing import Sharing
from nilometer.log.layout import TIMESTAMP
from nilometer.log.reader import LogReader
from tests.unit.test_engine import SCHEMA, STREAMS, World

KEYS: Final = 1000
RATE: Final = 1000
"""Rows a second in each stream."""
WINDOW: Final = 10
BATCHES: Final = 20
"""How many micro-batches are measured, once the windows are full."""
_WARM_UP_ROWS: Final = 2000
_CHECKED: Final = 5
_SECOND: Final = 1_000_000
STATEMENTS: Final = {
    "join, other select lists": "SELECT A.v + {n} AS a, B.v AS b FROM A, B WHERE A.k = B.k "
    f"WINDOW = {WINDOW} SECONDS",
    "COUNT and SUM by key, other columns": f"SELECT k, n, s + {{n}} AS t FROM (SELECT k, COUNT(*) "
    f"AS n, SUM(v) AS s FROM A [RANGE {WINDOW} SECONDS] GROUP BY k) AS S EMIT CHANGES",
}


@dataclass(frozen=True)
class Figures:
    """The cost of one way of running the queries."""

    millis: float
    """Processor time of a query in a micro-batch, with storing its results."""
    state: int
    stored: Sequence[pa.Table]
    """The results of some of the queries, sorted."""
    rows: Sequence[int]
    """The number of results of each of them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rows", default="200,2000", help="rows in a micro-batch")
    chosen = parser.parse_args()
    console = Console(highlight=False)
    table = Table("queries", "rows", "each by itself", "shared", "ratio", "state MB")
    for name, sql in STATEMENTS.items():
        for rows in map(int, chosen.rows.split(",")):
            with console.status(f"{name}, {rows} rows"):
                alone = measure(sql, chosen.queries, rows, is_shared=False)
                shared = measure(sql, chosen.queries, rows, is_shared=True)
            if (alone.rows, alone.stored) != (shared.rows, shared.stored):
                raise SystemExit(f"{name}: queries that share have other results")
            table.add_row(
                f"{chosen.queries} x {name}",
                str(rows),
                f"{alone.millis:.2f} ms",
                f"{shared.millis:.2f} ms",
                f"{alone.millis / shared.millis:.1f}",
                f"{alone.state / 1e6:.2f} and {shared.state / 1e6:.2f}",
            )
    console.print(table)


def measure(sql: str, queries: int, rows: int, *, is_shared: bool) -> Figures:
    """Run the queries until their windows are full, then measure."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(World(Path(folder))) as world,
        _sharing(allowed=is_shared),
    ):
        world.control.cores = 1
        source = _Source(world)
        names = [f"q{number}" for number in range(queries)]
        for number, name in enumerate(names):
            world.start(name, sql.format(n=number), world.ends())
        while source.now < (WINDOW + 1) * _SECOND:
            source.append(_WARM_UP_ROWS)
            _run(world)
        source.append(rows)
        _run(world)
        spent = 0.0
        for _ in range(BATCHES):
            source.append(rows)
            begun = time.process_time()
            _run(world)
            spent += time.process_time() - begun
        subplans = world.workers[0][0]._held.subplans()
        if (len(subplans) == 1) != is_shared and queries > 1:
            raise SystemExit(f"{queries} queries have {len(subplans)} sub-plans")
        world.settle()
        logs = [LogReader.open(world.results(name)) for name in names]
        return Figures(
            1000 * spent / BATCHES / queries,
            sum(one.state_bytes for one in subplans),
            [_sorted(log) for log in logs[:: -(-queries // _CHECKED)]],
            [log.end.row for log in logs],
        )


@contextmanager
def _sharing(*, allowed: bool) -> Iterator[None]:
    if allowed:
        yield
        return
    with (
        mock.patch.object(Sharing, "find", return_value=None),
        mock.patch.object(HeldQueries, "_subplan_like", return_value=None),
    ):
        yield


class _Source:
    """Appends the same rows to both streams in every run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = np.random.default_rng(1)
        self.now = 0

    def append(self, rows: int) -> None:
        """So many rows, half of them in each stream."""
        each = rows // len(STREAMS)
        times = self.now + (np.arange(each) + 1) * (_SECOND // RATE)
        for name in STREAMS:
            columns = [
                pa.array(self._chance.integers(0, KEYS, each)),
                pa.array(self._chance.integers(0, 100, each)),
                pa.array(times).cast(TIMESTAMP),
            ]
            batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
            self._world.writers[name].append(batch, watermark=int(times[-1]))
        self.now = int(times[-1])


def _run(world: World) -> None:
    """A micro-batch, and its results stored."""
    world.run(0)
    world.publisher.step()


def _sorted(log: LogReader) -> pa.Table:
    batches = [one.rows for one in log.read(log.start)]
    table = pa.Table.from_batches(batches, log.layout.stored)
    return table.sort_by([(name, "ascending") for name in table.column_names])


if __name__ == "__main__":
    main()
