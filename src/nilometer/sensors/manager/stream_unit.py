"""Pre-processing units (STEAM 3.2): a Python function applied to every reading first.

A unit is a function, or a class with an object for every sensor. It receives a reading as its
stream type delivers it, and returns None, one reading, or a list of readings (or a generator):
these are stored. An object may have `finish`, which returns what is left when its sensor is closed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from nilometer.errors import in_one_line
from nilometer.sensors.manager.received import Event, Received
from nilometer.sensors.manager.sensor_record import SensorRecord
from nilometer.sensors.stream_type import SensorAddress

NOTHING: Final = pa.RecordBatch.from_arrays([], names=[])
"""A reading without rows: it carries a key, or nothing at all."""


@dataclass
class _Applied:
    """The unit of one sensor."""

    call: Callable[[Any], Any]
    time: int | None = None
    """The time of the last reading."""


class StreamUnit:
    """Applies the unit of a stream; one thread at a time."""

    def __init__(
        self,
        name: str,
        find: Callable[[str], Callable[..., Any]],
        address_of: Callable[[SensorRecord], SensorAddress],
    ) -> None:
        """`find`: the function or class with a name; `address_of`: what a class may receive."""
        self.name = name
        self._find = find
        self._address_of = address_of
        self._applied: dict[int, _Applied] = {}

    def require(self) -> None:
        """Raise InputError if the unit is not registered, or not yet."""
        self._find(self.name)

    def apply(self, received: Sequence[Received]) -> list[Received]:
        """Return what to store instead, in the same order, including what the unit refuses."""
        return [made for one in received for made in self._apply(one)]

    def _apply(self, one: Received) -> Iterator[Received]:
        if one.event is Event.READING:
            yield from self._reading(one)
            return
        if one.event in (Event.ENDED, Event.CLOSED):
            yield from self._finish(one)
        yield one

    def _reading(self, one: Received) -> Iterator[Received]:
        """The readings that a reading becomes; the first carries its key."""
        try:
            applied = self._of(one.sensor)
            applied.time = one.time
            values = _readings(applied.call(one.value))
        except Exception as error:  # a unit may fail in any way
            yield self._refused(one, error)
            return
        if not values and one.key is not None:
            values = [NOTHING]
        for at, value in enumerate(values):
            yield replace(one, value=value, key=None if at else one.key, stored=None)

    def _finish(self, one: Received) -> Iterator[Received]:
        applied = self._applied.pop(one.sensor.number, None)
        finish = getattr(None if applied is None else applied.call, "finish", None)
        if applied is None or finish is None:
            return
        last = replace(one, event=Event.READING, time=applied.time)
        try:
            values = _readings(finish())
        except Exception as error:  # a unit may fail in any way
            yield self._refused(last, error)
            return
        for value in values:
            yield replace(last, value=value)

    def _refused(self, one: Received, error: Exception) -> Received:
        reason = f"unit {self.name}: {in_one_line(error)}"
        return replace(one, event=Event.BAD_READING, reason=reason, value=_payload(one.value))

    def _of(self, sensor: SensorRecord) -> _Applied:
        if (applied := self._applied.get(sensor.number)) is None:
            unit = self._find(self.name)
            call = self._new(unit, sensor) if isinstance(unit, type) else unit
            applied = self._applied[sensor.number] = _Applied(call)
        return applied

    def _new(self, unit: type, sensor: SensorRecord) -> Callable[[Any], Any]:
        """A new object for a sensor; the class takes no argument, or a SensorAddress."""
        takes_address = bool(inspect.signature(unit).parameters)
        function: Callable[[Any], Any] = unit(self._address_of(sensor)) if takes_address else unit()
        return function


def _readings(returned: Any) -> list[Any]:
    if returned is None:
        return []
    return list(returned) if isinstance(returned, list | Generator) else [returned]


def _payload(value: Any) -> Any:
    """How a dead letter shows a reading."""
    return str(value.to_pylist()) if isinstance(value, pa.RecordBatch) else value
