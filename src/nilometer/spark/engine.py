"""An engine: the queries that it runs in the buckets of long-lived Spark streaming queries."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from nilometer.engine.balance import Balance
from nilometer.engine.control import BucketReport, EngineControl
from nilometer.engine.failure import read_failure
from nilometer.engine.plan import HostedPlan
from nilometer.engine.plan_set import APART, PlanEntry
from nilometer.engine.published import read_published
from nilometer.engine.publisher import shown_up_to
from nilometer.engine.stuck_results import stuck_queries, stuck_results
from nilometer.engine.subplan import cut_subplan
from nilometer.errors import LogError, NilometerError
from nilometer.log.clock import now_micros
from nilometer.log.reader import LogReader
from nilometer.log.registrations import release_all
from nilometer.spark.engine_events import tell_moved, tell_stayed
from nilometer.spark.engine_status import EngineStatus, last_seconds
from nilometer.spark.engine_streams import EngineStreams
from nilometer.spark.hosted_query import HostedQuery, SharedSubPlan
from nilometer.spark.serve_engine import serve_folder
from nilometer.spark.shared_folders import require_shared
from nilometer.spark.ship import pickle_work

_STOP_WITHIN: Final = 30.0
_CLOSE_WITHIN: Final = 10.0
_MOMENT: Final = 0.02
_MOST_BUCKETS: Final = 64
"""How many buckets queries share at most, however many cores there are: all have one publisher."""


class SharedEngine:
    """The engine of one database; thread-safe.

    One Spark streaming query runs all buckets that queries share. A query that keeps others
    waiting is moved to a bucket with a streaming query of its own.
    """

    def __init__(
        self, session: SparkSession, folder: Path, beats: float, known: set[str], logs: str
    ) -> None:
        """`known`: the ids of queries that may have state here; `logs`: the folder of the logs."""
        self._session = session
        self._folder = folder
        self._lock = threading.RLock()
        self._looking = threading.Lock()
        self._hosted: dict[str, HostedQuery] = {}
        self._sharing: Mapping[SharedSubPlan | None, Sequence[HostedQuery]] = {}
        """Queries by what they share."""
        self._balance = Balance()
        self._control = EngineControl(folder, self._cores())
        self._control.open(known, logs)
        self._streams = EngineStreams(session, folder, beats)
        self._server = serve_folder(session, folder)

    def _cores(self) -> int:
        """How many buckets can run at once; executors of a cluster come and go."""
        session = self._session
        cores = session.sparkContext.defaultParallelism if hasattr(session, "_sc") else 2
        return max(1, min(_MOST_BUCKETS, cores))

    def host(self, query: str, plan: HostedPlan, entry: PlanEntry) -> HostedQuery:
        """Run a query, or resume it."""
        with self._lock:
            needed = [feed.log for feed in plan.feeds]
            if self._server is None:
                needed += [entry.results, str(self._folder)]
            require_shared(self._session, needed)
            self._take_reports()  # reports on an earlier attempt do not concern this one
            before = self._control.entry(query)
            self._streams.start(0 if before is None else before.bucket)
            shared = cut_subplan(plan)[0].key
            self._control.run(pickle_work(plan), replace(entry, sub_plan=shared))
            hosted = self._hosted[query] = HostedQuery(self, query)
            return hosted

    def warm_up(self) -> None:
        """Start Spark's query before the first query needs it."""
        with self._lock:
            self._streams.start(0)

    def together(self) -> AbstractContextManager[None]:
        """Start the queries hosted in this block together."""
        return self._control.together()

    def drop(self, query: str) -> None:
        """Stop a query and delete its state; it may still run for a moment.

        What it emits then is discarded.
        """
        with self._lock:
            entry = self._control.entry(query)
            hosted = self._hosted.pop(query, None)
            if hosted is not None:
                hosted.is_stopped = True
            self._control.drop(query)
        if entry is not None and entry.bucket >= APART:
            with self._lock:
                self._streams.stop(entry.bucket)

    def logs_of(self, query: str) -> Sequence[tuple[str, str]]:
        """The logs that a query reads, with its reader names."""
        entry = self._control.entry(query)
        return () if entry is None else [(log, name) for log, name in entry.logs]

    def is_apart(self, query: str) -> bool:
        """Whether a query was moved to a bucket of its own."""
        entry = self._control.entry(query)
        return entry is not None and entry.bucket >= APART

    def sharing_with(self, hosted: HostedQuery) -> list[str]:
        """The names of the queries that share state with this one."""
        together = self._sharing.get(hosted.subplan, ()) if hosted.isActive else ()
        return [one.name for one in together if one is not hosted and one.isActive]

    def look(self) -> None:
        """Read the buckets' reports, and restart Spark's queries that have ended."""
        self._take_reports()
        with self._lock:
            self._streams.start_again()
        moves: dict[str, int | None] = {}
        for query, hosted in list(self._hosted.items()):
            if hosted.is_slow and hosted.isActive:
                hosted.is_slow = False
                if not self.is_apart(query):
                    moves[query] = None
        moves = {**self._even_out(), **moves}
        if moves:
            threading.Thread(target=self._move, args=(moves,), name="move", daemon=True).start()

    def _even_out(self) -> Mapping[str, int]:
        """The queries that should move, so that all cores have about as much to do."""
        with self._looking:
            if not self._balance.is_due:
                return {}
            self._control.cores = self._cores()
            return self._balance.moves(self._shared(), self._control.cores)

    def _shared(self) -> dict[str, int]:
        """The buckets of the queries that run together and could move."""
        stuck = {*stuck_queries(self._folder)}
        entries = (self._control.entry(query) for query in list(self._hosted))
        return {
            one.query: one.bucket
            for one in entries
            if one is not None
            and one.plan is not None
            and one.bucket < APART
            and one.query not in stuck
        }

    @property
    def status(self) -> EngineStatus:
        """The number of queries, and how long their last micro-batches took."""
        hosted = [one for one in list(self._hosted.values()) if one.isActive]
        apart = sum(one.is_apart for one in hosted)
        seconds = last_seconds(self._streams.running)
        return EngineStatus(len(hosted) - apart, apart, self._streams.restarts, seconds)

    def _take_reports(self) -> None:
        with self._looking:
            for report in self._control.reports():
                self._streams.has_worked(report.bucket)
                hosted = self._hosted.get(report.query)
                if hosted is not None and not self._is_old(report):
                    hosted.take(report)
                    self._balance.take(report.query, report.content.get("millis", 0) / 1000)
            self._sharing = _by_subplan(list(self._hosted.values()))
            for query in stuck_queries(self._folder):
                hosted, entry = self._hosted.get(query), self._control.entry(query)
                if hosted is None or entry is None:
                    continue
                if (why := stuck_results(self._folder, query, entry.attempt)) is not None:
                    hosted.fail(read_failure(why))

    def _is_old(self, report: BucketReport) -> bool:
        """Whether a report is about the failure of an earlier attempt."""
        entry, attempt = self._control.entry(report.query), report.content.get("attempt")
        return entry is not None and attempt is not None and attempt != entry.attempt

    def trouble(self, query: str) -> NilometerError | None:
        """Why the engine of a query currently does not work, if it does not."""
        entry = self._control.entry(query)
        return None if entry is None else self._streams.trouble(entry.bucket)

    def _move(self, moves: Mapping[str, int | None]) -> None:
        """Move queries with their state to these buckets; None: to buckets of their own."""
        plans, waits = dict[str, str](), dict[int, int]()
        with self._lock, self._control.together():
            for query in moves:
                before = self._control.entry(query)
                if before is not None and before.plan is not None:
                    plans[query] = before.plan
                    bucket, revision = self._control.stop(query)
                    waits[bucket] = max(revision, waits.get(bucket, 0))
        free = {bucket for bucket, one in waits.items() if self._wait_durable(bucket, one)}
        for query, plan in plans.items():
            with self._lock:
                hosted, entry = self._hosted.get(query), self._control.entry(query)
                if hosted is None or entry is None or not hosted.isActive or entry.plan is not None:
                    continue  # it was stopped meanwhile, and maybe started again
                if entry.bucket not in free:  # its bucket may still work on it
                    self._control.go_on(query, plan)
                    hosted.is_slow = moves[query] is None
                    continue
                try:
                    bucket = self._control.move(query, plan, moves[query])
                except (LogError, OSError) as error:
                    tell_stayed(hosted.name or query, error)
                    self._control.go_on(query, plan)
                    continue
                self._streams.start(bucket)
                if moves[query] is None:
                    tell_moved(hosted.name or query)

    def _wait_durable(self, bucket: int, revision: int) -> bool:
        """Wait until a bucket follows a revision and its results are durable; whether they are."""
        if not self._wait(bucket, revision):
            return False
        last, until = self._control.last(bucket), time.monotonic() + _STOP_WITHIN
        while read_published(self._folder, bucket) < last:
            if time.monotonic() > until:
                return False
            time.sleep(_MOMENT)
        return True

    def stop(self, query: str) -> None:
        """Stop a query; what it has emitted is in its log once this returns."""
        with self._lock:
            bucket, revision = self._control.stop(query)
            self._hosted.pop(query, None)
        self._wait(bucket, revision)
        if bucket >= APART:
            with self._lock:
                self._streams.stop(bucket)

    def _wait(self, bucket: int, revision: int, seconds: float = _STOP_WITHIN) -> bool:
        """Wait until a bucket follows a revision and its results are readable; whether it does."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not self._streams.is_active(bucket):
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
            self._streams.stop_all()
        if self._server is not None:
            self._server.close()

    def _stop_all(self) -> None:
        revision, readers = self._control.stop_all()
        for bucket in self._control.buckets():
            self._wait(bucket, revision, _CLOSE_WITHIN)
        for log, names in readers.items():
            with suppress(LogError, OSError):  # a log that was dropped
                release_all(log, names, now=now_micros())


def _by_subplan(
    queries: Iterable[HostedQuery],
) -> Mapping[SharedSubPlan | None, Sequence[HostedQuery]]:
    """Queries by what they share; those of which that is not known share nothing."""
    sharing: dict[SharedSubPlan | None, list[HostedQuery]] = {}
    for one in sorted(queries, key=lambda one: one.name):
        if one.subplan is not None:
            sharing.setdefault(one.subplan, []).append(one)
    return sharing
