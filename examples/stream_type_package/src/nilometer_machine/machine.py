"""How busy a Linux machine is, as a sensor."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from nilometer.model.options import Option, seconds
from nilometer.sensors.stream_type import NEW_VALUE, NO_VALUE, Reading, SensorAddress
from nilometer.sensors.types.options import read_options


class MachineStream:
    """Readings of `load` (over the last minute) and `free_memory` (bytes).

    The address is the folder to read from; where there is none, /proc.
    """

    can_wait = True  # what is not read now is read later, and is as good then
    options: ClassVar = (Option("interval", "the time from one reading to the next", seconds, 1.0),)

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._folder = Path("/proc")
        self._due = 0.0
        self.interval = 0.0
        """How long Nilometer waits after NO_VALUE."""
        self._every = 1.0

    def init_stream(self, sensor: SensorAddress) -> None:
        """See whether there is something to read; an error is tried again later."""
        self._every = read_options("machine", self.options, sensor.options)["interval"]
        self._folder = Path(sensor.address or "/proc")
        self._read()

    def read_stream(self) -> Reading:
        """What the machine says, once in every interval."""
        self.interval = max(0.0, self._due - self._clock())
        if self.interval:
            return Reading(NO_VALUE)
        self._due = self._clock() + self._every
        return Reading(NEW_VALUE, self._read())

    def close_stream(self) -> None:
        """Nothing is open."""

    def _read(self) -> dict[str, Any]:
        load = float((self._folder / "loadavg").read_text().split()[0])
        memory = dict(
            line.split(":") for line in (self._folder / "meminfo").read_text().splitlines()
        )
        return {"load": load, "free_memory": int(memory["MemAvailable"].split()[0]) * 1024}
