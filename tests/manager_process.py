"""A manager in a process of its own, which may be killed: MQTT sensors, and one that counts.

Run with a folder, the URL of a broker and its number of topics. Each number that was reported as
stored to the counting sensor is added to the file `acknowledged`, one per line.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.find_types import stream_class
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.stream_type import NEW_VALUE, Reading, SensorAddress

READINGS = pa.schema([("reading", pa.int64())])
COUNTER = Declaration("C", READINGS, "counter", options={"segment": "64KB", "linger": "2ms"})
TOPICS = Declaration(
    "M",
    READINGS,
    "mqtt",
    static=pa.schema([("id", pa.int32())]),
    place=1,
    column="r",
    options={"segment": "64KB", "linger": "2ms"},
)


class Counter:
    """Counts forever, from the last number stored."""

    can_wait = True

    def __init__(self, acknowledged: IO[bytes]) -> None:
        self._acknowledged = acknowledged
        self._next = 0

    async def init_stream(self, sensor: SensorAddress) -> None:
        self._next = 1 + max((int(key) for key in sensor.delivered), default=-1)

    async def read_stream(self) -> Any:
        await asyncio.sleep(0.001)
        first, self._next = self._next, self._next + 3
        return [self._reading(at) for at in range(first, self._next)]

    async def close_stream(self) -> None:
        pass

    def _reading(self, number: int) -> Reading:
        line = f"{number}\n".encode()
        return Reading(
            NEW_VALUE, number, key=line[:-1], stored=lambda: self._acknowledged.write(line)
        )


def main(folder: str, broker: str, topics: str) -> None:
    """Run until the standard input ends."""
    rows = {
        "C": [Sensor(0, 0, {}, "")],
        "M": [Sensor(at, at, {"id": at}, f"{broker}/sensors/{at}") for at in range(int(topics))],
    }
    # Unbuffered: what was written stays when the process is killed.
    acknowledged = Path(folder, "acknowledged").open("ab", buffering=0)  # noqa: SIM115
    counter = partial(Counter, acknowledged)
    manager = StreamManager(
        lambda name: str(Path(folder, name)),
        lambda name: rows[name],
        lambda declaration, where: {one.number for one in rows[declaration.name]},
        find_type=lambda name: counter if name == "counter" else stream_class(name),
        status_file=Path(folder, "status.json"),
    )
    manager.start()
    for declaration in (COUNTER, TOPICS):
        manager.watch(declaration)
    sys.stdin.read()
    manager.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
