"""One stream or sensor table: its log, and the tasks of the sensors that readers need."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import Any

from nilometer.errors import InputError, in_one_line
from nilometer.kernels.read_times import with_forms
from nilometer.model.secrets import options_with_secrets, shown_text, with_secrets
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.log_options import StreamOptions
from nilometer.sensors.manager.appender import Appender
from nilometer.sensors.manager.log_store import LogStore
from nilometer.sensors.manager.sensor_record import SensorRecord
from nilometer.sensors.manager.sensor_task import SensorTask
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.sensors.manager.status import SensorState, SensorStatus, StreamStatus
from nilometer.sensors.manager.stream_unit import StreamUnit
from nilometer.sensors.stream_type import SensorAddress, StreamType
from nilometer.sensors.types.address import read_address


class ManagedStream:
    """Opens and closes sensors as they are wanted; lives in the manager's loop."""

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
    ) -> None:
        self.declaration = declaration
        self.store = store
        self.readers = 0
        self._options = options
        self._find_type = find_type
        self._type: Callable[[], StreamType] | None = None
        self._settings = settings
        self._clock = clock
        self._wall = wall
        self._unit = None
        if options.unit is not None:
            self._unit = StreamUnit(options.unit, find_unit, self._address_of)
        self._appender = Appender(store, options, settings, clock, threads, self._fail, self._unit)
        self._tasks: dict[int, SensorTask] = {}
        self._leaving: dict[int, asyncio.Task[None]] = {}
        self._appending = asyncio.create_task(self._appender.run())
        self.trouble: str | None = None
        """Why its readers or sensors cannot be looked up."""

    def note_readers(self, readers: int) -> None:
        """So many readers are alive."""
        self.readers, self._appender.listened = readers, readers > 0

    def want(self, sensors: Iterable[Sensor], *, pause: bool = False) -> bool:
        """Read exactly these sensors from now on; False: some must be let go first, ask again.

        `pause`: what others say from now on is still wanted by somebody who is away.
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
        """Let all sensors go; `drain`: what they have brought is stored first."""
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
        self.store.close()

    def note_rates(self, seconds: float) -> None:
        for task in self._tasks.values():
            task.record.note_rate(seconds)

    def sensor_statuses(self) -> list[SensorStatus]:
        """The sensors that are wanted, by number; any thread may ask."""
        records = [task.record for task in list(self._tasks.values())]
        return [one.status() for one in sorted(records, key=lambda one: one.number)]

    def status(self) -> StreamStatus:
        """Any thread may ask."""
        tasks: Mapping[int, SensorTask] = dict(self._tasks)
        held = tasks.get(-1 if (by := self.store.time.held_by) is None else by)
        states = [task.record.state for task in tasks.values()]
        writer = self.store.writer
        return StreamStatus(
            name=self.declaration.name,
            sensors=len(tasks),
            connected=states.count(SensorState.CONNECTED),
            readers=self.readers,
            rows=writer.end.row,
            stored_bytes=writer.stored_bytes,
            watermark=writer.watermark,
            held_by=None if held is None else held.record.name,
            pending=self._appender.pending_rows,
            full=self._appender.full,
            error=self._error(),
            dead_letters=self.store.dead_letters,
            dropped=self._appender.dropped,
        )

    def _start(self, sensor: Sensor) -> SensorTask:
        record = SensorRecord(
            stream=self.declaration.name,
            number=sensor.number,
            name=self._name(sensor),
            address=sensor.address,
            since=self._clock(),
            by_arrival=self.declaration.time is None,
        )
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
        found = self._appender.error or self.trouble or self._missing_unit() or self._ahead()
        return None if found is None else shown_text(found)

    def _ahead(self) -> str | None:
        """What a clock that was wrong has done to times of arrival, if it has."""
        if self.declaration.time is not None:
            return None
        told = self.store.told_ahead(self._wall())
        return None if told is None else f"its log {told}"

    def _missing_unit(self) -> str | None:
        """Why nothing is read, if that is because the unit is not registered."""
        try:
            if self._unit is not None:
                self._unit.require()
        except InputError as error:
            return in_one_line(error)
        return None

    def _make(self) -> StreamType:
        """A new object of the stream type, which is looked up once: that takes a while."""
        if self._unit is not None:
            self._unit.require()  # what is read without it would be lost
        if self._type is None:
            self._type = self._find_type(self.declaration.stream_type)
        return self._type()

    def _let_go(self, number: int, *, pause: bool) -> None:
        task = asyncio.create_task(self._tasks.pop(number).stop(pause=pause))
        self._leaving[number] = task
        task.add_done_callback(lambda _: self._leaving.pop(number, None))

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
