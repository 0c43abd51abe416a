"""A bucket: runs the queries assigned to it, micro-batch by micro-batch.

It lives in a worker process, which may end or be replaced at any time: the bucket's files are
authoritative, and whatever other processes have added to them is read before anything else is
done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nilometer.engine.bucket_files import (
    BatchFile,
    KeptQuery,
    QueryEntry,
    batches_after,
    take_entries,
)
from nilometer.engine.failure import describe_failure
from nilometer.engine.held_queries import HeldQueries
from nilometer.engine.log_reads import LogReads, OpenLogs
from nilometer.engine.place import EnginePlace
from nilometer.engine.plan_set import APART, PlanEntry, PlanSet
from nilometer.engine.query_entries import query_entry, whole_entries
from nilometer.errors import InternalError, LogError, SessionError, SlowQueryError
from nilometer.log.position import Position

FLUSH_AFTER: Final = 0.5
"""The longest (seconds) that results of fast queries wait for those of slow ones."""
CATCH_UP_FOR: Final = 0.5
"""How long (seconds) a micro-batch may go on for queries whose logs have more rows for them."""
MOST_SECONDS: Final = 10.0
"""A query that takes longer (seconds) in one micro-batch needs a bucket of its own."""
_WHOLE_AFTER_BYTES: Final = 16 << 20
_WHOLE_AFTER_FILES: Final = 200
_PATIENCE: Final = 5


@dataclass(frozen=True)
class MicroBatchTask:
    """The task of a bucket in one micro-batch."""

    revision: int
    """The set of plans to follow, or a later one."""
    ends: Mapping[str, Position]
    """The offsets up to which logs are read."""
    now: int


class Bucket:
    """One bucket of an engine, in one process."""

    def __init__(
        self,
        place: EnginePlace,
        number: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place = place
        self._number = number
        self._files = place.files(number)
        self._at_work = place.at_work(number)
        self._max_seconds = MOST_SECONDS if number < APART else None
        self._clock = clock
        self._logs = OpenLogs()
        self._set = PlanSet()
        self._kept: dict[str, KeptQuery] = {}
        self._held = HeldQueries(place, self._files, self._at_work, self._kept)
        self._last = -1
        """The last file that this process has read, and"""
        self._followed = -1
        """the revision that was followed in it."""
        self._whole = -1
        self._since_whole = 0
        self._whole_size = 0

    def run(self, task: MicroBatchTask) -> None:
        """Run all queries that have work, and store what they did."""
        self._catch_up()
        if self._set.revision < max(task.revision, self._followed):
            self._read_set()
        try:
            self._run_all(task)
        except BaseException:  # what is in memory may be ahead of the files
            self._held.forget_all()
            raise
        finally:
            self._at_work.end()
        self._at_work.all_is_well()
        self._sweep()

    def _run_all(self, task: MicroBatchTask) -> None:
        """Run the fast queries first: their results do not wait for those of slow ones.

        Queries that are behind are then run again for a while.
        """
        entries = self._fatal()
        begun = flushed = self._clock()
        fatal = {one.query for one in entries}
        waiting = [one for one in self._set.in_bucket(self._number) if one.query not in fatal]
        self._held.resume_all(waiting)
        while waiting:
            reads, behind = LogReads(self._logs, task.ends), []
            for one in sorted(waiting, key=self._expected):
                entry = self._run_one(one, reads, task.now)
                if entry is not None:
                    entries.append(entry)
                    if entry.report.get("behind"):
                        behind.append(one)
                if entries and self._clock() - flushed >= FLUSH_AFTER:
                    if not self._write(entries, task.now):
                        return
                    entries, flushed = [], self._clock()
            for subplan in self._held.subplans():
                subplan.rest()
            if not behind or self._clock() - begun >= CATCH_UP_FOR:
                break
            if entries and not self._write(entries, task.now):
                return  # a file has one entry for each query
            entries, waiting = [], behind
        if entries or self._followed < self._set.revision:
            self._write(entries, task.now)

    def _fatal(self) -> list[QueryEntry]:
        """The failure of a query that worker processes have died of."""
        query = self._at_work.died()
        known = None if query is None else self._set.entries.get(query)
        if known is None or known.plan is None:
            return []
        error = InternalError(
            "the process that ran the query has died more than once while running it",
            detail="it may have run out of memory",
            hint="reduce its state, or give it an engine of its own: WITH (engine = 'own')",
        )
        self._held.forget(known.query)
        return [QueryEntry(known.query, report=_failed(error, known))]

    def _expected(self, one: PlanEntry) -> float:
        held = self._held.find(one.query)
        return held.seconds if held is not None else 0.0

    def _catch_up(self) -> None:
        """Apply what other processes have added."""
        for _ in range(_PATIENCE):
            try:
                for batch in batches_after(self._files, self._last):
                    self._take(batch)
            except FileNotFoundError:  # another process has deleted it since it was listed
                continue
            return
        raise LogError("the files of the engine are being deleted", detail=self._files.location)

    def _take(self, batch: BatchFile) -> None:
        if batch.is_whole:
            self._whole, self._whole_size, self._since_whole = batch.number, batch.size, 0
        else:
            self._since_whole += batch.size
        take_entries(self._kept, batch)
        self._last, self._followed = batch.number, max(self._followed, batch.revision)

    def _read_set(self) -> None:
        self._set = self._place.plan_set()
        self._logs.forget()
        self._held.keep(self._set, self._set.in_bucket(self._number))

    def _run_one(self, one: PlanEntry, reads: LogReads, now: int) -> QueryEntry | None:
        """Run one query; its failure does not affect the others."""
        kept = self._kept.get(one.query)
        if kept is not None and kept.failed == one.attempt:
            return None
        begun = self._clock()
        self._at_work.begin(one.query)
        try:
            held = self._held.resume(one)
            subplan, rounds = held.run.subplan, held.run.subplan.rounds
            answer = held.run.feed(reads, now, self._watch(begun))
            held.seconds = self._clock() - begun
            if answer is not None:  # what is shared counts for all, whoever has waited for it
                waited = subplan.seconds if subplan.rounds > rounds else 0.0
                held.seconds += subplan.seconds / subplan.sharing - waited
            elif held.number >= 0:
                return None
            kept = self._kept.get(one.query)
            return query_entry(held, answer, kept, self._held.stands_for(subplan))
        except SessionError:  # the driver cannot be reached, which is no fault of the query
            raise
        except Exception as error:
            self._held.forget(one.query)
            return QueryEntry(one.query, report=_failed(error, one))

    def _watch(self, begun: float) -> Callable[[], None]:
        def check() -> None:
            taken = self._clock() - begun
            if self._max_seconds is not None and taken > self._max_seconds:
                raise SlowQueryError(
                    "the query takes more than its share of a micro-batch",
                    detail=f"it was aborted after {taken:.0f} s",
                )

        return check

    def _write(self, entries: list[QueryEntry], now: int) -> bool:
        """Write a file of what was done; False if another process was faster."""
        number = self._last + 1
        is_whole = self._is_whole_due()
        listed = self._all_entries(entries) if is_whole else entries
        before = self._held.before_write({one.query for one in entries})
        revision = max(self._set.revision, self._followed)
        try:
            batch = self._files.write(number, revision, now, listed, is_whole=is_whole)
        except LogError:
            # What this process had yet to read is gone if another was faster, and has swept.
            if max(self._files.numbers(), default=-1) < number:
                raise
            batch = None
        if batch is None:
            self._held.forget_all()
            return False
        self._take(batch)
        self._held.written(number, {one.query for one in listed if one.state is not None}, before)
        return True

    def _is_whole_due(self) -> bool:
        files = self._last - self._whole
        bound = max(_WHOLE_AFTER_BYTES, 2 * self._whole_size)
        return self._whole < 0 or self._since_whole > bound or files >= _WHOLE_AFTER_FILES

    def _all_entries(self, entries: list[QueryEntry]) -> list[QueryEntry]:
        """Entries with the state of all queries, including what was done to some of them."""
        entries_now = self._set.entries.values()
        here = {one.query for one in entries_now if one.bucket == self._number}
        return whole_entries(entries, self._kept, here, self._files)

    def _sweep(self) -> None:
        """Delete files that a later whole one has superseded, and whose results are durable."""
        durable = self._place.published(self._number)
        wanted = (extent for kept in self._kept.values() for extent in kept.extents)
        oldest = self._files.numbers()[:1]
        until = min(self._whole, durable + 1)
        if oldest and oldest[0] < until:
            self._files.delete_before(until, self._last, wanted)


def _failed(error: Exception, entry: PlanEntry) -> dict[str, Any]:
    return {"failure": describe_failure(error), "attempt": entry.attempt}
