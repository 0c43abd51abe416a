"""An engine: one streaming query of Spark that stays, and the queries that it runs."""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.engine.control import EngineControl, Report
from nilometer.engine.failure import read_failure
from nilometer.engine.plan import HostedPlan
from nilometer.engine.plan_set import PlanEntry
from nilometer.engine.publisher import shown_up_to, stuck_queries, stuck_results
from nilometer.errors import NilometerError
from nilometer.spark.engine_source import NAME, EngineSource
from nilometer.spark.failures import explain_failure
from nilometer.spark.pools import started_in_pool
from nilometer.spark.register_source import register_source
from nilometer.spark.shared_folders import require_shared
from nilometer.spark.ship import pickle_work

_CHECKPOINT: Final = "spark"
_STOP_WITHIN: Final = 30.0
_MOMENT: Final = 0.02
_MOST_BUCKETS: Final = 4
_KEPT_REPORTS: Final = 50
_CHEAP: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.pollingDelay": "1ms",
}
"""What makes a micro-batch of a few tasks without rows cheaper."""


class Engine:
    """The engine of one database; for any number of threads."""

    def __init__(self, session: SparkSession, folder: Path, beats: float, known: set[str]) -> None:
        """`known` are the ids of the queries that may have state here."""
        self._session = session
        self._folder = folder
        self._beats = beats
        self._lock = threading.RLock()
        self._looking = threading.Lock()
        self._hosted: dict[str, HostedQuery] = {}
        self._query: StreamingQuery | None = None
        cores = session.sparkContext.defaultParallelism if hasattr(session, "_sc") else 2
        self._control = EngineControl(folder, max(1, min(_MOST_BUCKETS, cores)))
        self._control.open(known)

    def host(self, query: str, plan: HostedPlan, entry: PlanEntry) -> HostedQuery:
        """Let a query run, from now on or again."""
        with self._lock:
            logs = [feed.log for feed in plan.feeds]
            require_shared(self._session, [entry.results, str(self._folder), *logs])
            self._take_reports()  # what is said of an earlier attempt is not said of this one
            self._start()
            self._control.run(pickle_work(plan), entry)
            made = self._hosted[query] = HostedQuery(self, query)
            return made

    def together(self) -> AbstractContextManager[None]:
        """Queries that are hosted meanwhile begin at once."""
        return self._control.together()

    def drop(self, query: str) -> None:
        """Forget the state of a query."""
        self._control.drop(query)

    def look(self) -> None:
        """Take in what buckets say; start Spark's query again if it has ended."""
        self._take_reports()
        self._start_again()

    def _take_reports(self) -> None:
        with self._looking:
            for report in self._control.reports():
                hosted = self._hosted.get(report.query)
                if hosted is not None:
                    hosted.take(report)
            for query in stuck_queries(self._folder):
                hosted, why = self._hosted.get(query), stuck_results(self._folder, query)
                if hosted is not None and why is not None:
                    hosted.fail(read_failure(why))

    def _start_again(self) -> None:
        """Start Spark's query if it has ended; if that fails, so do all that it ran."""
        with self._lock:
            if self._query is None or self._query.isActive:
                return
            active = [one for one in self._hosted.values() if one.isActive]
            try:
                if active:
                    self._start()
            except Exception as error:  # whatever Spark says
                for one in active:
                    one.fail(explain_failure(error))

    def _start(self) -> None:
        """Start Spark's query unless it runs; what it kept before is of no use."""
        if self._query is not None and self._query.isActive:
            return
        checkpoints = self._folder / _CHECKPOINT
        shutil.rmtree(checkpoints, ignore_errors=True)
        session = self._session.newSession() if hasattr(self._session, "_sc") else self._session
        if session is not self._session:
            for name, value in _CHEAP.items():
                session.conf.set(name, value)
        register_source(session, EngineSource)
        rows = (
            session.readStream.format(NAME)
            .option("folder", str(self._folder))
            .option("beats", str(self._beats))
            .load()
        )
        with started_in_pool(self._session, "engine"):
            self._query = (
                rows.writeStream.format("noop")
                .option("checkpointLocation", str(checkpoints / uuid4().hex))
                .queryName("engine")
                .start()
            )

    def stop(self, query: str) -> None:
        """Let a query run no more; what it has done is in its log once this returns."""
        bucket, revision = self._control.stop(query)
        self._hosted.pop(query, None)
        self._wait(bucket, revision)

    def _wait(self, bucket: int, revision: int) -> None:
        until = time.monotonic() + _STOP_WITHIN
        while time.monotonic() < until and self._is_running():
            self.look()
            last = self._control.last(bucket)
            is_done = self._control.follows(bucket, revision)
            if is_done and shown_up_to(self._folder, bucket) >= last:
                return
            time.sleep(_MOMENT)

    def _is_running(self) -> bool:
        query = self._query
        return query is not None and query.isActive

    def close(self) -> None:
        """Stop Spark's query."""
        with self._lock:
            query, self._query = self._query, None
        if query is not None:
            with suppress(Exception):  # Spark may be gone already
                query.stop()


@dataclass
class HostedQuery:
    """A query of an engine, which tells of itself as a streaming query of Spark does."""

    engine: Engine
    query: str
    name: str = ""
    _error: NilometerError | None = None
    _is_stopped: bool = False
    _progress: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=_KEPT_REPORTS))

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self._error is None and not self._is_stopped

    def exception(self) -> NilometerError | None:
        """Why it has failed, if it has."""
        return self._error

    @property
    def lastProgress(self) -> Mapping[str, Any] | None:  # noqa: N802
        return self._progress[-1] if self._progress else None

    @property
    def recentProgress(self) -> Sequence[Mapping[str, Any]]:  # noqa: N802
        return list(self._progress)

    def stop(self) -> None:
        """Let it run no more."""
        if not self._is_stopped:
            self._is_stopped = True
            self.engine.stop(self.query)

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        """It has ended once `stop` returns."""
        return not self.isActive

    def take(self, report: Report) -> None:
        """What its bucket says."""
        told = report.told
        if "failure" in told:
            self.fail(read_failure(told["failure"]))
        elif "metrics" in told:
            self._progress.append(_progress(report))

    def fail(self, error: NilometerError) -> None:
        """It cannot go on."""
        if self.isActive:
            self._error = error


def _progress(report: Report) -> dict[str, Any]:
    """A report in the form of Spark's."""
    told = report.told
    observed = {f"nilometer-{n}": {"buckets": [one]} for n, one in enumerate(told["metrics"])}
    began = datetime.fromtimestamp(report.time / 1_000_000, UTC)
    return {
        "batchId": report.number,
        "timestamp": began.isoformat(),
        "durationMs": {"addBatch": told["millis"], "triggerExecution": told["millis"]},
        "observedMetrics": observed,
    }
