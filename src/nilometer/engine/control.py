"""The control side of an engine: decides what runs, and reads the reports."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from nilometer.engine.bucket_files import (
    BatchFile,
    BucketFolder,
    KeptQuery,
    QueryEntry,
    batches_after,
    read_state,
    take_entries,
)
from nilometer.engine.plan_set import APART, PlanEntry, PlanFolder, PlanSet
from nilometer.errors import LogError
from nilometer.log.clock import now_micros
from nilometer.log.location import inside, parent

_TOGETHER: Final = 2.0
"""How long (seconds) changes that are made together may wait."""
_FIRST_BUCKETS: Final = 4
_QUERIES_PER_BUCKET: Final = 16
"""New queries share the first buckets, and more of them when they are so many."""
_TRIES: Final = 20


@dataclass(frozen=True)
class BucketReport:
    """A bucket's report on a query after a micro-batch."""

    query: str
    bucket: int
    number: int
    time: int
    content: Mapping[str, Any]


class EngineControl:
    """Changes the plan set and reads the buckets' reports; thread-safe."""

    def __init__(self, folder: Path, cores: int) -> None:
        self.folder = folder
        self.cores = cores
        """The most buckets among which new queries are dealt out; it may change."""
        self._plans = PlanFolder(folder)
        self._lock = threading.RLock()
        self._seen: dict[int, int] = {}
        self._followed: dict[int, int] = {}
        self._pending = 0
        self._written = 0.0
        self._set = PlanSet()

    def open(self, queries: set[str], logs: str) -> None:
        """Load the state of these queries and drop that of others; nothing runs yet.

        `logs` is the current folder of all logs: it may have been moved or copied with the rest.
        Old plans are deleted: plans are made anew from their statements when an engine starts.
        """
        with self._lock:
            before = self._plans.read()
            entries = dict[str, PlanEntry]()
            for number in self._plans.buckets():
                stored, followed = self._states(number)
                self._followed[number] = followed
                entries |= {query: PlanEntry(query, number, None) for query in stored & queries}
            known = {query: one for query, one in before.entries.items() if query in queries}
            entries |= {
                query: _moved(replace(one, plan=None), logs) for query, one in known.items()
            }
            self._set = PlanSet(before.revision + 1, entries)
            self._plans.write(self._set)
            self._plans.keep_plans(set())

    def _states(self, bucket: int) -> tuple[set[str], int]:
        """The queries in a bucket's files, and the last revision in them."""
        files = self._plans.files(bucket)
        self._seen[bucket] = -1
        queries, followed = set[str](), -1
        for batch in batches_after(files, -1):
            queries = set() if batch.is_whole else queries
            queries |= {one.query for one in batch.entries}
            self._seen[bucket], followed = batch.number, max(followed, batch.revision)
        return queries, followed

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let the changes made in this block take effect together."""
        with self._lock:
            self._pending += 1
        try:
            yield
        finally:
            with self._lock:
                self._pending -= 1
                if not self._pending:
                    self._plans.write(self._set)

    def run(self, plan: bytes, entry: PlanEntry) -> int:
        """Run a query, or resume it; returns the revision from which it runs.

        Its bucket is the one with its state, or else one with queries that can share theirs with
        it, or few.
        """
        with self._lock:
            before = self._set.entries.get(entry.query)
            bucket = self._free_bucket(entry.sub_plan) if before is None else before.bucket
            attempt = 0 if before is None else before.attempt + 1
            name = self._plans.add_plan(plan)
            return self._change(replace(entry, bucket=bucket, attempt=attempt, plan=name))

    def stop(self, query: str) -> tuple[int, int]:
        """Stop a query but keep its state; returns its bucket and the revision that stops it."""
        with self._lock:
            before = self._set.entries.get(query)
            if before is None:
                return 0, -1
            if before.plan is None:
                return before.bucket, self._set.revision
            return before.bucket, self._change(replace(before, plan=None))

    def go_on(self, query: str, plan: str) -> None:
        """Resume a stopped query where it was."""
        with self._lock:
            before = self._set.entries[query]
            self._change(replace(before, plan=plan, attempt=before.attempt + 1))

    def move(self, query: str, plan: str, to: int | None = None) -> int:
        """Move a stopped query, with its state, and resume it; returns its new bucket.

        It moves to a bucket of its own unless `to` is given. The old bucket must have followed
        the revision in which the query was stopped, and what it has emitted must be durable:
        after a power failure results of both buckets may be published in any order.
        """
        with self._lock:
            before = self._set.entries[query]
            taken = {one.bucket for one in self._set.entries.values()} | {*self._plans.buckets()}
            bucket = max(APART, *(one + 1 for one in taken)) if to is None else to
            self._copy_state(query, before.bucket, bucket)
            self._change(replace(before, bucket=bucket, plan=plan, attempt=before.attempt + 1))
            return bucket

    def _copy_state(self, query: str, bucket: int, to: int) -> None:
        """Add the state of a query to the files of another bucket, which may be running.

        That bucket learns of it as it learns of what another process has written.
        """
        files, target = self._plans.files(bucket), self._plans.files(to)
        kept, _ = _kept_of(files, query)
        if kept.state is None or kept.about is None:
            return  # it has not started yet
        content = QueryEntry(
            query,
            read_state(files, kept),
            files.read(kept.about),
            {name: files.read(extent) for name, extent in kept.chunks.items()},
        )
        for _ in range(_TRIES):
            old, last = _kept_of(target, query)
            number = 0 if last is None else last.number + 1
            revision = self._set.revision if last is None else last.revision
            # The bucket has not followed a later revision than in the file before.
            content.gone = [name for name in old.chunks if name not in content.chunks]
            if target.write(number, revision, now_micros(), [content], is_whole=last is None):
                return
        raise LogError("a bucket of the engine writes too fast", detail=target.location)

    def drop(self, query: str) -> None:
        """Drop a query and its state."""
        with self._lock:
            entries = {name: one for name, one in self._set.entries.items() if name != query}
            self._write(PlanSet(self._set.revision + 1, entries))

    def stop_all(self) -> tuple[int, dict[str, set[str]]]:
        """Stop all queries; returns the revision that stops them, and readers by their logs."""
        with self._lock:
            readers: dict[str, set[str]] = {}
            for one in self._set.entries.values():
                for log, name in one.logs if one.plan is not None else ():
                    readers.setdefault(log, set()).add(name)
            entries = {name: replace(one, plan=None) for name, one in self._set.entries.items()}
            self._write(PlanSet(self._set.revision + 1, entries))
            return self._set.revision, readers

    def buckets(self) -> list[int]:
        """The buckets that have files."""
        return self._plans.buckets()

    def entry(self, query: str) -> PlanEntry | None:
        """A query of the set."""
        return self._set.entries.get(query)

    def follows(self, bucket: int, revision: int) -> bool:
        """Whether a bucket has seen a revision of the set, as far as `reports` has read."""
        return self._followed.get(bucket, -1) >= revision

    def last(self, bucket: int) -> int:
        """The last file of a bucket that `reports` has read; -1: none."""
        return self._seen.get(bucket, -1)

    def reports(self) -> list[BucketReport]:
        """The reports since the last call."""
        with self._lock:
            reports = []
            for number in self._plans.buckets():
                files = self._plans.files(number)
                try:
                    for batch in batches_after(files, self._seen.get(number, -1)):
                        reports += [
                            BucketReport(one.query, number, batch.number, batch.now, one.report)
                            for one in batch.entries
                        ]
                        self._seen[number] = batch.number
                        self._followed[number] = batch.revision
                except FileNotFoundError:  # deleted since they were listed: retried next time
                    continue
            return reports

    def _free_bucket(self, sub_plan: str | None) -> int:
        """The bucket with the fewest queries, or one, not much fuller, to share state in."""
        running = [one for one in self._set.entries.values() if one.plan is not None]
        shared = Counter(one.bucket for one in running if one.bucket < APART)
        wanted = max(_FIRST_BUCKETS, shared.total() // _QUERIES_PER_BUCKET + 1)
        places = range(min(self.cores, wanted))
        free = min(places, key=lambda bucket: (shared[bucket], bucket))
        full = shared[free] + _QUERIES_PER_BUCKET
        alike = {one.bucket for one in running if sub_plan is not None and one.sub_plan == sub_plan}
        may = [bucket for bucket in places if bucket in alike and shared[bucket] < full]
        return max(may, key=lambda bucket: shared[bucket], default=free)

    def _change(self, entry: PlanEntry) -> int:
        entries = {**self._set.entries, entry.query: entry}
        revision = self._set.revision + 1
        self._write(PlanSet(revision, entries))
        return revision

    def _write(self, plans: PlanSet) -> None:
        if not self._pending or time.monotonic() - self._written > _TOGETHER:
            self._plans.write(plans)
            self._written = time.monotonic()
        self._set = plans


def _kept_of(files: BucketFolder, query: str) -> tuple[KeptQuery, BatchFile | None]:
    """What a bucket's files hold of a query, and the last of these files, if there is one."""
    kept, last = dict[str, KeptQuery](), None
    for last in batches_after(files, -1):
        take_entries(kept, last)
    return kept.get(query, KeptQuery()), last


def _moved(entry: PlanEntry, folder: str) -> PlanEntry:
    """A query whose logs are in this folder, under the names that they had."""

    def there(log: str) -> str:
        return inside(folder, parent(log)[1]) if log else log

    letters = None if entry.dead_letters is None else there(entry.dead_letters)
    logs = [(there(log), name) for log, name in entry.logs]
    return replace(entry, results=there(entry.results), dead_letters=letters, logs=logs)
