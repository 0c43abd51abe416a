"""A manager in a process of its own, which may be killed, over a Kafka topic.

Run with a folder and the address of the topic.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.manager.manager import StreamManager

TOPIC = Declaration(
    "K",
    pa.schema([("n", pa.int64()), ("partition", pa.int32())]),
    "kafka",
    options={"start": "start", "parts": "partition=partition", "linger": "2ms"},
)


def main(folder: str, address: str) -> None:
    """Run until the standard input ends."""
    sensors = [Sensor(0, 0, {}, address)]
    manager = StreamManager(
        lambda name: str(Path(folder, name)),
        lambda name: sensors,
        lambda declaration, where: {0},
        status_file=Path(folder, "status.json"),
    )
    manager.start()
    manager.watch(TOPIC)
    sys.stdin.read()
    manager.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
