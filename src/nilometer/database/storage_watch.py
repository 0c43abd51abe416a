"""The size and growth of a database's logs, and when the disk will be full."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from nilometer.errors import NilometerError
from nilometer.log.clock import now_micros
from nilometer.log.growth import Growth, LogUse, seconds_until_full
from nilometer.log.location import storage_at
from nilometer.log.published import stored_bytes
from nilometer.log.reader import LogReader
from nilometer.model.time import FOREVER, duration_words
from nilometer.sensors.catalog.outcome import Outcome
from nilometer.sensors.log_options import read_stream_options

if TYPE_CHECKING:
    from nilometer.database.home import Home

_LOG: Final = logging.getLogger("nilometer.storage")
EVERY: Final = 60.0
SOON: Final = 86_400.0
"""Warn if fewer than this many seconds are left, and"""
_AGAIN: Final = 6 * 3_600_000_000
"""again after this many microseconds."""
_ALL: Final = "(disk)"
_COLUMNS: Final = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("bytes", pa.int64()),
        ("limit_bytes", pa.int64()),
        ("history", pa.string()),
        ("bytes_per_day", pa.int64()),
        ("full_in", pa.string()),
    ]
)


@dataclass(frozen=True)
class StorageUse:
    """The result of the last check."""

    logs: tuple[LogUse, ...] = ()
    free: int | None = None
    seconds_left: float | None = None
    """Until the disk is full; None: never at the current growth, or not known yet."""

    @property
    def bytes_per_day(self) -> int | None:
        """How many bytes are added per day: on average until the disk is full, or tomorrow.

        A log that deletes as much as it receives does not grow. None: not known yet.
        """
        if all(one.rate is None for one in self.logs):
            return None
        if self.seconds_left and self.free is not None:
            return int(self.free * SOON / self.seconds_left)
        return int(sum(min((one.rate or 0.0) * SOON, one.peak - one.bytes) for one in self.logs))


class StorageWatch:
    """Checks all logs of a database every minute, and warns when disk space runs low."""

    def __init__(self, home: Home, clock: Callable[[], int] = now_micros) -> None:
        self._home = home
        self._clock = clock
        self._growth: dict[str, Growth] = {}
        self._warned: dict[str, int] = {}
        self._looking = threading.Lock()
        self.last = StorageUse()
        """The result of the last check."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="storage", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> StorageUse:
        """Check all logs now."""
        with self._looking:
            uses, free = tuple(self._uses()), None
            with suppress(OSError):
                free = shutil.disk_usage(self._home.folder).free
            left = None if free is None else seconds_until_full(uses, free)
            self._warn(uses, left)
            self.last = StorageUse(uses, free, left)
            return self.last

    def show(self) -> Outcome:
        """SHOW STORAGE: every log, then the disk."""
        storage = self.look()
        rows = [_row(one) for one in sorted(storage.logs, key=lambda one: -one.bytes)]
        used, daily = sum(one.bytes for one in storage.logs), storage.bytes_per_day
        limit = None if storage.free is None else used + storage.free
        rows.append((_ALL, None, used, limit, None, daily, _shown(storage.seconds_left)))
        columns = [
            pa.array(one, f.type) for one, f in zip(zip(*rows, strict=True), _COLUMNS, strict=True)
        ]
        return Outcome(f"{len(storage.logs)} logs", pa.Table.from_arrays(columns, schema=_COLUMNS))

    def _run(self) -> None:
        while not self._ended.wait(EVERY):
            with suppress(Exception):  # a check that fails must not end the later ones
                self.look()

    def _uses(self) -> Iterator[LogUse]:
        home = self._home
        for one in home.catalog.declarations():
            log = read_stream_options(one.options, one.history).log
            kind = "sensor table" if one.is_sensor_table else "stream"
            yield from self._use(one.name, kind, log.disk, log.history)
            ahead = str(home.ahead_of(one.name))
            yield from self._use(one.name, "write-ahead", log.write_ahead, 0, ahead)
        for query in home.catalog.queries():
            options = query.options
            history = options.get("history") or FOREVER
            yield from self._use(query.name, "query", options.get("results"), history)
        for alert in home.catalog.alerts():
            yield from self._use(alert.name, "alert", None, alert.definition["history"])

    def _use(
        self,
        name: str,
        kind: str,
        limit: int | None,
        history: int,
        location: str | None = None,
    ) -> Iterator[LogUse]:
        location = location or self._home.log_of(name)
        try:
            reader = LogReader.open(location)
            size, end = stored_bytes(storage_at(location)), reader.end.row
            rows_kept = end - reader.start.row
        except (NilometerError, OSError):
            return  # it has none yet, or one that cannot be used, which SHOW STREAMS reports
        growth = self._growth.setdefault(location, Growth())
        growth.see(self._clock(), end)
        rows = growth.rows_per_second
        rate = None if rows is None or not rows_kept else rows * size / rows_kept
        yield LogUse(name, kind, size, limit, history, rate)

    def _warn(self, uses: tuple[LogUse, ...], left: float | None) -> None:
        for one in uses:
            if one.kind != "query" or one.history >= FOREVER:
                self._say(one.name, one.seconds_left, f"{one.kind} {one.name} reaches its limit")
        self._say(_ALL, left, f"the disk of {self._home.folder} is full")

    def _say(self, name: str, left: float | None, what: str) -> None:
        if left is None or left >= SOON:
            self._warned.pop(name, None)
            return
        now = self._clock()
        if now - self._warned.get(name, now - _AGAIN) >= _AGAIN:
            self._warned[name] = now
            _LOG.warning("%s in about %s, at its current growth rate", what, _shown(left))


def _row(one: LogUse) -> tuple[object, ...]:
    daily = None if one.rate is None else int(one.rate * 86_400)
    left = _shown(one.seconds_left)
    return (one.name, one.kind, one.bytes, one.limit, _history(one.history), daily, left)


def _history(length: int) -> str:
    """How long rows are kept, in words.

    >>> _history(0), _history(86_400_000_000), _history(FOREVER)
    ('until read', '1 day', 'forever')
    """
    if length >= FOREVER:
        return "forever"
    return duration_words(length) if length else "until read"


def _shown(seconds: float | None) -> str | None:
    """A remaining time in human-readable form.

    >>> _shown(90_000), _shown(7_300), _shown(300), _shown(None)
    ('25 hours', '2 hours', '5 minutes', None)
    """
    if seconds is None:
        return None
    if seconds >= 3 * 86_400:
        return f"{seconds / 86_400:.0f} days"
    return f"{seconds / 3600:.0f} hours" if seconds >= 7200 else f"{seconds / 60:.0f} minutes"
