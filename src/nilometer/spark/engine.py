"""An engine: a long-lived Spark streaming query, and the queries that it runs."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.engine.control import EngineControl, Report
from nilometer.engine.failure import read_failure
from nilometer.engine.place import write_address
from nilometer.engine.plan import HostedPlan
from nilometer.engine.plan_set import APART, PlanEntry
from nilometer.engine.publisher import shown_up_to, stuck_queries, stuck_results
from nilometer.engine.serve_folder import FolderServer
from nilometer.errors import LogError, NilometerError, SessionError, SlowQueryError
from nilometer.log.clock import now_micros
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import release_all
from nilometer.spark.engine_events import tell_moved, tell_restart
from nilometer.spark.engine_source import NAME, EngineSource
from nilometer.spark.engine_status import EngineStatus, last_seconds, progress_of
from nilometer.spark.exchange import is_on_one_machine
from nilometer.spark.failures import explain_failure
from nilometer.spark.pools import started_in_pool
from nilometer.spark.register_source import register_source
from nilometer.spark.shared_folders import require_shared
from nilometer.spark.ship import pickle_work

PORT: Final = "spark.nilometer.driver.port"
"""The setting of the port at which executors reach the engine's files; any free one by default."""
_CHECKPOINTS: Final = "spark"
_SLOW_MILLIS: Final = 2000
_SLOW_BATCHES: Final = 3
"""A query that is slow in this many consecutive micro-batches is moved apart."""
_STOP_WITHIN: Final = 30.0
_CLOSE_WITHIN: Final = 10.0
_MOMENT: Final = 0.02
_LONGEST_PAUSE: Final = 30.0
_MOST_BUCKETS: Final = 4
_KEPT_REPORTS: Final = 50
_CHEAP: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.pollingDelay": "1ms",
}
"""Settings that make a micro-batch of a few tasks without rows cheaper."""


