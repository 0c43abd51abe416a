"""MQTT sensors as tests open and read them, and messages for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import paho.mqtt.client as paho
import pyarrow as pa

from nilometer.sensors.stream_type import SensorAddress
from nilometer.sensors.types.mqtt import MqttStream
from tests.mosquitto import Mosquitto
from tests.patience import LONG

COLUMNS = pa.schema([("reading", pa.int64()), ("temperature", pa.float64())])


def at(
    address: str,
    *,
    columns: pa.Schema = COLUMNS,
    delivered: frozenset[bytes] = frozenset(),
    owner: str = "tests",
    **options: str,
) -> SensorAddress:
    return SensorAddress("T", "s", address, options, columns, None, f"{owner}/1", delivered, owner)


async def opened(sensor: SensorAddress) -> MqttStream:
    stream = MqttStream()
    await stream.init_stream(sensor)
    return stream


async def take(stream: MqttStream, count: int, *, store: bool = True) -> list[Any]:
    """A number of readings, acknowledged or not."""
    messages: list[Any] = []
    async with asyncio.timeout(LONG):
        while len(messages) < count:
            some = await stream.read_stream()
            for one in some:
                if store and one.stored is not None:
                    one.stored()
            messages += some
    return messages


async def nothing_more(stream: MqttStream, wait: float = 0.25) -> bool:
    try:
        async with asyncio.timeout(wait):
            await stream.read_stream()
    except TimeoutError:
        return True
    return False


def publish(
    broker: Mosquitto, *messages: tuple[str, str | bytes], qos: int = 1, **how: Any
) -> None:
    """Publish with a client library, and return when the broker has the messages."""
    protocol = how.pop("protocol", paho.MQTTv311)
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=protocol)
    if broker.tls is not None:
        client.tls_set(str(broker.tls.authority))
    if "user" in how:
        client.username_pw_set(how.pop("user"), how.pop("password"))
    client.connect(broker.host, broker.port)
    client.loop_start()
    for topic, payload in messages:
        client.publish(topic, payload, qos, **how).wait_for_publish(LONG)
    client.disconnect()
    client.loop_stop()


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), LONG))


def values(readings: list[Any]) -> list[Any]:
    return [one.value for one in readings]
