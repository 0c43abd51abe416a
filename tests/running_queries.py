"""Named queries without Spark: handles that fail and report on a test's command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from nilometer.database import lifecycle, new_queries
from nilometer.database.home import Home
from nilometer.database.known import Known, Reading
from nilometer.database.new_queries import NewQuery
from nilometer.database.query_status import QueryPhase
from nilometer.database.run_settings import RunSettings
from nilometer.database.running import RunningQueries
from nilometer.log.layout import TIME, TIMESTAMP, LogLayout
from nilometer.log.options import LogOptions
from nilometer.log.writer import LogWriter
from nilometer.spark.inputs import Inputs
from nilometer.spark.start_query import Destination
from nilometer.sql.parse.query_text import Statement
from nilometer.sql.plan.changes_plan import Plan
from nilometer.sql.statements import read_query
from tests.patience import wait_for

SECOND = 1_000_000
LAYOUT = LogLayout(pa.schema([("k", pa.int64()), (TIME, TIMESTAMP)]), TIME)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def worker_error(text: str) -> PySparkException:
    """Spark's message for an error that a Python worker has raised."""
    return PySparkException(
        "[PYTHON_EXCEPTION] An exception was thrown: Traceback (most recent call last):\n"
        f'  File "log.py", line 1, in read\nnilometer.errors.{text}\n'
    )


def lost_worker() -> PySparkException:
    return PySparkException("[STREAM_FAILED] Python worker exited unexpectedly (crashed)")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: int = 1_000 * SECOND) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def go_on(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


class Handle:
    """A streaming query as Spark presents it."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        self.isActive = True
        self.recentProgress: list[dict[str, Any]] = []
        self.was_stopped = False
        self._error: PySparkException | None = None

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> PySparkException | None:
        return self._error

    def fail(self, error: PySparkException) -> None:
        self.isActive, self._error = False, error

    def stop(self) -> None:
        self.isActive, self.was_stopped = False, True

    def awaitTermination(self, timeout: float) -> bool:
        return True

    def report(self, batch: int, at: int, *, rows: int = 0, state: int = 0) -> None:
        """Let Spark report a micro-batch."""
        bucket = (
            f'{{"names": ["A"], "internal": [false], "copies": [1], "rows": [{rows}], '
            '"late": [3], "without_time": [0], "shed": [0], "buffered": [0], '
            f'"watermarks": [{at - SECOND}], '
            f'"results": 0, "state_bytes": {state}, "chunks": 0, '
            f'"buckets": 1, "bucket": 0, "look": [{rows}, 0, []]}}'
        )
        self.recentProgress.append(
            {
                "batchId": batch,
                "timestamp": (_EPOCH + timedelta(microseconds=at)).isoformat(),
                "durationMs": {"addBatch": 90, "triggerExecution": 120},
                "observedMetrics": {"nilometer-1": {"buckets": [bucket]}},
            }
        )

    def report_nothing(self, batch: int, at: int) -> None:
        """Let Spark report that there was nothing to do."""
        self.report(batch, at)
        self.recentProgress[-1]["durationMs"] = {"triggerExecution": 1}


class Starts:
    """Stands in for `start_query`: keeps handles by name, and fails as often as it is told to."""

    def __init__(self) -> None:
        self.handles: dict[str, Handle] = {}
        self.plans: dict[str, Any] = {}
        self.errors: dict[str, list[Exception]] = {}
        self.count = 0

    def __call__(self, plan: Any, frames: Any, destination: Destination, beats: int) -> Handle:
        name = str(destination.name)
        self.count += 1
        self.plans[name] = plan
        if self.errors.get(name):
            raise self.errors[name].pop(0)
        LogWriter.open(destination.location, LAYOUT, LogOptions()).close()
        self.handles[name] = Handle(destination)
        return self.handles[name]


BUCKETS = 2


class Planned:
    """A plan of which only the buckets are read."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets


def no_plan(statement: Statement, reading: Reading, buckets: int | None) -> tuple[Plan, Known]:
    return cast("Plan", Planned(buckets or BUCKETS)), Known({}, cast("Inputs", None), {})


@contextmanager
def open_queries(
    folder: Path, starts: Starts, patch: pytest.MonkeyPatch, settings: RunSettings | None = None
) -> Iterator[tuple[Home, RunningQueries]]:
    """A database's queries over fake handles; the supervisor checks only when told to."""
    patch.setattr(lifecycle, "start_query", starts)
    patch.setattr(new_queries, "reads_tables_alone", lambda plan: False)
    home = Home(folder, None, None, lambda rows, where: set())
    queries = RunningQueries(home, no_plan, 1, settings or RunSettings(look_every=3600))
    try:
        yield home, queries
    finally:
        queries.close()
        home.close()


def create(queries: RunningQueries, name: str, text: str = "SELECT k FROM A", **given: Any) -> None:
    """CREATE QUERY."""
    assert queries.create(NewQuery(name, read_query(text), **given))


def append_results(home: Home, name: str, rows: int, watermark: int | None = None) -> None:
    """Let a query produce results."""
    batch = pa.RecordBatch.from_arrays(
        [pa.array(range(rows), pa.int64()), pa.array([0] * rows, TIMESTAMP)], schema=LAYOUT.stored
    )
    with LogWriter.open(home.log_of(name), LAYOUT) as log:
        log.append(batch, watermark=watermark)


@dataclass
class Bench:
    """A database's queries over fake handles."""

    home: Home
    queries: RunningQueries
    starts: Starts
    clock: Clock

    def phase(self, name: str) -> QueryPhase:
        return self.queries.status(name).phase

    def fails(self, name: str, error: Exception) -> None:
        """Let a query fail, and be noticed."""
        self.starts.handles[name].fail(error)  # type: ignore[arg-type]
        self.queries.look()

    def is_tried(self, name: str) -> None:
        """Check until a query that is due has been retried."""
        before = self.starts.count
        self.queries.look()
        wait_for(lambda: self.starts.count > before)
        with self.queries._runs.alone(name):
            pass
