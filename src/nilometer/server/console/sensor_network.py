"""The sensor network: which sensors feed which streams, who reads them, where results go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from nilometer.database.query_status import QueryStatus
from nilometer.deliveries.status import DeliveryStatus
from nilometer.errors import NilometerError
from nilometer.sensors.manager.status import SensorState, SensorStatus, StreamStatus
from nilometer.server.console.figures import few_digits
from nilometer.server.declared import Declared
from nilometer.sql.parse.query_text import names_read
from nilometer.sql.statements import read_query

IDLE = "idle"
"""The state of a sensor that no query currently needs."""


@dataclass(frozen=True)
class NetworkSensor:
    """A sensor, whether needed now or not; instants are microseconds since 1970."""

    stream: str
    name: str
    address: str
    state: str
    rate: float
    readings: int
    last_value: str | None
    last_time: int | None
    errors: int
    last_error: str | None
    dead_letters: int

    @property
    def is_troubled(self) -> bool:
        return self.state in (SensorState.SILENT, SensorState.WAITING, SensorState.FAILED)


@dataclass(frozen=True)
class NetworkStream:
    """A stream or sensor table, with its sensors in their order."""

    name: str
    stream_type: str
    sensors: tuple[NetworkSensor, ...]
    status: StreamStatus | None
    """What the manager knows about it, if anything."""
    named_by: str | None = None
    """The static column that identifies the sensors of a sensor table; None: a stream."""

    @property
    def states(self) -> Counter[str]:
        """How many sensors are in each state."""
        return Counter(one.state for one in self.sensors)

    @property
    def rate(self) -> float:
        return sum(one.rate for one in self.sensors)


@dataclass(frozen=True)
class SensorNetwork:
    """Everything from the sensors to the recipients of results."""

    streams: tuple[NetworkStream, ...]
    queries: tuple[QueryStatus, ...]
    deliveries: tuple[DeliveryStatus, ...]
    reads: Mapping[str, tuple[str, ...]]
    """The streams and queries that each query reads, by its name."""


def build_network(
    declared: Iterable[Declared],
    sensors: Iterable[SensorStatus],
    streams: Iterable[StreamStatus],
    queries: Sequence[QueryStatus],
    deliveries: Iterable[DeliveryStatus],
) -> SensorNetwork:
    """Assemble the network from what is known."""
    sensor_statuses = {(one.stream, one.number): one for one in sensors}
    statuses = {one.name: one for one in streams}
    network_streams = tuple(
        _stream(one, sensor_statuses, statuses.get(one.declaration.name)) for one in declared
    )
    names = [*(one.name for one in network_streams), *(one.name for one in queries)]
    known = {name.lower(): name for name in names}
    reads = {
        query.name: tuple(known[name] for name in _names(query.text) if name in known)
        for query in queries
    }
    return SensorNetwork(network_streams, tuple(queries), tuple(deliveries), reads)


def _stream(
    declared: Declared,
    sensor_statuses: Mapping[tuple[str, int], SensorStatus],
    status: StreamStatus | None,
) -> NetworkStream:
    name = declared.declaration.name
    sensors = tuple(
        _sensor(name, one.name or name, one.address, sensor_statuses.get((name, one.number)))
        for one in declared.sensors
    )
    static = declared.declaration.static
    named_by = None if static is None else static.names[0] if static.names else ""
    return NetworkStream(name, declared.declaration.stream_type, sensors, status, named_by)


def _sensor(stream: str, name: str, address: str, status: SensorStatus | None) -> NetworkSensor:
    if status is None:
        return NetworkSensor(stream, name, address, IDLE, 0.0, 0, None, None, 0, None, 0)
    return NetworkSensor(
        stream,
        name,
        status.address,
        str(status.state),
        status.rate,
        status.readings,
        None if status.last_value is None else few_digits(status.last_value),
        status.last_time,
        status.errors,
        status.last_error,
        status.dead_letters,
    )


@lru_cache(maxsize=1000)
def _names(text: str) -> tuple[str, ...]:
    """What a query reads, in lower case; nothing if it can no longer be parsed."""
    try:
        return tuple(sorted(names_read(read_query(text))))
    except NilometerError:
        return ()