class Engine:
    """The engine of one database; thread-safe.

    One Spark streaming query runs all buckets that queries share. A query that keeps others
    waiting is moved to a bucket with a streaming query of its own.
    """

    def __init__(
        self, session: SparkSession, folder: Path, beats: float, known: set[str], logs: str
    ) -> None:
        """`known`: the ids of queries that may have state here; `logs`: the folder of the logs."""
        self._session = session
        self._run = uuid4().hex
        """What workers cache of a folder is for this engine only: another may use it later."""
        self._folder = folder
        self._beats = beats
        self._lock = threading.RLock()
        self._looking = threading.Lock()
        self.restarts = 0
        """How many times a Spark streaming query ended and had to be restarted."""
        self._hosted: dict[str, HostedQuery] = {}
        self._running: dict[int, StreamingQuery] = {}
        """Spark's queries, by their first bucket."""
        self._troubles: dict[int, _Trouble] = {}
        """Why they ended, if they did, until they work again."""
        cores = session.sparkContext.defaultParallelism if hasattr(session, "_sc") else 2
        self._control = EngineControl(folder, max(1, min(_MOST_BUCKETS, cores)))
        self._control.open(known, logs)
        shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)
        self._server = _serve(session, folder)

    def host(self, query: str, plan: HostedPlan, entry: PlanEntry) -> HostedQuery:
        """Run a query, or resume it."""
        with self._lock:
            needed = [feed.log for feed in plan.feeds]
            if self._server is None:
                needed += [entry.results, str(self._folder)]
            require_shared(self._session, needed)
            self._take_reports()  # reports on an earlier attempt do not concern this one
            before = self._control.entry(query)
            self._start(0 if before is None else _first(before.bucket))
            self._control.run(pickle_work(plan), entry)
            made = self._hosted[query] = HostedQuery(self, query)
            return made

    def warm_up(self) -> None:
        """Start Spark's query before the first query needs it."""
        with self._lock:
            self._start(0)

    def together(self) -> AbstractContextManager[None]:
        """Start the queries hosted in this block together."""
        return self._control.together()

    def drop(self, query: str) -> None:
        """Stop a query and delete its state; it may still run for a moment.

        What it emits then is discarded.
        """
        entry = self._control.entry(query)
        hosted = self._hosted.pop(query, None)
        if hosted is not None:
            hosted.is_stopped = True
        self._control.drop(query)
        if entry is not None and entry.bucket >= APART:
            with self._lock:
                self._stop_spark(self._running.pop(entry.bucket, None))

    def logs_of(self, query: str) -> Sequence[tuple[str, str]]:
        """The logs that a query reads, with its reader names."""
        entry = self._control.entry(query)
        return () if entry is None else [(log, name) for log, name in entry.logs]

    def is_apart(self, query: str) -> bool:
        """Whether a query was moved to a bucket of its own."""
        entry = self._control.entry(query)
        return entry is not None and entry.bucket >= APART

    def look(self) -> None:
        """Read the buckets' reports, and restart Spark's queries that have ended."""
        self._take_reports()
        self._start_again()
        for query, hosted in list(self._hosted.items()):
            if hosted.is_slow and hosted.isActive:
                hosted.is_slow = False
                if not self.is_apart(query):
                    move = partial(self._move_apart, query, hosted)
                    threading.Thread(target=move, name="move", daemon=True).start()

    @property
    def status(self) -> EngineStatus:
        """The number of queries, and how long their last micro-batches took."""
        hosted = [one for one in list(self._hosted.values()) if one.isActive]
        apart = sum(one.is_apart for one in hosted)
        running = list(self._running.values())
        return EngineStatus(len(hosted) - apart, apart, self.restarts, last_seconds(running))

    def _take_reports(self) -> None:
        with self._looking:
            for report in self._control.reports():
                self._troubles.pop(_first(report.bucket), None)
                hosted = self._hosted.get(report.query)
                if hosted is not None and not self._is_old(report):
                    hosted.take(report)
            for query in stuck_queries(self._folder):
                hosted, entry = self._hosted.get(query), self._control.entry(query)
                if hosted is None or entry is None:
                    continue
                if (why := stuck_results(self._folder, query, entry.attempt)) is not None:
                    hosted.fail(read_failure(why))

    def _is_old(self, report: Report) -> bool:
        """Whether a report is about the failure of an earlier attempt."""
        entry, attempt = self._control.entry(report.query), report.told.get("attempt")
        return entry is not None and attempt is not None and attempt != entry.attempt

    def _start_again(self) -> None:
        """Restart Spark's queries that have ended: soon at first, then with growing delays."""
        with self._lock:
            for bucket, query in list(self._running.items()):
                if not query.isActive:
                    del self._running[bucket]
                    self._has_failed(bucket, query.exception())
            now = time.monotonic()
            for bucket, trouble in list(self._troubles.items()):
                if bucket not in self._running and trouble.next_try <= now:
                    try:
                        self._start(bucket)
                    except Exception as error:  # whatever Spark raises
                        self._has_failed(bucket, error)

    def _has_failed(self, bucket: int, error: Exception | None) -> None:
        before = self._troubles.get(bucket)
        failures = 1 if before is None else before.failures + 1
        told = SessionError("the engine was stopped") if error is None else explain_failure(error)
        pause = min(_LONGEST_PAUSE, 0.25 * 2**failures)
        self._troubles[bucket] = _Trouble(told, failures, time.monotonic() + pause)
        self.restarts += 1
        tell_restart(bucket, told, failures)

    def trouble(self, query: str) -> NilometerError | None:
        """Why the engine of a query currently does not work, if it does not."""
        entry = self._control.entry(query)
        found = None if entry is None else self._troubles.get(_first(entry.bucket))
        return None if found is None else found.error

    def _start(self, bucket: int) -> None:
        """Start Spark's query of a bucket unless it runs; an earlier checkpoint is not reused."""
        if bucket in self._running and self._running[bucket].isActive:
            return
        try:
            self._running[bucket] = self._start_in_spark(bucket)
        except Exception:  # a Python process of Spark's may have ended: the next one is new
            self._running[bucket] = self._start_in_spark(bucket)

    def _start_in_spark(self, bucket: int) -> StreamingQuery:
        session = self._session
        if hasattr(session, "_sc"):
            session = session.newSession()
            for name, value in _CHEAP.items():
                session.conf.set(name, value)
        register_source(session, EngineSource)
        rows = (
            session.readStream.format(NAME)
            .option("folder", str(self._folder))
            .option("beats", str(self._beats))
            .option("bucket", str(bucket))
            .option("run", self._run)
            .load()
        )
        place = f"engine of {self._folder.parent.name}"
        name = place if bucket == 0 else f"{place}, bucket {bucket}"
        checkpoint = self._folder / _CHECKPOINTS / uuid4().hex
        with started_in_pool(self._session, name):
            writer = rows.writeStream.format("noop").queryName(name)
            return writer.option("checkpointLocation", str(checkpoint)).start()

    def _move_apart(self, query: str, hosted: HostedQuery) -> None:
        """Move a query that keeps others waiting to a bucket of its own."""
        before = self._control.entry(query)
        if before is None or before.plan is None:
            return
        bucket, revision = self._control.stop(query)
        is_free = self._wait(bucket, revision)
        with self._lock:
            if not hosted.isActive or self._hosted.get(query) is not hosted:
                return  # it was stopped meanwhile
            if is_free:
                self._start(self._control.move_apart(query, before.plan))
                tell_moved(hosted.name or query)
            else:  # its bucket still works on it, and must not while it is moved
                self._control.go_on(query, before.plan)
                hosted.is_slow = True

    def stop(self, query: str) -> None:
        """Stop a query; what it has emitted is in its log once this returns."""
        bucket, revision = self._control.stop(query)
        self._hosted.pop(query, None)
        self._wait(bucket, revision)
        if bucket >= APART:
            with self._lock:
                self._stop_spark(self._running.pop(bucket, None))

    def _wait(self, bucket: int, revision: int, most: float = _STOP_WITHIN) -> bool:
        """Wait until a bucket follows a revision and its results are readable; whether it does."""
        until = time.monotonic() + most
        while time.monotonic() < until:
            query = self._running.get(_first(bucket))
            if query is None or not query.isActive:
                return False
            self._take_reports()
            is_done = self._control.follows(bucket, revision)
            if is_done and shown_up_to(self._folder, bucket) >= self._control.last(bucket):
                return True
            time.sleep(_MOMENT)
        return False

    def wait_for_rows(self, hosted: HostedQuery) -> None:
        """Wait until a query has processed what its logs hold now, or has failed."""
        entry = self._control.entry(hosted.query)
        ends = [LogReader.open(log).end for log, _ in entry.logs] if entry is not None else []
        while entry is not None and hosted.isActive:
            self.look()
            read = hosted.positions
            if read and all(at >= end for at, end in zip(read, ends, strict=True)):
                self._wait(entry.bucket, -1)
                return
            time.sleep(_MOMENT)
            entry = self._control.entry(hosted.query)

    def close(self) -> None:
        """Stop all queries, and Spark's; results emitted so far become readable first."""
        with suppress(OSError):  # a full disk: they are stopped all the same
            self._stop_all()
        for hosted in self._hosted.values():
            hosted.is_stopped = True
        with self._lock:
            running, self._running = self._running, {}
        for query in running.values():
            self._stop_spark(query)
        if self._server is not None:
            self._server.close()

    def _stop_all(self) -> None:
        revision, readers = self._control.stop_all()
        for bucket in self._control.buckets():
            self._wait(bucket, revision, _CLOSE_WITHIN)
        for log, names in readers.items():
            with suppress(LogError, OSError):  # a log that was dropped
                release_all(log, names, now=now_micros())

    def _stop_spark(self, query: StreamingQuery | None) -> None:
        if query is not None:
            with suppress(Exception):  # Spark may be gone already
                query.stop()


