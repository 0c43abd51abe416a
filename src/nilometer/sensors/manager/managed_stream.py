"""One stream or sensor table: its log, and the tasks of the sensors that readers need."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import Any

from nilometer.errors import InputError, in_one_line
from nilometer.kernels.read_times import with_forms
from nilometer.model.names import count
from nilometer.model.secrets import options_with_secrets, shown_text, with_secrets
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.log_options import StreamOptions
from nilometer.sensors.manager.appender import Appender
from nilometer.sensors.manager.kept_counts import MOST_PAST, SensorCounts, StreamCounts
from nilometer.sensors.manager.log_store import LogStore
from nilometer.sensors.manager.sensor_events import tell_backlog
from nilometer.sensors.manager.sensor_record import SensorRecord
from nilometer.sensors.manager.sensor_task import SensorTask
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.sensors.manager.silence import SilenceWatch
from nilometer.sensors.manager.status import SensorState, SensorStatus, StreamStatus
from nilometer.sensors.manager.stream_unit import StreamUnit
from nilometer.sensors.stream_type import SensorAddress, StreamType
from nilometer.sensors.types.address import read_address


class ManagedStream:
    """Opens and closes sensors as readers need them; lives in the manager's loop."""

    def __init__(
        self,
        declaration: Declaration,
        options: StreamOptions,
        store: LogStore,
        find_type: Callable[[str], Callable[[], StreamType]],
        find_unit: Callable[[str], Callable[..., Any]],
        settings: ManagerSettings,
        clock: Callable[[], int],
        wall: Callable[[], int],
        threads: Executor,
        before: StreamCounts | None = None,
    ) -> None:
        """`before`: the counts of an earlier process."""
        self.declaration = declaration
        self.store = store
        self.readers = 0
        self._options = options
        self._find_type = find_type
        self._type: Callable[[], StreamType] | None = None
        self._settings = settings
        self._threads = threads
        self._clock = clock
        self._wall = wall
        self._unit = None
        if options.unit is not None:
            self._unit = StreamUnit(options.unit, find_unit, self._address_of)
        self._appender = Appender(store, options, settings, clock, threads, self._fail, self._unit)
        self._past: dict[int, SensorCounts | SensorRecord] = {}
        """Sensors that are not wanted now; their last readings may still be counted."""
        if before is not None:
            self._past.update(before.sensors)
            self._appender.count_on(before.dropped)
        self._tasks: dict[int, SensorTask] = {}
        self._seen_backlog = self._reported_backlog = self._past_backlog()
        self._leaving: dict[int, asyncio.Task[None]] = {}
        self._appending = asyncio.create_task(self._appender.run())
        self._silence = SilenceWatch(declaration.name, store.arrivals, store.time)
        self.trouble: str | None = None
        """Why its readers or sensors cannot be looked up."""

    def note_readers(self, readers: int) -> None:
        """Note how many readers are alive."""
        self.readers, self._appender.listened = readers, readers > 0

    def want(self, sensors: Iterable[Sensor], *, pause: bool = False) -> bool:
        """Read exactly these sensors from now on; False: some must be closed first, ask again.

        `pause`: what the other sensors send from now on is still wanted by an absent reader.
        """
        wanted = {one.number: one for one in sensors}
        self.store.static.want(wanted.values())
        for number, task in list(self._tasks.items()):
            sensor = wanted.get(number)
            if sensor is None:
                self._let_go(number, pause=pause)
            elif sensor.address != task.sensor.address:
                self._let_go(number, pause=False)
            elif sensor.version != task.sensor.version:
                task.sensor = sensor
                task.record.name = self._name(sensor)
        new = [one for number, one in wanted.items() if number not in self._tasks]
        for sensor in new:
            if sensor.number not in self._leaving:
                self._tasks[sensor.number] = self._start(sensor)
        return all(number in self._tasks for number in wanted)

    async def stop(self, *, pause: bool, drain: bool) -> None:
        """Close all sensors; `drain`: what they have sent is stored first."""
        if not drain:
            self._appender.abandon()
        for number in list(self._tasks):
            self._let_go(number, pause=pause)
        if self._leaving:
            await asyncio.wait(list(self._leaving.values()))
        self._appender.stop()
        await asyncio.wait([self._appending], timeout=self._settings.close_timeout)
        self._appending.cancel()
        await asyncio.wait([self._appending])
        # It may ship what waits, which takes requests to a store.
        await asyncio.get_running_loop().run_in_executor(self._threads, self.store.close)

    def look_at_sensors(self, seconds: float) -> None:
        """Update rates and silence; called once in this many seconds."""
        records = [task.record for task in self._tasks.values()]
        for one in records:
            one.note_rate(seconds)
        self._silence.look(records, self._clock(), deaf=self._appender.is_deaf)
        self._look_at_backlog(sum(one.backlog for one in records) + self._past_backlog())

    def _look_at_backlog(self, backlog: int) -> None:
        """Report a backlog once it has ended."""
        if backlog == self._seen_backlog > self._reported_backlog:
            tell_backlog(self.declaration.name, backlog - self._reported_backlog)
            self._reported_backlog = backlog
        self._seen_backlog = backlog

    def sensor_statuses(self) -> list[SensorStatus]:
        """The sensors that are wanted, by number; any thread may ask."""
        records, now = [task.record for task in list(self._tasks.values())], self._clock()
        return [one.status(now) for one in sorted(records, key=lambda one: one.number)]

    def counts(self) -> StreamCounts:
        """The counts to continue after a restart, except for sensors that the status includes."""
        end, dropped = self._appender.counted.to_json(), self._appender.dropped
        past = {number: _counts(one) for number, one in self._past.items()}
        return StreamCounts(self.store.writer.log_id, end, dropped, past)

    def status(self) -> StreamStatus:
        """The status of the stream; safe to call from any thread."""
        tasks: Mapping[int, SensorTask] = dict(self._tasks)
        records = [task.record for task in tasks.values()]
        states = [one.state for one in records]
        heard = [one.last_arrival for one in records if one.last_arrival is not None]
        store, writer, silence = self.store, self.store.writer, self._silence.current
        watermark = writer.watermark
        segments = writer.segments
        return StreamStatus(
            name=self.declaration.name,
            sensors=len(tasks),
            connected=states.count(SensorState.CONNECTED),
            readers=self.readers,
            rows=writer.end.row,
            stored_bytes=writer.stored_bytes,
            watermark=watermark,
            lag=None if watermark is None else max(0, self._clock() - watermark),
            held_by=silence.held_by,
            held_since=silence.held_since,
            silent=silence.silent,
            silent_since=silence.silent_since,
            last_arrival=max(heard, default=None),
            pending=self._appender.pending_rows,
            full=self._appender.full,
            error=self._error(),
            dead_letters=self.store.dead_letters,
            dropped=self._appender.dropped,
            backlog=sum(one.backlog for one in records) + self._past_backlog(),
            segments=len(segments),
            kept_rows=writer.end.row - segments[0].first_row if segments else 0,
            oldest=segments[0].created if segments else None,
            rate=round(sum(one.rate for one in records), 3),
            behind=_behind(records),
            durability=store.durability,
            unshipped=0 if store.ahead is None else store.ahead.waiting_rows,
            unshipped_since=None if store.ahead is None else store.ahead.waiting_since,
        )

    def _past_backlog(self) -> int:
        return sum(one.backlog for one in list(self._past.values()))

    def _start(self, sensor: Sensor) -> SensorTask:
        now = self._clock()
        record = SensorRecord(
            stream=self.declaration.name,
            number=sensor.number,
            name=self._name(sensor),
            address=sensor.address,
            since=now,
            listened_since=now,
            gaps=self.store.arrivals.of(sensor.number),
            by_arrival=self.declaration.time is None,
        )
        if (before := self._past.pop(sensor.number, None)) is not None:
            record.go_on(_counts(before))
        return SensorTask(
            sensor,
            record,
            self._make,
            lambda: self._address_of(record),
            self._appender,
            self._settings,
            self._clock,
        )

    def _error(self) -> str | None:
        message = (
            self._appender.error
            or self._not_shipped()
            or self.trouble
            or self._missing_unit()
            or self._ahead()
        )
        return None if message is None else shown_text(message)

    def _not_shipped(self) -> str | None:
        """Why rows wait on this disk, if the object store does not take them."""
        ahead = self.store.ahead
        if ahead is None or ahead.problem is None:
            return None
        return f"{count(ahead.waiting_rows, 'row')} wait for the object store: {ahead.problem}"

    def _ahead(self) -> str | None:
        """How a wrong clock has affected arrival times, if it has."""
        if self.declaration.time is not None:
            return None
        message = self.store.ahead_message(self._wall())
        return None if message is None else f"its log {message}"

    def _missing_unit(self) -> str | None:
        """Why nothing is read, if the reason is that the unit is not registered."""
        try:
            if self._unit is not None:
                self._unit.require()
        except InputError as error:
            return in_one_line(error)
        return None

    def _make(self) -> StreamType:
        """A new object of the stream type, which is looked up only once because that is slow."""
        if self._unit is not None:
            self._unit.require()  # without it, readings would be lost
        if self._type is None:
            self._type = self._find_type(self.declaration.stream_type)
        return self._type()

    def _let_go(self, number: int, *, pause: bool) -> None:
        leaving = self._tasks.pop(number)
        self._keep(leaving.record)
        task = asyncio.create_task(leaving.stop(pause=pause))
        self._leaving[number] = task

        def left(_: object) -> None:
            leaving.record.use(None)
            self._leaving.pop(number, None)

        task.add_done_callback(left)

    def _keep(self, record: SensorRecord) -> None:
        """Remember the counts of a sensor that is closed."""
        self._past[record.number] = record
        if len(self._past) > MOST_PAST:
            del self._past[next(iter(self._past))]

    def _fail(self, number: int, message: str) -> None:
        if (task := self._tasks.get(number)) is not None:
            task.fail(message)

    def _name(self, sensor: Sensor) -> str:
        """Its first static value, or the stream's name."""
        return sensor.name or self.declaration.name

    def _address_of(self, record: SensorRecord) -> SensorAddress:
        address, own = read_address(record.address)
        table = self.declaration.name
        declared = self._options.unit_reads or self.declaration.readings
        columns = with_forms(declared, self._options.epoch)
        owner = f"{self._settings.identity}-{table}"
        return SensorAddress(
            table=table,
            sensor=record.name,
            address=with_secrets(address),
            options=options_with_secrets({**(self._options.of_type or {}), **own}),
            columns=columns,
            time=self.declaration.time if self.declaration.time in columns.names else None,
            identity=f"{owner}-{record.number}",
            delivered=self.store.keys.delivered(record.number),
            owner=owner,
        )


def _counts(one: SensorCounts | SensorRecord) -> SensorCounts:
    return one if isinstance(one, SensorCounts) else one.counts()


def _behind(records: Iterable[SensorRecord]) -> int | None:
    """How many readings wait at the other side, for the sensors for which this is known."""
    counts = [getattr(one.source, "behind", None) for one in records]
    known = [one for one in counts if one is not None]
    return sum(known) if known else None
