"""Generated readings: exponential arrivals, chosen distributions, bursts."""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import Callable
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from nilometer.model.options import Option, whole
from nilometer.model.time import parse_duration
from nilometer.sensors.stream_type import END, NEW_VALUE, Reading, SensorAddress
from nilometer.sensors.types.distributions import (
    Values,
    default_distribution,
    read_distributions,
    value_maker,
)
from nilometer.sensors.types.json_fields import check_columns
from nilometer.sensors.types.options import read_options

_CHUNK: Final = 4096
"""Readings are always made in chunks of this size, so that a seed gives the same ones."""
_SECOND: Final = 1_000_000
_FASTEST: Final = 1e6
_BURST: Final = re.compile(r"\s*([0-9]+)\s+every\s+(.+)", re.IGNORECASE)
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


def read_rate(text: str) -> float | None:
    """Readings per second; None: as many as can be stored.

    >>> read_rate("10"), read_rate("2.5/s"), read_rate("max")
    (10.0, 2.5, None)
    """
    if text.strip().lower() == "max":
        return None
    rate = float(text.strip().removesuffix("/s"))
    if not 0 < rate <= _FASTEST:
        raise ValueError("write readings per second, such as 10 or 0.5, or max")
    return rate


def read_burst(text: str) -> tuple[int, int]:
    """How many readings at once, and the interval in microseconds.

    >>> read_burst("10 every 5s")
    (10, 5000000)
    """
    match = _BURST.fullmatch(text)
    if match is None or not int(match[1]) or not (period := parse_duration(match[2])):
        raise ValueError("write a number and a duration, such as '10 every 5s'")
    return int(match[1]), period


class SyntheticStream:
    """A simulated sensor; with a time column it gives the instants of its arrivals."""

    can_wait = True
    replays = True
    options: ClassVar = (
        Option("rate", "readings per second on average, or max", read_rate, 1.0),
        Option("values", "distributions: 'temperature=normal(20,3)'", read_distributions),
        Option("burst", "further readings at once: '10 every 5s'", read_burst),
        Option("count", "after how many readings the stream ends", whole(0, 1 << 62)),
        Option("seed", "a number that makes the same stream every time", whole(0, 1 << 62)),
        Option("start", "the first instant of its readings, in seconds since 1970", float),
    )

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._rate: float | None = None
        self._burst: tuple[int, int] | None = None
        self._left: int | None = None
        self._rng = np.random.default_rng(0)
        self._columns = pa.schema([])
        self._time: str | None = None
        self._makers: dict[str, Values] = {}
        self._made = 0
        self._now = 0
        """Microseconds of the stream's own time up to which arrivals were generated."""
        self._start = 0
        self._opened = 0.0
        self._chunk: pa.RecordBatch | None = None
        self._arrivals = np.empty(0, np.int64)

    async def init_stream(self, sensor: SensorAddress) -> None:
        """Start, or continue after the last reading that was stored before a restart."""
        chosen = read_options("synthetic", self.options, sensor.options)
        described = chosen["values"] or {}
        check_columns("values", tuple(described), sensor.columns)
        self._columns, self._time = sensor.columns, sensor.time
        self._rate, self._burst, self._left = chosen["rate"], chosen["burst"], chosen["count"]
        if chosen["seed"] is not None:
            name = zlib.crc32(f"{sensor.table}/{sensor.sensor}".encode())
            self._rng = np.random.default_rng([chosen["seed"], name])
        else:
            self._rng = np.random.default_rng()
        self._makers = {
            one.name: value_maker(
                described.get(one.name) or default_distribution(one.type), one.type
            )
            for one in sensor.columns
            if one.name != sensor.time
        }
        began = chosen["start"] if chosen["start"] is not None else self._clock()
        self._skip(max((int(key) for key in sensor.delivered if key.isdigit()), default=0))
        # Stream time that passed before a restart does not pass again.
        passed = int(self._arrivals[0]) if len(self._arrivals) else self._now
        self._start = round(began * _SECOND) - (0 if chosen["start"] is not None else passed)
        self._opened = self._clock() - passed / _SECOND

    async def read_stream(self) -> Reading:
        """The readings that are due; if none is, waits for the next."""
        if self._left is not None and self._left <= 0:
            return Reading(END)
        if self._chunk is None:
            self._make_chunk()
        assert self._chunk is not None
        count = len(self._arrivals)
        if self._rate is not None:
            due = self._opened + self._arrivals[0] / _SECOND
            if (wait := due - self._clock()) > 0:
                await asyncio.sleep(wait)
            now = round((max(self._clock(), due) - self._opened) * _SECOND)
            count = int(np.searchsorted(self._arrivals, now, side="right"))
        return self._take(max(1, count))

    async def close_stream(self) -> None:
        """Do nothing: nothing is open."""

    def _take(self, count: int) -> Reading:
        assert self._chunk is not None
        if self._left is not None:
            count = min(count, self._left)
            self._left -= count
        rows = self._chunk.slice(0, count)
        if self._time is not None:
            place = self._columns.get_field_index(self._time)
            times = pa.array(self._arrivals[:count] + self._start, _TIMESTAMP)
            kind = self._columns.field(place)
            rows = rows.set_column(place, kind, times.cast(kind.type))
        self._drop(count)
        return Reading(NEW_VALUE, rows, None, b"%d" % self._made)

    def _drop(self, count: int) -> None:
        assert self._chunk is not None
        self._made += count
        self._arrivals = self._arrivals[count:]
        self._chunk = self._chunk.slice(count) if len(self._arrivals) else None

    def _skip(self, count: int) -> None:
        if self._left is not None:
            self._left = max(0, self._left - count)
        while count:
            if self._chunk is None:
                self._make_chunk()
            some = min(count, len(self._arrivals))
            self._drop(some)
            count -= some

    def _make_chunk(self) -> None:
        gaps = self._rng.exponential(_SECOND / (self._rate or _FASTEST), _CHUNK)
        arrivals = self._now + np.cumsum(np.maximum(1, np.rint(gaps)).astype(np.int64))
        end = int(arrivals[-1])
        if self._burst is not None:
            count, period = self._burst
            instants = np.arange(self._now // period + 1, end // period + 1) * period
            arrivals = np.sort(np.concatenate([arrivals, np.repeat(instants, count)]))
        self._now, self._arrivals = end, arrivals
        self._chunk = pa.RecordBatch.from_arrays(
            [self._column(one) for one in self._columns], schema=self._columns
        )

    def _column(self, one: pa.Field) -> pa.Array:
        if one.name == self._time:
            return pa.nulls(len(self._arrivals), one.type)  # set when it is taken
        return self._makers[one.name](self._rng, len(self._arrivals))
