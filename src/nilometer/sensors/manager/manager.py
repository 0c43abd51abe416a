"""The stream manager (STEAM 3.3): reads exactly the sensors that readers need into their logs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic, thread_time
from typing import Any, Final, TypeVar

from nilometer.errors import InputError, InternalError
from nilometer.log.clock import SteadyClock
from nilometer.log.reader import LogReader
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.find_types import stream_class
from nilometer.sensors.log_options import StreamOptions, read_stream_options
from nilometer.sensors.manager.demand import Readers, live_conditions
from nilometer.sensors.manager.kept_counts import StreamCounts, count_on, read_counts
from nilometer.sensors.manager.kept_rates import EVERY as KEEP_EVERY
from nilometer.sensors.manager.kept_rates import KeptRates
from nilometer.sensors.manager.log_store import LogStore
from nilometer.sensors.manager.managed_stream import ManagedStream
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.sensors.manager.status import SensorStatus, StreamStatus, write_status
from nilometer.sensors.stream_type import StreamType
from nilometer.sql.catalog import Statistics

_Result = TypeVar("_Result")
_THREADS: Final = 16
_MOST_FORGOTTEN: Final = 100
_LOOKING: Final = 0.1
"""The share of its time spent on finding readers: with a thousand readers this is slow."""
_LONGEST_REST: Final = 2.0
_DEFAULTS: Final = ManagerSettings()


def _no_folder(_: str) -> None:
    """No log has a write-ahead here."""


def _no_unit(name: str) -> Callable[..., Any]:
    raise InputError(f"there is no unit {name}", detail="none can be registered here")


class StreamManager:
    """One loop in a thread of its own, for thousands of sensors; every method is thread-safe."""

    def __init__(
        self,
        locate: Callable[[str], str],
        sensors: Callable[[str], Sequence[Sensor]],
        select: Callable[[Declaration, str | None], Set[int]],
        *,
        find_type: Callable[[str], Callable[[], StreamType]] = stream_class,
        find_unit: Callable[[str], Callable[..., Any]] = _no_unit,
        clock: Callable[[], int] | None = None,
        settings: ManagerSettings = _DEFAULTS,
        status_file: Path | None = None,
        ahead_of: Callable[[str], Path | None] = _no_folder,
    ) -> None:
        """`locate`: where the log of a name lies, and `ahead_of` its write-ahead, if it has one;
        `sensors`: the rows of a stream or table; `select`: the numbers of the sensors that satisfy
        a reader's condition; `find_unit`: the pre-processing unit with a name, or an InputError if
        it is unknown."""
        self._locate = locate
        self._ahead_of = ahead_of
        self._sensors = sensors
        self._select = select
        self._find_type = find_type
        self._find_unit = find_unit
        self._clock = clock or SteadyClock()
        self._wall = self._clock.wall if isinstance(self._clock, SteadyClock) else self._clock
        """The clock by which readers in other processes are seen."""
        self._settings = settings
        self._status_file = status_file
        self._rates = KeptRates(status_file)
        self._before = read_counts(status_file)
        """The counts of an earlier process, for streams that are not watched yet."""
        self._forgotten: dict[str, StreamCounts] = {}
        """By log id: a stream that is altered is forgotten, then watched again."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="stream manager", daemon=True)
        self._threads = ThreadPoolExecutor(_THREADS, "log")
        self._watched: dict[str, _Watched] = {}
        self._duties: list[asyncio.Task[None]] = []
        self._writing: set[asyncio.Future[None]] = set()

    @property
    def clock_ahead(self) -> int:
        """By how much the system's clock has jumped ahead, or (negative) back, microseconds."""
        return self._wall() - self._clock()

    def start(self) -> None:
        """Start reading; streams are watched from now on."""
        self._thread.start()
        self._call(self._begin())

    def stop(self, drain: bool = True) -> None:
        """Stop reading, store and acknowledge what was read, close sensors and logs.

        Sensors that can keep what arrives meanwhile are asked to, for the next start. Without
        `drain`, what was read but not stored yet is left to them, too.
        """
        if not self._thread.is_alive():
            return
        self._call(self._end(drain))
        self._call(self._loop.shutdown_default_executor())  # ends reader lookups
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._threads.shutdown()

    def watch(self, declaration: Declaration) -> None:
        """Register a stream or sensor table and create or open its log; raises if that fails."""
        options = read_stream_options(declaration.options, declaration.history)
        rates = self._rates.of(declaration.name)
        store = LogStore(
            declaration,
            options,
            self._locate,
            self._settings,
            self._clock,
            rates,
            self._ahead_of,
            replays=self._replays(declaration.stream_type),
        )
        try:
            before = self._counted_before(declaration, store)
            self._call(self._watch(declaration, options, store, before))
        except BaseException:
            store.close()
            raise

    def forget(self, name: str, *, pause: bool = False) -> None:
        """Close its sensors and its log.

        `pause`: sensors that can keep what arrives meanwhile are asked to.
        """
        self._call(self._forget(name, pause))

    def changed(self, name: str) -> None:
        """Note that the rows of its sensors have changed."""
        if (watched := self._watched.get(name)) is not None:
            watched.is_current = False

    def status(self, name: str) -> list[SensorStatus]:
        """The sensors of a stream that are wanted at present."""
        watched = self._watched.get(name)
        return [] if watched is None else watched.stream.sensor_statuses()

    def measured(self, name: str) -> Statistics:
        """Measured statistics of a stream's rows; empty for a stream that is not watched."""
        watched = self._watched.get(name)
        return Statistics() if watched is None else watched.stream.store.measured.statistics

    def streams(self) -> list[StreamStatus]:
        """All watched streams, by name."""
        entries = list(self._watched.items())
        return [watched.stream.status() for _, watched in sorted(entries, key=lambda one: one[0])]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _call(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        if not self._thread.is_alive():
            work.close()
            raise InternalError("the stream manager is not running")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _begin(self) -> None:
        self._duties = [
            asyncio.create_task(self._look_for_ever()),
            asyncio.create_task(self._tell_for_ever()),
        ]

    async def _end(self, drain: bool) -> None:
        for duty in self._duties:
            duty.cancel()
        await asyncio.wait(self._duties)
        if self._writing:  # a file being written now must not replace a newer one
            await asyncio.wait(self._writing)
        watched = list(self._watched.values())
        await asyncio.gather(*(one.stream.stop(pause=True, drain=drain) for one in watched))
        await self._keep_rates()
        await self._tell(durable=True)
        self._watched.clear()

    def _replays(self, stream_type: str) -> bool:
        """Whether sensors of a type deliver again everything after their last delivery key."""
        with suppress(InputError):  # it is reported when a sensor is opened
            return bool(getattr(self._find_type(stream_type), "replays", False))
        return False

    def _counted_before(self, declaration: Declaration, store: LogStore) -> StreamCounts | None:
        """The counts of an earlier process; None: it had none of this stream."""
        earlier = self._before.get(declaration.name)
        before = self._forgotten.pop(store.writer.log_id, earlier)
        if before is None or before.log != store.writer.log_id:
            return None
        only = None if declaration.is_sensor_table else declaration.only_sensor.number
        return count_on(before, LogReader.open(store.location), store.end, only)

    async def _watch(
        self,
        declaration: Declaration,
        options: StreamOptions,
        store: LogStore,
        before: StreamCounts | None,
    ) -> None:
        if declaration.name in self._watched:
            raise InputError(f"{declaration.name} is already being watched")
        stream = ManagedStream(
            declaration,
            options,
            store,
            self._find_type,
            self._find_unit,
            self._settings,
            self._clock,
            self._wall,
            self._threads,
            before,
        )
        readers = Readers(store.location, self._settings, self._wall)
        self._watched[declaration.name] = _Watched(stream, readers)
        self._before.pop(declaration.name, None)  # until now the status file has those

    async def _forget(self, name: str, pause: bool) -> None:
        self._rates.forget(name)
        self._before.pop(name, None)
        if (watched := self._watched.pop(name, None)) is not None:
            await watched.stream.stop(pause=pause, drain=True)
            counts = watched.stream.counts()
            self._forgotten[counts.log] = counts
            if len(self._forgotten) > _MOST_FORGOTTEN:
                del self._forgotten[next(iter(self._forgotten))]

    async def _look_for_ever(self) -> None:
        while True:
            began = thread_time()
            for watched in list(self._watched.values()):
                await self._look(watched)
            rest = min(_LONGEST_REST, (thread_time() - began) / _LOOKING)
            await asyncio.sleep(max(self._settings.look_every, rest))

    async def _look(self, watched: _Watched) -> None:
        """Read the sensors of a stream that its readers need at present."""
        stream = watched.stream
        try:
            alive = await watched.readers.look()
            conditions = watched.wanted_conditions(
                frozenset(live_conditions(alive)), self._settings
            )
            if watched.is_current and conditions == watched.conditions:
                stream.note_readers(len(alive))
                return
            watched.is_current = True  # set before the rows are read: later changes are found later
            stream.trouble, watched.conditions = None, conditions
            sensors = await asyncio.to_thread(self._wanted_sensors, watched)
            if self._watched.get(stream.declaration.name) is watched:
                stream.note_readers(len(alive))
                if not stream.want(sensors, pause=watched.readers.lost):
                    watched.is_current = False
        except Exception as error:  # whatever the catalog raises: try again next time
            watched.trouble(error)

    def _wanted_sensors(self, watched: _Watched) -> list[Sensor]:
        """The sensors in the catalog that satisfy one of the conditions."""
        if not watched.conditions:
            return []
        declaration = watched.stream.declaration
        sensors = self._sensors(declaration.name)
        if not declaration.is_sensor_table:
            return list(sensors)
        chosen = {}
        for condition in watched.conditions:
            try:
                chosen[condition] = self._select(declaration, condition)
            except Exception as error:  # one reader's error must not affect the others
                chosen[condition] = watched.chosen.get(condition, frozenset())
                watched.trouble(error)
        watched.chosen = chosen
        numbers = frozenset().union(*chosen.values())
        return [one for one in sensors if one.number in numbers]

    async def _tell_for_ever(self) -> None:
        """Keep rates, silence and the files of both up to date."""
        keep = monotonic() + KEEP_EVERY
        while True:
            await asyncio.sleep(self._settings.status_every)
            for watched in self._watched.values():
                watched.stream.look_at_sensors(self._settings.status_every)
            await self._tell()
            if monotonic() >= keep:
                keep = monotonic() + KEEP_EVERY
                await self._keep_rates()

    async def _keep_rates(self) -> None:
        rates = {name: one.stream.store.learned() for name, one in self._watched.items()}
        with suppress(OSError):  # a full disk: they are learned again
            await self._write(partial(self._rates.write, rates))

    async def _tell(self, *, durable: bool = False) -> None:
        if self._status_file is None:
            return
        streams = self.streams()
        sensors = [one for stream in streams for one in self.status(stream.name)]
        watched = {name: one.stream.counts() for name, one in self._watched.items()}
        counts = {**self._before, **watched}
        write = partial(write_status, self._status_file, self._clock(), durable=durable)
        with suppress(OSError):  # a full disk is reported in the logs' own status
            await self._write(partial(write, streams, sensors, counts))

    async def _write(self, write: Callable[[], None]) -> None:
        """Write a file in a thread, which continues even if whoever awaits it is cancelled."""
        writing = asyncio.ensure_future(asyncio.to_thread(write))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        await asyncio.shield(writing)


@dataclass
class _Watched:
    """A stream, and what is known of the demand for it."""

    stream: ManagedStream
    readers: Readers
    conditions: frozenset[str | None] = frozenset()
    chosen: dict[str | None, Set[int]] = field(default_factory=dict)
    """The numbers of the sensors that last satisfied each condition."""
    less_since: float | None = None
    """Since when there are fewer conditions than sensors are read for."""
    is_current: bool = True
    """Whether the sensors are those that these conditions select."""

    def wanted_conditions(
        self, live: frozenset[str | None], settings: ManagerSettings
    ) -> frozenset[str | None]:
        """The conditions to read sensors for: the current ones and very recent ones."""
        if live >= self.conditions:
            self.less_since = None
            return live
        self.less_since = monotonic() if self.less_since is None else self.less_since
        if monotonic() - self.less_since < settings.let_go_after:
            return live | self.conditions
        self.less_since = None
        return live

    def trouble(self, error: Exception) -> None:
        """Report that something went wrong, and look again."""
        self.is_current = False
        self.stream.trouble = f"{type(error).__name__}: {error}"
