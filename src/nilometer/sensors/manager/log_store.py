"""One log as the manager writes it; every method but `__init__` runs in one thread at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final

from nilometer.errors import LogFullError
from nilometer.kernels.read_times import SECONDS
from nilometer.log.dead_letters import DeadLetters, dead_letter_log, letters_ever
from nilometer.log.location import in_object_store
from nilometer.log.open_ahead import open_ahead
from nilometer.log.options import Durability
from nilometer.log.position import Position
from nilometer.log.write_ahead import WriteAhead
from nilometer.log.writer import LogWriter
from nilometer.model.time import format_duration
from nilometer.sensors.declaration import DEFAULT_IDLE, Declaration
from nilometer.sensors.log_options import StreamOptions
from nilometer.sensors.manager.arrivals import Arrivals
from nilometer.sensors.manager.build_rows import RowBuilder
from nilometer.sensors.manager.measured import MEASURED, read_measured
from nilometer.sensors.manager.prepare import Preparation, Prepared
from nilometer.sensors.manager.received import Received
from nilometer.sensors.manager.sensor_clock import SensorClock
from nilometer.sensors.manager.sensor_events import TELL_EVERY, tell_dead_letters
from nilometer.sensors.manager.sensor_keys import SensorKeys
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.sensors.manager.static_versions import StaticVersions

_LOG: Final = logging.getLogger("nilometer.sensors")
_AHEAD: Final = 10_000_000
"""A log that is further ahead of the clock than this is not ahead by chance."""


class LogStore:
    """Stores what was received: static values and dead letters first, then rows and watermark."""

    def __init__(
        self,
        declaration: Declaration,
        options: StreamOptions,
        locate: Callable[[str], str],
        settings: ManagerSettings,
        clock: Callable[[], int],
        rates: Mapping[str, Any] | None = None,
        ahead_of: Callable[[str], Path | None] = lambda _: None,
        *,
        replays: bool = False,
    ) -> None:
        """`rates`: what was learned about it before a restart; `ahead_of`: the folder of the
        write-ahead of a log, if that has one; `replays`: sensors deliver again everything after
        the last delivery key."""
        with ExitStack() as opening:
            self.name = name = declaration.name
            self.location = locate(name)
            self.writer = LogWriter.open(
                self.location, declaration.layout, options.log, clock, may_change=True
            )
            opening.callback(self.writer.close)
            max_keys = settings.recent_keys
            self._replays = replays
            self.ahead = open_ahead(
                ahead_of(name),
                self.writer,
                self.location,
                options.log,
                clock,
                known_by=SensorKeys.sensor_of if replays else bytes,
            )
            if self.ahead is not None:
                opening.callback(self.ahead.close)
            is_stored = self.ahead is None and in_object_store(self.location)
            self.durability = Durability.STORE if is_stored else Durability.DISK
            self.static = StaticVersions(self.location, declaration)
            self.keys = SensorKeys(self._log.recent_keys(max_keys), max_keys)
            self.arrivals = Arrivals(declaration, rates)
            self.measured = read_measured((rates or {}).get(MEASURED))
            by_default = declaration.has_default_idle
            self.time = SensorClock(
                declaration.lateness,
                DEFAULT_IDLE if by_default else declaration.idle,
                options.max_ahead,
                self._log.watermark,
                ends=not declaration.is_sensor_table,
                idle_of=self.arrivals.idle if by_default else None,
            )
            if (ahead := self.ahead_message(clock())) is not None:
                _LOG.warning("the log of %s %s", name, ahead)
            dead = dead_letter_log(name)
            self._dead = DeadLetters(locate(dead), options.log, clock, ahead_of(dead))
            opening.callback(self._dead.close)
            self.dead_letters = letters_ever(locate(dead))
            self._unreported = 0
            """Dead letters not yet reported to the server's log, and"""
            self._last_reason = ""
            """the reason of the last one."""
            self._reported_at = -TELL_EVERY
            self._preparation = Preparation(
                RowBuilder(declaration, options.epoch or SECONDS), self.time
            )
            self._closing = opening.pop_all()

    @property
    def end(self) -> Position:
        """The end of the log after all rows, also those that wait in its write-ahead."""
        return self._log.end

    @property
    def _log(self) -> LogWriter | WriteAhead:
        """What is appended to."""
        return self.ahead or self.writer

    def learned(self) -> dict[str, Any]:
        """What must be known after a restart, for `rates`."""
        return {**self.arrivals.to_json(), MEASURED: self.measured.to_json()}

    def ahead_message(self, now: int) -> str | None:
        """A message that the clock was or is wrong, if the log is ahead of it; None: it is not."""
        watermark = self.time.watermark
        if watermark is None or watermark - now <= _AHEAD:
            return None
        return (
            f"is ahead of the clock by {format_duration(watermark - now)}: until the clock has "
            "caught up, arrival times advance at half speed"
        )

    def prepare(self, received: Sequence[Received]) -> Prepared:
        """Prepare received events for an append."""
        try:
            return self._preparation.prepare(received)
        except Exception as error:  # a value may be anything: unusable ones are set apart
            return self._preparation.refuse_all(received, f"{type(error).__name__}: {error}")

    def keep_letters(self, prepared: Prepared) -> None:
        """Store dead letters, before the rows: a crash may repeat them but not lose them."""
        self._dead.append(prepared.letters)
        self.dead_letters += len(prepared.letters)
        if prepared.letters:
            self._unreported += len(prepared.letters)
            self._last_reason = prepared.letters[-1].reason

    def append(self, prepared: Prepared, now: int, deaf: bool) -> None:
        """Store the rows and the watermark; if LogFullError is raised, nothing was stored.

        `deaf`: sensors had to wait to be read, so none of them counts as silent.
        """
        if deaf:
            self.time.wake(now)
        self.static.store()
        keys = [
            SensorKeys.spell(one.sensor.number, one.key)
            for one in prepared.received
            if one.key is not None
        ]
        watermark = self.time.advance(now)
        rows = prepared.rows if len(prepared.owners) else None
        if rows is None and not keys and watermark == self._log.watermark:
            return
        try:
            if self.ahead is None:
                self.writer.append(rows, watermark=watermark, keys=keys)
            else:
                row_keys = _keys_of_rows(prepared) if keys or self._replays else None
                self.ahead.append(rows, watermark=watermark, keys=keys, row_keys=row_keys)
        except LogFullError:
            if rows is not None:
                raise
            return  # nothing is lost: the next rows carry the watermark
        except Exception:
            self._log.repair()  # for the next attempt
            raise
        if rows is not None:
            self.measured.add(rows, now)
        self.keys.appended(keys)
        self._repeat_keys()

    def _repeat_keys(self) -> None:
        """Append keys again; the rows are stored, so no failure here may cause a second append."""
        if repeats := self.keys.repeats():
            with suppress(Exception):  # with the next rows, then
                self._log.append(None, keys=repeats)
                self.keys.repeated()

    def tick(self, now: int, listened: bool) -> bool:
        """Delete what is not needed, and advance the watermark if `listened`; True once done."""
        if listened:
            watermark = self.time.advance(now)
            if watermark != self._log.watermark:
                self._log.append(None, watermark=watermark)
        self._log.trim()
        self._dead.trim()
        if monotonic() - self._reported_at >= TELL_EVERY:
            self._tell_dead_letters()
        return True

    def _tell_dead_letters(self) -> None:
        if self._unreported:
            tell_dead_letters(self.name, self._unreported, self._last_reason)
            self._unreported, self._reported_at = 0, monotonic()

    def make_room(self) -> bool:
        """Delete what every reader has read; return whether there was anything."""
        return self._log.trim() > 0

    def drop_oldest(self) -> int | None:
        """Delete the oldest rows, needed or not, and return how many; None: there are none."""
        before = self._all_bytes
        rows = self._log.drop_oldest()
        return rows if self._all_bytes < before else None

    @property
    def _all_bytes(self) -> int:
        """What the log takes with its write-ahead."""
        return self.writer.stored_bytes + (0 if self.ahead is None else self.ahead.stored_bytes)

    def close(self) -> None:
        self._tell_dead_letters()
        self._closing.close()


def _keys_of_rows(prepared: Prepared) -> list[bytes]:
    """The delivery key of each row, as the log keeps it; of a row without one its sensor alone."""
    keys = [SensorKeys.spell(one.sensor.number, one.key or b"") for one in prepared.received]
    return [keys[at] for at in prepared.owners.tolist()]
