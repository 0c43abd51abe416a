"""One sensor: connected again and again, read, and closed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from nilometer.model.time_forms import micros_of
from nilometer.sensors.declaration import Sensor
from nilometer.sensors.manager.appender import Appender
from nilometer.sensors.manager.call_stream import StreamCalls
from nilometer.sensors.manager.received import Event, Received
from nilometer.sensors.manager.sensor_events import tell_closed, tell_lost, tell_regained
from nilometer.sensors.manager.sensor_record import SensorRecord
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.sensors.manager.status import SensorState
from nilometer.sensors.stream_type import (
    BadReadingError,
    Reading,
    SensorAddress,
    Status,
    StreamType,
    TryLaterError,
)

_INTERVAL: Final = 0.1


class SensorTask:
    """Reads a sensor into its log until it is stopped."""

    def __init__(
        self,
        sensor: Sensor,
        record: SensorRecord,
        make: Callable[[], StreamType],
        address: Callable[[], SensorAddress],
        appender: Appender,
        settings: ManagerSettings,
        clock: Callable[[], int],
    ) -> None:
        self.sensor = sensor
        """Its present row; another version may replace it while it is read."""
        self.record = record
        self._make = make
        self._address = address
        self._appender = appender
        self._settings = settings
        self._clock = clock
        self._wait = settings.first_wait
        self._is_known = False
        self._is_leaving = False
        self._is_stopped = False
        self._pauses = False
        self._failure: str | None = None
        self._reported_lost = False
        self._is_there = False
        self._task = asyncio.create_task(self._run())

    async def stop(self, *, pause: bool) -> None:
        """Close the sensor with everything it sent stored; `pause`: it is still wanted."""
        self._is_stopped, self._pauses = True, pause
        self._cancel()
        await asyncio.wait([self._task])
        self._put(Event.CLOSED)

    def fail(self, message: str) -> None:
        """Close the sensor for good."""
        if self._failure is None:
            self._failure = message
            self._cancel()

    def _cancel(self) -> None:
        if not self._is_leaving:  # a sensor that is closing must not be disturbed
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while not (self._is_stopped or self._failure or await self._attempt()):
                pass
        except asyncio.CancelledError:
            pass  # stopped, or failed
        if self._failure is not None:
            self.record.note_error(self._failure)
            tell_closed(self.record)
            self._to(SensorState.FAILED)
            self._put(Event.ENDED)

    async def _attempt(self) -> bool:
        """Connect to the sensor and read it while that works; return whether it has ended."""
        after = 0.0
        try:
            await self._read_until_end()
        except Exception as error:  # a stream type may fail in any way
            self.record.note_error(error)
            if not (self._is_stopped or self._failure):
                self._reported_lost = self._reported_lost or tell_lost(self.record)
            after = error.after if isinstance(error, TryLaterError) else 0.0
        else:
            self._to(SensorState.ENDED)
            self._put(Event.ENDED)
            return True
        if self._is_stopped or self._failure:  # while it was closing
            return False
        self._to(SensorState.WAITING)
        # Many sensors that fail together must not all reconnect at the same instant.
        await asyncio.sleep(max(after, self._wait * random.uniform(0.5, 1.0)))
        self._wait = min(self._wait * 2, self._settings.longest_wait)
        return False

    async def _read_until_end(self) -> None:
        self._to(SensorState.OPENING)
        # Where to resume is known only once everything read before is stored.
        await self._appender.settled(self.record.number)
        calls = StreamCalls(self._make())
        self.record.use(calls.stream)
        if not self._is_known:
            self.record.by_arrival &= not getattr(calls.stream, "tells_time", False)
            self._put(Event.OPENED)
            self._is_known = True
        is_open = False
        try:
            await calls.call("init_stream", self._address())
            is_open = True
            self.record.can_wait = calls.stream.can_wait
            every = getattr(calls.stream, "every", 0.0)
            self.record.gaps.ask(every)
            self._is_there = False
            if not every:  # a sensor that is asked is connected once it has answered
                self._connected()
            while not await self._read_once(calls):
                pass
        finally:
            await self._leave(calls, is_open)

    def _connected(self) -> None:
        """Note that the sensor is connected, perhaps again."""
        self._is_there = True
        self._reported_lost = self._reported_lost and tell_regained(self.record)
        self._to(SensorState.CONNECTED)

    async def _read_once(self, calls: StreamCalls) -> bool:
        """Take what arrives next; return whether the sensor has ended."""
        if self.record.can_wait:
            await self._appender.room()
        try:
            result = await calls.call("read_stream")
        except BadReadingError as error:
            result = [error]
        if not self._is_there:
            self._connected()
        status = self._take(result)
        self._wait = self._settings.first_wait
        if status is Status.NO_VALUE and not calls.is_async("read_stream"):
            await asyncio.sleep(getattr(calls.stream, "interval", _INTERVAL))
        else:
            await asyncio.sleep(0)  # let others run, even if this one has more
        return status is Status.END

    def _take(self, result: Any) -> Status:
        """Pass readings on; return the last status."""
        status = Status.NO_VALUE
        for one in result if isinstance(result, list) else [result]:
            if isinstance(one, BadReadingError):
                self._put(
                    Event.BAD_READING, value=one.payload, reason=one.reason, stored=one.stored
                )
                status = Status.NEW_VALUE
                continue
            reading = Reading(one) if isinstance(one, Status) else Reading(*one)
            status = Status(reading.status)
            if status is Status.NEW_VALUE:
                time = reading.time
                self._put(
                    Event.READING,
                    value=reading.value,
                    time=micros_of(time) if isinstance(time, datetime) else time,
                    key=reading.key,
                    stored=reading.stored,
                    queued=reading.queued,
                    origin=reading.origin,
                )
        return status

    async def _leave(self, calls: StreamCalls, is_open: bool) -> None:
        """Store and acknowledge everything that was read, and only then close the sensor."""
        self._is_leaving = True
        timeout = self._settings.close_timeout
        try:
            name, result = await calls.last_result(timeout) or ("", None)
            if name == "read_stream":
                self._take(result)
            if is_open or name == "init_stream":
                await asyncio.wait_for(self._appender.flushed(), timeout)
                pauses = self._pauses and hasattr(calls.stream, "pause_stream")
                leave = "pause_stream" if pauses else "close_stream"
                await asyncio.wait_for(calls.call(leave), timeout)
        except Exception as error:  # then it is left alone
            self.record.note_error(error)
        finally:
            calls.let_go()
            self._is_leaving = False

    def _put(self, event: Event, **what: Any) -> None:
        now = self._clock()
        self._appender.put(Received(event, self.record, self.sensor.version, now, **what))

    def _to(self, state: SensorState) -> None:
        self.record.to(state, self._clock())
