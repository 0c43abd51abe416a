"""Copies results from the files of buckets to the logs of queries, each exactly once.

The files are durable, so the logs are not forced to the disk with every append: at intervals one
call does that for all of them, and then the files are no longer needed. After a power failure the
same frames are appended again, where they stood. By the number of each append the logs know what
they have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nilometer.engine.bucket_files import BatchFile, BucketFolder, StoredEntry, results_after
from nilometer.engine.failure import describe_failure
from nilometer.engine.plan_set import PlanEntry, PlanFolder, PlanSet, is_together
from nilometer.engine.published import read_published, write_published
from nilometer.engine.stuck_results import (
    STUCK,
    WaitingResults,
    note_why,
    put_aside,
    read_stuck,
    stuck_queries,
)
from nilometer.errors import LogError
from nilometer.kernels.net_changes import net_changes
from nilometer.kernels.row_errors import RowErrors
from nilometer.log.clock import now_micros
from nilometer.log.dead_letters import DeadLetter, append_batch
from nilometer.log.frame_format import HEADER, EncodedFrame, FrameHeader
from nilometer.log.local_storage import sync_file_system
from nilometer.log.location import storage_at
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.position import Position
from nilometer.log.published import read_layout
from nilometer.log.registrations import commit_all
from nilometer.log.remote_storage import REQUESTS_AT_ONCE
from nilometer.log.writer import LogWriter

DURABLE_EVERY: Final = 10.0
_MOST_COLLECTED: Final = 32 << 20
_TRIM_EVERY: Final = 30.0
_SHOWN: Final = "shown-{}"
_RETRY_EVERY: Final = 2.0
_TAKE_OVER: Final = 30.0
"""How long (seconds) an earlier publisher, whose process was killed, may hold logs."""


@dataclass
class _Results:
    """The log of a query's results, open for writing."""

    writer: LogWriter
    trimmed: float


@dataclass
class _Bucket:
    """How much of a bucket was published."""

    files: BucketFolder
    taken: int
    """Up to this file results were read,"""
    shown: int
    """up to this one all of them are visible to readers, and"""
    durable: int
    """up to this one they survive even a power failure."""
    behind: set[str] = field(default_factory=set)
    """Queries whose logs have more rows than they were given."""
    stamp: int = -1
    announced: int = -1
    """Up to which file others were notified."""