def _serve(session: SparkSession, folder: Path) -> FolderServer | None:
    """Serve the folder to the executors of a cluster, which do not share it."""
    write_address(folder, None)
    if is_on_one_machine(session) or not hasattr(session, "_sc"):
        return None
    config = session.sparkContext.getConf()
    host = config.get("spark.driver.host") or socket.gethostname()
    bind, port = config.get("spark.driver.bindAddress"), config.get(PORT) or "0"
    try:
        server = FolderServer(folder, host, bind=bind, port=int(port))
    except (OSError, ValueError) as error:
        raise SessionError(
            "cannot listen for the executors of the cluster",
            detail=f"{bind or host}, port {port}: {error}",
            hint=f"set spark.driver.bindAddress, and {PORT} to a free port, or leave that out",
        ) from None
    write_address(folder, server.address)
    return server


@dataclass(frozen=True)
class _Trouble:
    """A Spark query that has ended."""

    error: NilometerError
    failures: int
    next_try: float


def _first(bucket: int) -> int:
    """The first of the buckets that run together with this one."""
    return bucket if bucket >= APART else 0


@dataclass
class HostedQuery:
    """A query of an engine, with the interface of a Spark streaming query."""

    engine: Engine
    query: str
    name: str = ""
    _error: NilometerError | None = None
    is_stopped: bool = False
    is_slow: bool = False
    """Whether it keeps others waiting."""
    positions: Sequence[Position] = ()
    """How far it has read each of its logs, as far as known."""
    _slow_batches: int = 0
    _progress: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=_KEPT_REPORTS))

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self._error is None and not self.is_stopped

    @property
    def logs(self) -> Sequence[tuple[str, str]]:
        """The logs that it reads, with its reader names."""
        return self.engine.logs_of(self.query)

    @property
    def trouble(self) -> NilometerError | None:
        """Why its engine currently does not work, if it does not."""
        return self.engine.trouble(self.query)

    @property
    def is_apart(self) -> bool:
        """Whether it was moved to a bucket of its own."""
        return self.engine.is_apart(self.query)

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
        """Stop the query."""
        if not self.is_stopped:
            self.is_stopped = True
            self.engine.stop(self.query)

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        """Nothing to wait for: the query has ended once `stop` returns."""
        return not self.isActive

    def processAllAvailable(self) -> None:  # noqa: N802
        """Wait until the results of all rows that are stored now are readable."""
        self.engine.wait_for_rows(self)

    def take(self, report: Report) -> None:
        """Take in a report of its bucket."""
        told = report.told
        if "positions" in told:
            self.positions = [Position.from_json(one) for one in told["positions"]]
        if "failure" in told:
            error = read_failure(told["failure"])
            if isinstance(error, SlowQueryError):
                self.is_slow = True
            else:
                self.fail(error)
        elif "metrics" in told:
            self._progress.append(progress_of(report))
            slow = told["millis"] > _SLOW_MILLIS and report.bucket < APART
            self._slow_batches = self._slow_batches + 1 if slow else 0
            self.is_slow |= self._slow_batches >= _SLOW_BATCHES

    def fail(self, error: NilometerError) -> None:
        """Mark the query as failed."""
        if self.isActive:
            self._error = error
