"""The running cameras: a separate process that answers over HTTP and publishes over MQTT.

python -m nilometer.demo.cameras.at_work RATE SECONDS|0 HTTP-CAMERAS [BROKER-PORT MQTT-CAMERAS]
prints the port it listens on, waits for a line, prints when it started (microseconds), and works
until its input ends. After SECONDS nothing moves any more; 0: objects move forever.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Final

import numpy as np
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from nilometer.demo.cameras.world import SECOND, World
from nilometer.model.time import FOREVER

TOPIC: Final = "cameras/{}/sightings"
_PUBLISH_EVERY: Final = 0.05
_IN_FLIGHT: Final = 1000


class Camera:
    """One camera and what it has seen since it was last asked."""

    def __init__(self, number: int, seconds: int) -> None:
        self.world: World | None = None
        self._number = number
        self._end = seconds * SECOND or FOREVER
        self._sent = 0

    def news(self) -> list[bytes]:
        """The sightings that have arrived since the last call, each as JSON."""
        if self.world is None:
            return []
        now = min(time.time_ns() // 1000 - self.world.started, self._end)
        first, self._sent = self._sent, max(self._sent, now)
        seen = self.world.arrivals(self._number, first, self._sent)
        times = np.datetime_as_string(seen.times.astype("datetime64[us]"), timezone="UTC")
        rows = zip(seen.objects.tolist(), times.tolist(), strict=True)
        return [b'{"obj_id":%d,"ts":"%b"}' % (number, when.encode()) for number, when in rows]


async def answer(
    cameras: dict[str, Camera], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve one HTTP connection: GET /3 returns the new sightings of Camera3."""
    try:
        while request := await reader.readuntil(b"\r\n\r\n"):
            path = request.split(b" ", 2)[1].decode().strip("/")
            camera = cameras.get(path)
            status = b"404 Not Found" if camera is None else b"200 OK"
            body = b"[%b]" % b",".join([] if camera is None else camera.news())
            head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            writer.write(head % (status, len(body)) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        pass
    finally:
        writer.close()


async def publish(cameras: dict[str, Camera], port: int) -> None:
    """Publish the new sightings of cameras to a broker, twenty times a second."""
    client = Client(CallbackAPIVersion.VERSION2)
    client.max_inflight_messages_set(_IN_FLIGHT)
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        while True:
            for name, camera in cameras.items():
                for sighting in camera.news():
                    client.publish(TOPIC.format(name), sighting, qos=1)
            await asyncio.sleep(_PUBLISH_EVERY)
    finally:
        client.loop_stop()


async def work(
    rate: int, seconds: int, by_http: Sequence[str], port: int | None, by_mqtt: Sequence[str]
) -> None:
    """Wait for the start signal, and run the cameras until the input ends."""
    cameras = {name: Camera(int(name) - 1, seconds) for name in (*by_http, *by_mqtt)}
    server = await asyncio.start_server(lambda r, w: answer(cameras, r, w), "127.0.0.1", 0)
    _say(server.sockets[0].getsockname()[1])
    await asyncio.to_thread(sys.stdin.readline)
    world = World(time.time_ns() // 1000, rate)
    for camera in cameras.values():
        camera.world = world
    _say(world.started)
    own = {name: cameras[name] for name in by_mqtt}
    publishing = asyncio.create_task(publish(own, port)) if port is not None else None
    await asyncio.to_thread(sys.stdin.read)
    if publishing is not None:
        publishing.cancel()
    server.close()


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> None:
    rate, seconds, by_http, *rest = arguments
    port, by_mqtt = (int(rest[0]), rest[1].split(",")) if rest else (None, [])
    asyncio.run(work(int(rate), int(seconds), by_http.split(","), port, by_mqtt))


if __name__ == "__main__":
    main(sys.argv[1:])
