"""Decides when buckets have work: rows arrived, queries changed, or time has passed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nilometer.engine.plan_set import PlanFolder, PlanSet, is_together
from nilometer.errors import LogError
from nilometer.log.clock import now_micros
from nilometer.log.position import Position
from nilometer.log.reader import LogReader

SHORTEST: Final = 0.6
"""The least time (seconds) between the starts of micro-batches while rows keep arriving: those
that arrive in between are processed together."""

Tasks = dict[int, dict[str, Any]]
"""The tasks of buckets, ready to be sent to workers."""


@dataclass
class Schedule:
    """Checks the logs that queries read; used by one thread."""

    folder: Path
    beats: float
    is_behind: Callable[[int], bool]
    bucket: int = 0
    """Schedules the buckets that run together with this one."""
    clock: Callable[[], float] = time.monotonic
    _set: PlanSet = field(default_factory=PlanSet)
    _stamp: tuple[int, int] | None = None
    _buckets: set[int] = field(default_factory=set)
    _timed: set[int] = field(default_factory=set)
    """Buckets with queries that need the time."""
    _readers: dict[str, LogReader] = field(default_factory=dict)
    _subscribed: dict[str, set[int]] = field(default_factory=dict)
    """The buckets that read each log."""
    _planned: dict[str, Position] = field(default_factory=dict)
    """The offsets up to which logs were assigned to buckets."""
    _followed: dict[int, int] = field(default_factory=dict)
    """The revision of the set that buckets were given."""
    _begun: float | None = None
    _beat: float = 0.0
    _looked: float = 0.0

    def __post_init__(self) -> None:
        self._plans = PlanFolder(self.folder)

    @property
    def pause(self) -> float:
        """How long to wait before the next check, so that checks take a small share of the time."""
        return min(1.0, max(0.01, 20 * self._looked))

    def due(self) -> Tasks:
        """The tasks that are due now; those that are returned count as done."""
        begun = self.clock()
        self._read_set()
        if self._begun is not None and begun - self._begun < SHORTEST and not self._is_urgent():
            return {}
        ends = self._ends()
        buckets = {b for log in ends for b in self._news(log, ends)} | self._others()
        self._looked = self.clock() - begun
        if not buckets:
            return {}
        self._planned.update(ends)
        self._begun = self.clock()
        for bucket in buckets:
            self._followed[bucket] = self._set.revision
        now = now_micros()
        return {
            bucket: {
                "revision": self._set.revision,
                "ends": {
                    log: end.to_json()
                    for log, end in ends.items()
                    if bucket in self._subscribed[log]
                },
                "now": now,
            }
            for bucket in sorted(buckets)
        }

    def _is_urgent(self) -> bool:
        """Whether work is urgent: queries changed, or have more to read than they were given."""
        all_current = all(
            self._followed.get(one, -1) >= self._set.revision for one in self._buckets
        )
        return not all_current or any(map(self.is_behind, self._buckets))

    def _read_set(self) -> None:
        stamp = self._plans.stamp()
        if stamp == self._stamp:
            return
        self._set, self._stamp = self._plans.read(), stamp
        entries = self._set.entries.values()
        own = [one for one in entries if is_together(one.bucket, self.bucket)]
        self._buckets = {one.bucket for one in own}
        running = [one for one in own if one.plan is not None]
        self._timed = {one.bucket for one in running if one.needs_now}
        self._subscribed = {}
        self._readers = {}
        for one in running:
            for log, _ in one.logs:
                self._subscribed.setdefault(log, set()).add(one.bucket)

    def _ends(self) -> dict[str, Position]:
        ends = {}
        for log in self._subscribed:
            try:
                if log not in self._readers:
                    self._readers[log] = LogReader.open(log)
                ends[log] = self._readers[log].end
            except (LogError, OSError):  # its queries will report it
                continue
        return ends

    def _news(self, log: str, ends: dict[str, Position]) -> set[int]:
        return set() if self._planned.get(log) == ends[log] else self._subscribed[log]

    def _others(self) -> set[int]:
        """Buckets whose queries have changed, have more to read, or need the time."""
        buckets = self._buckets | {
            one for one in self._plans.buckets() if is_together(one, self.bucket)
        }
        due = {one for one in buckets if self._followed.get(one, -1) < self._set.revision}
        due |= {one for one in buckets if self.is_behind(one)}
        if self._timed and self.clock() - self._beat >= 1 / self.beats:
            self._beat = self.clock()
            due |= self._timed
        return due
