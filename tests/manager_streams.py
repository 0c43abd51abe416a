"""A manager over made-up sensors: their stream types, their catalog, and its readers."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from nilometer.log.clock import now_micros
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import register, release
from nilometer.log.static_rows import expand, read_static_rows
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.sensors.stream_type import END, NEW_VALUE, Reading, SensorAddress

QUICK = ManagerSettings(
    look_every=0.02,
    let_go_after=0.0,
    tick_every=0.05,
    status_every=0.05,
    first_wait=0.01,
    longest_wait=0.1,
    close_timeout=1.0,
    room_timeout=0.02,
)


@dataclass
class Line:
    """A sensor from the test's side: its readings, and what was done to it."""

    words: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    opened: int = 0
    closed: int = 0
    paused: int = 0
    reads: int = 0
    failures: int = 0
    """How many of the next attempts to reach it fail."""
    addresses: list[SensorAddress] = field(default_factory=list)
    close_seconds: float = 0.0
    events: list[str] = field(default_factory=list)
    """How it was closed, and what a test adds."""

    def say(self, *words: Any) -> None:
        for word in words:
            self.words.put(word)


class Lines:
    """Lines by address, and stream types that listen to them."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}

    def __getitem__(self, address: str) -> Line:
        return self.lines.setdefault(address, Line())

    def find(self, name: str) -> Callable[[], Any]:
        kinds = {"pushed": AsyncLine, "plain": PlainLine, "hasty": HastyLine, "asked": AskedLine}
        return partial(kinds[name], self)

    @property
    def opened(self) -> dict[str, int]:
        return {address: line.opened for address, line in self.lines.items() if line.opened}


class _Listener:
    can_wait = True

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.line = Line()

    def _open(self, sensor: SensorAddress) -> None:
        self.line = self._lines[sensor.address]
        self.line.addresses.append(sensor)
        if self.line.failures:
            self.line.failures -= 1
            raise ConnectionError("nobody there")
        self.line.opened += 1
        self.line.events.append("opened")

    def _heard(self, word: Any) -> Any:
        self.line.reads += 1
        if isinstance(word, Exception):
            raise word
        if word is END or isinstance(word, list | Reading):
            return word
        return Reading(NEW_VALUE, word)


class AsyncLine(_Listener):
    """A sensor that waits in the event loop."""

    async def init_stream(self, sensor: SensorAddress) -> None:
        self._open(sensor)

    async def read_stream(self) -> Any:
        while True:
            try:
                return self._heard(self.line.words.get_nowait())
            except queue.Empty:
                await asyncio.sleep(0.002)

    async def close_stream(self) -> None:
        await asyncio.sleep(self.line.close_seconds)
        self.line.closed += 1
        self.line.events.append("closed")

    async def pause_stream(self) -> None:
        self.line.paused += 1
        self.line.events.append("paused")


class HastyLine(AsyncLine):
    """A sensor that cannot wait."""

    can_wait = False


class AskedLine(AsyncLine):
    """A sensor that is polled: nobody knows whether it exists before it answers."""

    every = 1.0


class PlainLine(_Listener):
    """A sensor that blocks in a thread."""

    def init_stream(self, sensor: SensorAddress) -> None:
        self._open(sensor)

    def read_stream(self) -> Any:
        word = self.line.words.get()
        return self._heard(word() if callable(word) else word)

    def close_stream(self) -> None:
        self.line.closed += 1


class Site:
    """A folder with logs, a catalog in memory, and a manager."""

    def __init__(self, folder: Path, settings: ManagerSettings = QUICK) -> None:
        self.folder = folder
        self.settings = settings
        self.lines = Lines()
        self.rows: dict[str, list[Sensor]] = {}
        self.now: Callable[[], int] = now_micros

    def _time(self) -> int:
        return self.now()

    def locate(self, name: str) -> str:
        return str(self.folder / name)

    def sensors(self, name: str) -> list[Sensor]:
        return list(self.rows.get(name, []))

    def select(self, declaration: Declaration, where: str | None) -> set[int]:
        """Here a condition is a Python expression over static columns."""
        rows = self.rows[declaration.name]
        return {one.number for one in rows if where is None or eval(where, {}, dict(one.values))}

    @contextmanager
    def manager(self, *declarations: Declaration, **options: Any) -> Iterator[StreamManager]:
        options = {"find_type": self.lines.find, "clock": self._time, **options}
        made = StreamManager(
            self.locate,
            self.sensors,
            self.select,
            settings=self.settings,
            status_file=self.folder / "status.json",
            **options,
        )
        made.start()
        try:
            for one in declarations:
                made.watch(one)
            yield made
        finally:
            made.stop()

    def read(self, name: str, reader: str = "r", where: str | None = None) -> None:
        about = {"where": where}
        register(self.locate(name), reader, Position(0, 0), about, now=self.now(), named=True)

    def leave(self, name: str, reader: str = "r") -> None:
        release(self.locate(name), reader, now=self.now())

    def stored(self, name: str) -> list[dict[str, Any]]:
        """All rows of a log as readers see them."""
        return [row for rows in self.frames(name) for row in rows.to_pylist()]

    def frames(self, name: str) -> list[pa.RecordBatch]:
        log = LogReader.open(self.locate(name))
        frames = [frame.rows for frame in log.read(log.start)]
        # Afterwards: the static values that a reading needs were stored before it.
        static = read_static_rows(self.locate(name)) if log.layout.sensors else None
        return [expand(log.layout, one, static) if static is not None else one for one in frames]

    def letters(self, name: str) -> list[dict[str, Any]]:
        if not (self.folder / f"{name}.dead" / "layout.json").exists():
            return []
        return self.stored(f"{name}.dead")


def stream(stream_type: str = "pushed", **given: Any) -> Declaration:
    """A stream of one number."""
    readings = pa.schema([("x", pa.float64())])
    return Declaration(**{"name": "S", "readings": readings, "stream_type": stream_type, **given})


def table(stream_type: str = "pushed", **given: Any) -> Declaration:
    """A table of sensors in rooms."""
    static = pa.schema([("id", pa.int32()), ("room", pa.string())])
    return stream(
        stream_type, **{"name": "T", "static": static, "place": 2, "column": "r", **given}
    )


def sensors(*rows: tuple[int, str], versions: Sequence[int] = ()) -> list[Sensor]:
    """Rows (id, room), each at the address a<id>."""
    return [
        Sensor(
            number, versions[at] if versions else number, {"id": number, "room": room}, f"a{number}"
        )
        for at, (number, room) in enumerate(rows)
    ]


ONLY = Sensor(0, 0, {}, "a0")
"""The sensor of a stream."""


@contextmanager
def running(site: Site, *declarations: Any) -> Iterator[StreamManager]:
    with site.manager(*declarations) as manager:
        yield manager


def values(site: Site, name: str = "S") -> list[Any]:
    return [row["x"] if name == "S" else row["r"]["x"] for row in site.stored(name)]
