"""Publishes to a broker at a rate, over one connection and in a process of its own.

Its messages are numbered per sensor, and it counts those that the broker has acknowledged. It
shares no code with the subscriber under test, and costs a third of what a client library would.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

TICK: Final = 0.02
_ROOT: Final = Path(__file__).parents[1]


class MqttSensors:
    """Sensors 0 … n-1 publish {"sensor", "reading", "temperature"} to `<prefix>/<sensor>`."""

    def __init__(
        self,
        port: int,
        *,
        sensors: int = 1,
        qos: int = 1,
        count: int | None = None,
        rate: float | None = None,
        prefix: str = "sensors",
        inflight: int = 20,
    ) -> None:
        arguments = [port, sensors, qos, count or 0, rate or 0, prefix, inflight]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mqtt_publisher", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            text=True,
        )

    def stop(self) -> int:
        """Stop publishing; returns how many messages were acknowledged, after all of them were."""
        said, _ = self._process.communicate(input="stop\n")
        return int(said)

    def wait(self) -> int:
        """Wait until `count` messages were acknowledged."""
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        self._process.communicate(input="stop\n")
        return int(said)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.communicate()


class _Publisher(asyncio.Protocol):
    """MQTT 3.1.1, as much of it as a publisher needs."""

    def __init__(self, sensors: int, qos: int, prefix: str, inflight: int) -> None:
        self._sensors = sensors
        self._qos = qos
        self._topics = [f"{prefix}/{number}".encode() for number in range(sensors)]
        self._inflight = inflight
        self._open = 0
        self._buffer = b""
        self._number = 0
        self.published = 0
        self.acknowledged = 0
        self.changed: Callable[[], None] = lambda: None
        self.ready = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        client = b"publisher"
        body = b"\0\4MQTT\4\2\0\0" + struct.pack(">H", len(client)) + client
        transport.write(bytes([0x10, len(body)]) + body)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        place, released = 0, b""
        while len(self._buffer) >= place + 4:
            kind, number = self._buffer[place] & 0xF0, self._buffer[place + 2 : place + 4]
            if kind == 0x20 and not self.ready.done():
                self.ready.set_result(None)
            elif kind == 0x50:
                released += b"\x62\x02" + number
            elif kind in (0x40, 0x70):
                self._open -= 1
                self.acknowledged += 1
            place += 4
        self._buffer = self._buffer[place:]
        if released:
            self._transport.write(released)
        self.changed()

    def room(self) -> int:
        """How many messages may be sent now."""
        if self._transport.get_write_buffer_size() > 1 << 16:
            return 0
        return 500 if self._qos == 0 else self._inflight - self._open

    def publish(self, count: int) -> None:
        self._transport.write(b"".join(self._message() for _ in range(count)))
        if self._qos == 0:
            self.acknowledged += count
        else:
            self._open += count

    def _message(self) -> bytes:
        reading, sensor = divmod(self.published, self._sensors)
        self.published += 1
        topic = self._topics[sensor]
        said = {"sensor": sensor, "reading": reading, "temperature": 20 + reading % 10}
        body = struct.pack(">H", len(topic)) + topic
        if self._qos:
            self._number = self._number % 65_535 + 1
            body += struct.pack(">H", self._number)
        body += json.dumps(said).encode()
        assert len(body) < 16_384
        return bytes([0x30 | self._qos << 1, len(body) & 127 | 128, len(body) >> 7]) + body

    def close(self) -> None:
        self._transport.write(b"\xe0\0")
        self._transport.close()


async def _run(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    _, publisher = await loop.create_connection(
        lambda: _Publisher(options.sensors, options.qos, options.prefix, options.inflight),
        "127.0.0.1",
        options.port,
    )
    await publisher.ready
    stopped = loop.run_in_executor(None, sys.stdin.readline)
    moved = asyncio.Event()
    publisher.changed = moved.set
    began, limit = loop.time(), options.count or sys.maxsize
    while publisher.published < limit and not stopped.done():
        due = int((loop.time() - began) * options.rate) + 1 if options.rate else sys.maxsize
        sent = min(due, limit) - publisher.published
        if (now := min(sent, publisher.room())) > 0:
            publisher.publish(now)
        moved.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(moved.wait(), 0 if options.qos == 0 and now > 0 else TICK)
    while publisher.acknowledged < publisher.published:
        await asyncio.sleep(TICK / 4)
    publisher.close()
    sys.stdout.write(f"{publisher.acknowledged}\n")
    sys.stdout.flush()
    await stopped


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, kind in (("port", int), ("sensors", int), ("qos", int), ("count", int)):
        parser.add_argument(name, type=kind)
    parser.add_argument("rate", type=float)
    parser.add_argument("prefix")
    parser.add_argument("inflight", type=int)
    asyncio.run(_run(parser.parse_args()))