@dataclass
class Publisher:
    """Publishes the results of all buckets of an engine; used by one thread."""

    folder: Path
    bucket: int = 0
    """Publishes the buckets that run together with this one."""
    clock: Callable[[], float] = time.monotonic
    _set: PlanSet = field(default_factory=PlanSet)
    _stamp: tuple[int, int] | None = None
    _buckets: dict[int, _Bucket] = field(default_factory=dict)
    _open: dict[str, _Results] = field(default_factory=dict)
    _waiting: dict[str, float] = field(default_factory=dict)
    """Queries whose results currently cannot be appended, and when that is retried."""
    _positions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The offsets of queries that are not committed to the logs yet."""
    _forced: float = 0.0
    _collected: dict[str, list[WaitingResults]] = field(default_factory=dict)
    """Results for logs in object stores, by query: an append is an object there."""
    _collected_bytes: int = 0

    def __post_init__(self) -> None:
        self._plans = PlanFolder(self.folder)
        self._forced = self._begun = self.clock()
        self._waiting = dict.fromkeys(stuck_queries(self.folder), 0.0)

    def is_behind(self, bucket: int) -> bool:
        """Whether queries of a bucket have more to read than they were given."""
        published = self._buckets.get(bucket)
        return published is not None and bool(published.behind)

    def step(self) -> bool:
        """Publish what is new; returns whether there was anything."""
        self._read_set()
        self._collected, self._collected_bytes = {}, 0  # of a step that failed
        has_news = False
        for number in self._plans.buckets():
            if not is_together(number, self.bucket):
                continue
            bucket = self._bucket(number)
            stamp = self._plans.bucket(number).stat().st_mtime_ns
            if stamp == bucket.stamp and time.time_ns() - stamp > 1_000_000_000:
                continue
            for batch in results_after(bucket.files, bucket.shown):
                has_news = True
                self._publish(bucket, batch)
                if self._collected_bytes >= _MOST_COLLECTED:
                    self._store_collected()
            bucket.stamp = stamp
        self._store_collected()
        if has_news:
            self._announce()
        for query, due in list(self._waiting.items()):
            if due <= self.clock():
                self._try_again(query)
        if self.clock() - self._forced >= DURABLE_EVERY:
            self.force()
        return has_news

    def force(self) -> None:
        """Make all published results durable, and commit the offsets of queries to their logs."""
        self._forced = self.clock()
        if any(one.durable < one.shown for one in self._buckets.values()):
            for place in self._local_places():
                sync_file_system(place)
            for number, bucket in self._buckets.items():
                if bucket.durable < bucket.shown:
                    write_published(self.folder, number, bucket.shown)
                    bucket.durable = bucket.shown
        positions, self._positions = self._positions, {}
        self._commit(positions)

    def _local_places(self) -> list[Path]:
        """One folder for each file system that holds logs of results."""
        logs = (one.results for one in self._set.entries.values() if "://" not in one.results)
        parents = {self.folder, *(Path(log).parent for log in logs)}
        devices = {one.stat().st_dev: one for one in parents if one.is_dir()}
        return list(devices.values())

    def close(self) -> None:
        """Force everything to the disk, and close the logs."""
        self.force()
        for one in self._open.values():
            one.writer.close()
        self._open.clear()

    def _read_set(self) -> None:
        stamp = self._plans.stamp()
        if stamp == self._stamp:
            return
        before, self._set, self._stamp = self._set, self._plans.read_written(), stamp
        for query in list(self._open):
            entry, known = self._set.entries.get(query), before.entries.get(query)
            if entry is None or entry.plan is None or known is None or _kept(entry) != _kept(known):
                self._open.pop(query).writer.close()
        for query in self._waiting:
            self._waiting[query] = 0.0
        for number, bucket in self._buckets.items():
            bucket.behind &= {one.query for one in self._set.in_bucket(number)}

    def _announce(self) -> None:
        """Notify others of what can be read."""
        for number, bucket in self._buckets.items():
            if bucket.shown != bucket.announced:
                path = self.folder / _SHOWN.format(number)
                aside = path.with_name(f".{path.name}")
                aside.write_text(str(bucket.shown))
                aside.replace(path)
                bucket.announced = bucket.shown

    def _bucket(self, number: int) -> _Bucket:
        if number not in self._buckets:
            durable = read_published(self.folder, number)
            self._buckets[number] = _Bucket(self._plans.files(number), durable, durable, durable)
        return self._buckets[number]

    def _publish(self, bucket: _Bucket, batch: BatchFile) -> None:
        for entry in batch.entries:
            known = self._set.entries.get(entry.query)
            if known is None:
                self._stamp = None  # it is newer than what was read
                self._read_set()
                known = self._set.entries.get(entry.query)
            if known is None:
                continue  # it was dropped meanwhile
            if "positions" in entry.report:
                self._positions[entry.query] = entry.report["positions"]
            if entry.frames:
                self._publish_entry(known, entry, bucket.files)
            if entry.report.get("behind"):
                bucket.behind.add(entry.query)
            else:
                bucket.behind.discard(entry.query)
        bucket.taken = batch.number
        if not self._collected:
            bucket.shown = batch.number

    def _store_collected(self) -> None:
        """Append what was collected: the logs at the same time, each with one object."""
        collected, self._collected, self._collected_bytes = self._collected, {}, 0
        try:
            if len(collected) > 1:
                with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
                    list(pool.map(self._store, collected.values()))
            else:
                list(map(self._store, collected.values()))
        except BaseException:  # such as a full disk: they are read once more
            for bucket in self._buckets.values():
                bucket.taken, bucket.stamp = bucket.shown, -1
            raise
        for bucket in self._buckets.values():
            bucket.shown = bucket.taken

    def _store(self, results: Sequence[WaitingResults]) -> None:
        """Append results of one query, or set them aside."""
        try:
            self._append(results)
        except Exception as error:  # others must not be affected
            for one in results:
                put_aside(self.folder, one)
            self._waits(results[0].known.query, error)

    def _publish_entry(self, known: PlanEntry, entry: StoredEntry, files: BucketFolder) -> None:
        frames = [files.read(one) for one in entry.frames]
        results = WaitingResults(known, dict(entry.report), frames)
        if known.query in self._waiting:
            put_aside(self.folder, results)
        elif "://" in known.results:
            self._collected.setdefault(known.query, []).append(results)
            self._collected_bytes += sum(map(len, frames))
        else:  # each by itself, so that it has the same place if it is appended again
            self._store([results])

    def _append(self, results: Sequence[WaitingResults]) -> None:
        """Append results of one query, in their order, unless that was done before."""
        known = results[0].known
        for one in results:
            errors = RowErrors.from_json(one.report["errors"])
            if errors.count and known.dead_letters is not None:
                now = now_micros()
                letters = [DeadLetter(e.stream, now, e.reason, e.row) for e in errors.noted]
                append_batch(known.dead_letters, letters, errors.count, one.key)
        opened = self._results(known)
        try:
            last = opened.writer.last_batch(known.query)
            new = [one for one in results if last is None or one.key[1] > last]
            if new:
                frames = [_decode(frame) for one in new for frame in one.frames]
                marks = [one.report["watermark"] for one in new]
                watermark = max((mark for mark in marks if mark is not None), default=None)
                opened.writer.append_frames(frames, watermark=watermark, key=new[-1].key)
            if self.clock() - opened.trimmed > _TRIM_EVERY:
                opened.trimmed = self.clock()
                opened.writer.trim()
        except BaseException:
            self._open.pop(known.query).writer.close()
            raise

    def _results(self, known: PlanEntry) -> _Results:
        results = self._open.get(known.query)
        if results is None:
            layout = read_layout(storage_at(known.results))
            if layout is None or layout[1] != known.log_id:
                raise LogError("the log of the results is gone", detail=known.results)
            options = LogOptions(
                fsync=Fsync(known.fsync), memory=0, disk=known.disk, history=known.history
            )
            writer = LogWriter.open(known.results, layout[0], options, net=net_changes)
            results = self._open[known.query] = _Results(writer, self.clock())
        return results

    def _waits(self, query: str, error: Exception) -> None:
        """Schedule a retry."""
        self._waiting[query] = self.clock() + _RETRY_EVERY
        if _is_held(error) and self.clock() - self._begun < _TAKE_OVER:
            return  # an earlier publisher will end soon
        known = self._set.entries.get(query)
        attempt = None if known is None else known.attempt
        note_why(self.folder, query, attempt, describe_failure(error))

    def _try_again(self, query: str) -> None:
        """Append the results that wait, oldest first."""
        folder, known = self.folder / STUCK / query, self._set.entries.get(query)
        if known is not None and not is_together(known.bucket, self.bucket):
            del self._waiting[query]
            return
        for path in sorted(one for one in folder.iterdir() if not one.name.startswith(".")):
            if known is not None:
                try:
                    self._append([WaitingResults(known, *read_stuck(path.read_bytes()))])
                except Exception as error:
                    self._waits(query, error)
                    return
            path.unlink()
        (folder / ".why").unlink(missing_ok=True)
        folder.rmdir()
        del self._waiting[query]

    def _commit(self, positions: dict[str, list[dict[str, Any]]]) -> None:
        """Commit the offsets of queries to the logs."""
        by_log: dict[str, dict[str, Position]] = {}
        for query, offsets in positions.items():
            known = self._set.entries.get(query)
            for (log, name), one in zip(known.logs if known else (), offsets, strict=False):
                by_log.setdefault(log, {})[name] = Position.from_json(one)
        for log, readers in by_log.items():
            commit_all(log, readers, now=now_micros())


def shown_up_to(folder: Path, bucket: int) -> int:
    """The last file of a bucket whose results are visible to readers; -1: none."""
    try:
        return int((folder / _SHOWN.format(bucket)).read_text())
    except (FileNotFoundError, ValueError):
        return -1


def _is_held(error: Exception) -> bool:
    """Whether another process writes the log."""
    return isinstance(error, LogError) and error.message == "the log is already open for writing"


def _decode(content: bytes) -> EncodedFrame:
    header = FrameHeader.from_bytes(content[:HEADER])
    if header is None:
        raise LogError("a frame of results is damaged")
    return EncodedFrame(header, [content[HEADER:]])


def _kept(entry: PlanEntry) -> tuple[str, int | None, int]:
    """The log options for the results of a query."""
    return (entry.fsync, entry.disk, entry.history)
