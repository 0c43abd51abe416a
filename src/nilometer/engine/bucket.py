"""A bucket: runs the queries assigned to it, micro-batch by micro-batch.

It lives in a worker process, which may end or be replaced at any time: the bucket's files are
authoritative, and whatever other processes have added to them is read before anything else is
done.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nilometer.engine.bucket_files import (
    BatchFile,
    Entry,
    Extent,
    KeptQuery,
    batches_after,
)
from nilometer.engine.failure import describe_failure
from nilometer.engine.held_chunks import HeldChunks
from nilometer.engine.log_reads import LogReads, OpenLogs
from nilometer.engine.place import EnginePlace
from nilometer.engine.plan_set import APART, PlanEntry, PlanSet
from nilometer.engine.query_run import HostedRun, RunOutput
from nilometer.errors import InternalError, LogError, SessionError, SlowQueryError
from nilometer.log.frame_format import encode_frame
from nilometer.log.parts import pieces
from nilometer.log.position import Position

if TYPE_CHECKING:
    from nilometer.engine.plan import HostedPlan  # loads all of SQL

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


@dataclass
class _Held:
    """A query in the memory of this process."""

    run: HostedRun
    entry: PlanEntry
    number: int
    """The bucket's file in which its state is the one in memory; -1: it has none yet."""
    results: int
    """How many times it has had results to append."""
    watermark: int | None = None
    """The watermark that its results last reported."""
    seconds: float = 0.0
    """How long its last micro-batch took."""


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
        self._held: dict[str, _Held] = {}
        self._hosted: dict[str, HostedPlan] = {}
        self._kept: dict[str, KeptQuery] = {}
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
        while waiting:
            reads, behind = LogReads(self._logs, task.ends), []
            for one in sorted(waiting, key=self._expected):
                entry = self._run_one(one, reads, task.now)
                if entry is not None:
                    entries.append(entry)
                    if entry.told.get("behind"):
                        behind.append(one)
                if entries and self._clock() - flushed >= FLUSH_AFTER:
                    if not self._write(entries, task.now):
                        return
                    entries, flushed = [], self._clock()
            if not behind or self._clock() - begun >= CATCH_UP_FOR:
                break
            if entries and not self._write(entries, task.now):
                return  # a file has one entry for each query
            entries, waiting = [], behind
        if entries or self._followed < self._set.revision:
            self._write(entries, task.now)

    def _fatal(self) -> list[Entry]:
        """The failure of a query that worker processes have died of."""
        query = self._at_work.died()
        known = None if query is None else self._set.entries.get(query)
        if known is None or known.plan is None:
            return []
        error = InternalError(
            "the process that ran the query has ended more than once while it did",
            detail="it may have needed more memory than there is",
            hint="give it less to keep, or an engine of its own: WITH (engine = 'own')",
        )
        self._held.pop(known.query, None)
        return [Entry(known.query, told=_failed(error, known))]

    def _expected(self, one: PlanEntry) -> float:
        held = self._held.get(one.query)
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
            self._kept.clear()
            self._whole, self._whole_size, self._since_whole = batch.number, batch.size, 0
        else:
            self._since_whole += batch.size
        for entry in batch.entries:
            self._kept.setdefault(entry.query, KeptQuery()).take(entry, batch.number)
        self._last, self._followed = batch.number, max(self._followed, batch.revision)

    def _read_set(self) -> None:
        self._set = self._place.plan_set()
        self._logs.forget()
        wanted = {one.plan for one in self._set.in_bucket(self._number)}
        self._hosted = {name: one for name, one in self._hosted.items() if name in wanted}
        for query, held in list(self._held.items()):
            entry = self._set.entries.get(query)
            if (
                entry is None
                or entry.plan != held.entry.plan
                or entry.attempt != held.entry.attempt
            ):
                del self._held[query]

    def _run_one(self, one: PlanEntry, reads: LogReads, now: int) -> Entry | None:
        """Run one query; its failure does not affect the others."""
        kept = self._kept.get(one.query)
        if kept is not None and kept.failed == one.attempt:
            return None
        begun = self._clock()
        self._at_work.begin(one.query)
        try:
            held = self._resume(one, kept)
            answer = held.run.feed(reads, now, self._watch(begun))
            held.seconds = self._clock() - begun
            if answer is None and held.number >= 0:
                return None
            return self._entry(held, answer)
        except SessionError:  # the driver cannot be reached, which is no fault of the query
            raise
        except Exception as error:
            self._held.pop(one.query, None)
            return Entry(one.query, told=_failed(error, one))

    def _watch(self, begun: float) -> Callable[[], None]:
        def check() -> None:
            taken = self._clock() - begun
            if self._max_seconds is not None and taken > self._max_seconds:
                raise SlowQueryError(
                    "the query takes more than its share of a micro-batch",
                    detail=f"it was given up after {taken:.0f} s",
                )

        return check

    def _resume(self, one: PlanEntry, kept: KeptQuery | None) -> _Held:
        """Restore a query from the files."""
        held = self._held.get(one.query)
        if held is not None and self._is_current(one.query, held):
            return held
        assert one.plan is not None
        if one.plan not in self._hosted:
            self._hosted[one.plan] = pickle.loads(self._place.plan(one.plan))
        chunks = HeldChunks(self._fetch(one.query)) if held is None else held.run.chunks
        chunks.forget_changes(() if kept is None else kept.chunks)
        run = HostedRun(self._hosted[one.plan], chunks)
        if kept is None or kept.state is None:
            run.begin()
            held = _Held(run, one, -1, 0)
        else:
            assert kept.about is not None
            run.check(json.loads(self._files.read(kept.about)))
            state = json.loads(self._files.read(kept.state))
            run.restore(state["run"])
            held = _Held(run, one, kept.number, state["results"], state["watermark"])
        self._held[one.query] = held
        return held

    def _fetch(self, query: str) -> Callable[[str], bytes]:
        return lambda name: self._files.read(self._kept[query].chunks[name])

    def _entry(self, held: _Held, answer: RunOutput | None) -> Entry:
        """The entry that is stored for a query's micro-batch."""
        told: dict[str, Any] = {}
        frames: list[bytes] = []
        if answer is not None:
            told = {
                "metrics": held.run.metrics,
                "millis": round(1000 * held.seconds, 3),
                "behind": answer.is_behind,
            }
            has_news = answer.watermark is not None and answer.watermark != held.watermark
            if answer.rows or has_news or answer.errors.count:
                held.results += 1
                held.watermark = answer.watermark if has_news else held.watermark
                key = (held.entry.query, held.results)
                frames = _frames(answer, self._hosted[str(held.entry.plan)], key)
                told |= {
                    "key": held.results,
                    "watermark": answer.watermark,
                    "rows": sum(map(len, answer.rows)),
                    "errors": answer.errors.to_json(),
                }
        run = held.run.snapshot()
        state = {"run": run, "results": held.results, "watermark": held.watermark}
        told["positions"] = run["positions"]
        about = json.dumps(held.run.about).encode() if held.number < 0 else None
        new, gone = held.run.chunks.changes()
        content = json.dumps(state, separators=(",", ":")).encode()
        return Entry(held.entry.query, content, about, {**new}, gone, frames, told)

    def _write(self, entries: list[Entry], now: int) -> bool:
        """Write a file of what was done; False if another process was faster."""
        number = self._last + 1
        is_whole = self._is_whole_due()
        listed = self._all_entries(entries) if is_whole else entries
        revision = max(self._set.revision, self._followed)
        try:
            batch = self._files.write(number, revision, now, listed, is_whole=is_whole)
        except LogError:
            # What this process had yet to read is gone if another was faster, and has swept.
            if max(self._files.numbers(), default=-1) < number:
                raise
            batch = None
        if batch is None:
            self._held.clear()
            return False
        done = {one.query for one in entries}
        current = {query for query, held in self._held.items() if self._is_current(query, held)}
        self._take(batch)
        for query in {one.query for one in listed if one.state is not None} & (done | current):
            if (held := self._held.get(query)) is not None:
                held.number = number
        for query in done:
            if (held := self._held.get(query)) is not None:
                held.run.chunks.saved()
        return True

    def _is_current(self, query: str, held: _Held) -> bool:
        """Whether the state in memory is that in the files."""
        kept = self._kept.get(query)
        return held.number == (-1 if kept is None or kept.state is None else kept.number)

    def _is_whole_due(self) -> bool:
        files = self._last - self._whole
        bound = max(_WHOLE_AFTER_BYTES, 2 * self._whole_size)
        return self._whole < 0 or self._since_whole > bound or files >= _WHOLE_AFTER_FILES

    def _all_entries(self, entries: list[Entry]) -> list[Entry]:
        """Entries with the state of all queries, including what was done to some of them."""
        found = {one.query: one for one in entries}
        for query, kept in self._kept.items():
            known = self._set.entries.get(query)
            if known is None or known.bucket != self._number:
                continue  # it was dropped, or moved
            new = found.setdefault(query, Entry(query))
            old: dict[str, bytes | Extent] = {**kept.chunks}
            for gone in new.gone:
                old.pop(gone, None)
            new.chunks = {**old, **new.chunks}
            new.state = new.state if new.state is not None else kept.state
            new.about = new.about if new.about is not None else kept.about
            if new.state is kept.state and kept.failed is not None and not new.told:
                new.told = {"attempt": kept.failed}
        return list(found.values())

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


def _frames(answer: RunOutput, hosted: HostedPlan, key: tuple[str, int]) -> list[bytes]:
    """Results as frames of their log, the last of which holds the key."""
    time, compression = hosted.plan.layout.time, hosted.compression
    some = [piece for rows in answer.rows for piece in pieces(rows)]
    frames = [encode_frame(one, time, compression) for one in some[:-1]]
    frames.append(encode_frame(some[-1] if some else None, time, compression, batch=key))
    return [b"".join(bytes(chunk) for chunk in one.chunks) for one in frames]
