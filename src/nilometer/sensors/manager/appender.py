"""Group commit: readings from the sensors of a log are collected, appended, then acknowledged."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, TypeVar

from nilometer.errors import LogFullError, in_one_line
from nilometer.log.options import WhenFull
from nilometer.sensors.log_options import StreamOptions
from nilometer.sensors.manager.log_store import LogStore
from nilometer.sensors.manager.prepare import Prepared
from nilometer.sensors.manager.received import Event, Received
from nilometer.sensors.manager.sensor_events import (
    TELL_EVERY,
    tell_appending,
    tell_dropped,
    tell_trouble,
)
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.sensors.manager.stream_unit import StreamUnit

_Result = TypeVar("_Result")


class Appender:
    """The way into one log; everything except the store runs in the manager's loop."""

    def __init__(
        self,
        store: LogStore,
        options: StreamOptions,
        settings: ManagerSettings,
        clock: Callable[[], int],
        threads: Executor,
        fail: Callable[[int, str], None],
        unit: StreamUnit | None = None,
    ) -> None:
        """`fail` receives the number of a sensor that must be closed, and the reason."""
        self.store = store
        self.listened = False
        """Whether a reader is alive."""
        self.full = False
        self.error: str | None = None
        self.dropped = 0
        self.counted = store.end
        """The position up to which readings are included in their sensors' counts."""
        self.pending_rows = 0
        self._pending_bytes = 0
        self._options = options
        self._settings = settings
        self._clock = clock
        self._threads = threads
        self._fail = fail
        self._unit = unit
        self._pending: deque[Received] = deque()
        self._unsettled: Counter[int] = Counter()
        """How many readings of each sensor are neither stored nor refused yet."""
        self._put = self._done = 0
        self._work = asyncio.Event()
        self._hurry = asyncio.Event()
        self._progress = asyncio.Condition()
        self._stopping = False
        self._deaf = False
        """Whether sensors had to wait since the last append."""
        self._is_troubled = False
        """Whether the server's log was notified that nothing can be appended."""
        self._reported_dropped = 0
        self._tell_after = 0.0

    def count_on(self, dropped: int) -> None:
        """Include this many readings that were dropped before the restart."""
        self.dropped = self._reported_dropped = dropped

    def put(self, one: Received) -> None:
        """Accept one event; if there is no room, a sensor that cannot wait loses readings."""
        if one.event is Event.READING and not one.sensor.can_wait and self._is_crowded():
            if self._options.log.when_full is not WhenFull.DROP_OLDEST:
                self._turn_away(one)
                return
            self._drop_oldest_pending()
        self._pending.append(one)
        self._unsettled[one.sensor.number] += one.event is Event.READING
        self._put += 1
        self.pending_rows += one.size
        self._pending_bytes += one.weight
        self._work.set()

    @property
    def is_deaf(self) -> bool:
        """Whether sensors must wait to be read."""
        return self._deaf or self.full

    async def room(self) -> None:
        """Wait until a sensor that can wait may be read."""
        if self._is_crowded():
            self._deaf = True
            async with self._progress:
                await self._progress.wait_for(lambda: not self._is_crowded())

    async def flushed(self) -> None:
        """Wait until everything put so far is stored and acknowledged."""
        goal = self._put
        self._hurry.set()
        async with self._progress:
            await self._progress.wait_for(lambda: self._done >= goal)

    async def settled(self, number: int) -> None:
        """Wait until all readings of a sensor are stored or finally refused."""
        async with self._progress:
            await self._progress.wait_for(lambda: not self._unsettled[number])

    async def run(self) -> None:
        """Append until `stop` is called, then append the rest."""
        loop = asyncio.get_running_loop()
        next_tick = loop.time() + self._settings.tick_every
        while not self._stopping or self._pending:
            await self._wait_until(next_tick)
            if self._pending:
                await self._append_some()
            if loop.time() >= next_tick:
                next_tick = loop.time() + self._settings.tick_every
                # If something is waiting to be appended, it will carry the time with it.
                tells = self.listened and not self._pending
                if await self._try(self.store.tick, self._clock(), tells):
                    self.error = None
                self._tell_dropped(loop.time())

    def abandon(self) -> None:
        """Discard what has not been stored; none of it is acknowledged."""
        self._pending.clear()
        self._unsettled.clear()
        self._done = self._put

    def stop(self) -> None:
        """Let `run` end once everything is stored."""
        self._stopping = True
        self._work.set()
        self._hurry.set()

    async def _wait_until(self, time: float) -> None:
        """Wait for something to append, then a little longer for more."""
        loop = asyncio.get_running_loop()
        if not self._pending and not self._stopping:
            self._work.clear()
            try:
                async with asyncio.timeout(max(0.0, time - loop.time())):
                    await self._work.wait()
            except TimeoutError:
                return
        if not self._stopping and self.pending_rows < self._settings.append_rows:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._options.linger / 1e6):
                    await self._hurry.wait()
        self._hurry.clear()

    async def _append_some(self) -> None:
        received = self._cut()
        prepared = await self._in_thread(self._prepare, received)
        await self._until_it_works(self.store.keep_letters, prepared)
        await self._store(prepared)
        for one in prepared.received:
            one.sensor.readings += one.rows
        self.counted = self.store.end
        self._settle(received)
        self._deaf = self._is_crowded()
        async with self._progress:
            self._progress.notify_all()

    def _prepare(self, received: list[Received]) -> Prepared:
        return self.store.prepare(received if self._unit is None else self._unit.apply(received))

    def _cut(self) -> list[Received]:
        received = []
        rows = 0
        while self._pending and rows < self._settings.append_rows:
            one = self._pending.popleft()
            rows += one.size
            received.append(one)
        return received

    def _heard_until(self) -> int:
        """The time up to which all arrivals have been judged, or are being judged."""
        return self._pending[0].arrived if self._pending else self._clock()

    async def _store(self, prepared: Prepared) -> None:
        """Append, however long it takes; rows without room are dropped only if they cannot wait."""
        while True:
            try:
                await self._in_thread(self.store.append, prepared, self._heard_until(), self._deaf)
                break
            except LogFullError as error:
                self.full = self._deaf = True
                self._note_trouble(error)
                prepared = await self._make_room(prepared, error)
            except Exception as error:
                await self._suffer(error)
        if self._is_troubled:
            self._is_troubled = False
            tell_appending(self.store.name)
        self.error, self.full = None, False
        prepared.count()

    async def _make_room(self, prepared: Prepared, error: LogFullError) -> Prepared:
        """Wait for room, or make it as the log's option says; return what is left to append."""
        if await self._try(self.store.make_room):
            return prepared
        impatient = [one for one in prepared.received if self._cannot_wait(one)]
        if impatient:
            policy = self._options.log.when_full
            if policy is WhenFull.DROP_OLDEST:
                rows = await self._try(self.store.drop_oldest)
                if rows is not None:
                    self.dropped += rows
                    return prepared
            rest = prepared.keep(lambda one: not self._cannot_wait(one))
            before = len(prepared.owners)
            if before > len(rest.owners):
                self._count_dropped(prepared, rest)
                if policy is WhenFull.FAIL:
                    for one in impatient:
                        self._fail(one.sensor.number, error.message)
                return rest
        await asyncio.sleep(self._settings.room_timeout)
        return prepared

    def _count_dropped(self, prepared: Prepared, rest: Prepared) -> None:
        prepared.count()
        before = [one.rows for one in prepared.received]
        rest.count()
        for one, rows in zip(prepared.received, before, strict=True):
            one.sensor.dropped += rows - one.rows
            self.dropped += rows - one.rows

    def _settle(self, received: list[Received]) -> None:
        """Report that these events are stored or finally refused."""
        for one in received:
            self.pending_rows -= one.size
            self._pending_bytes -= one.weight
            self._unsettled[one.sensor.number] -= one.event is Event.READING
            self._acknowledge(one)
        self._done += len(received)

    def _turn_away(self, one: Received) -> None:
        one.sensor.dropped += one.size
        self.dropped += one.size
        if self._options.log.when_full is WhenFull.FAIL:
            self._fail(one.sensor.number, "readings came faster than they could be stored")
        self._acknowledge(one)

    def _drop_oldest_pending(self) -> None:
        """Make room by dropping the oldest pending reading of a sensor that cannot wait."""
        for at, one in enumerate(self._pending):
            if self._cannot_wait(one):
                del self._pending[at]
                self.pending_rows -= one.size
                self._pending_bytes -= one.weight
                self._unsettled[one.sensor.number] -= 1
                self._done += 1
                one.sensor.dropped += one.size
                self.dropped += one.size
                self._acknowledge(one)
                return

    @staticmethod
    def _acknowledge(one: Received) -> None:
        if one.stored is not None:
            try:
                one.stored()
            except Exception as error:  # a stream type may fail in any way
                one.sensor.note_error(error)

    @staticmethod
    def _cannot_wait(one: Received) -> bool:
        return one.event is Event.READING and not one.sensor.can_wait

    def _is_crowded(self) -> bool:
        return (
            self.pending_rows >= self._settings.pending_rows
            or self._pending_bytes >= self._settings.pending_bytes
        )

    async def _in_thread(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    async def _try(self, function: Callable[..., _Result], *arguments: Any) -> _Result | None:
        """Return the result of a store function, or None and log the error if it fails."""
        try:
            return await self._in_thread(function, *arguments)
        except Exception as error:
            self.error = in_one_line(error)
            return None

    async def _until_it_works(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        while True:
            try:
                return await self._in_thread(function, *arguments)
            except Exception as error:
                await self._suffer(error)

    async def _suffer(self, error: Exception) -> None:
        """Make the sensors wait: whatever is wrong with the disk may pass."""
        self._note_trouble(error)
        self._deaf = True
        await asyncio.sleep(self._settings.room_timeout)

    def _note_trouble(self, error: Exception) -> None:
        self.error = in_one_line(error)
        if not self._is_troubled:
            self._is_troubled = True
            tell_trouble(self.store.name, self.error)

    def _tell_dropped(self, now: float) -> None:
        if self.dropped > self._reported_dropped and now >= self._tell_after:
            tell_dropped(self.store.name, self.dropped - self._reported_dropped)
            self._reported_dropped, self._tell_after = self.dropped, now + TELL_EVERY
