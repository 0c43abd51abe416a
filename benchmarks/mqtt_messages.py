"""MQTT messages per second, with broker, publisher and subscriber beside each other.

Run by itself: python -m benchmarks.mqtt_messages. A message counts once it has been acknowledged;
every message is checked to have come once and in order. The peer is a bare client library that
only counts, acknowledging at once.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

import paho.mqtt.client as paho
import pyarrow as pa

from nilometer.sensors.stream_type import SensorAddress
from nilometer.sensors.types.mqtt import MqttStream
from tests.mosquitto import Mosquitto, start_mosquitto
from tests.mqtt_publisher import MqttSensors

SENSORS: Final = 50
MESSAGES: Final = 30_000
INFLIGHT: Final = 1000
COLUMNS: Final = pa.schema(
    [("sensor", pa.int64()), ("reading", pa.int64()), ("temperature", pa.float64())]
)
# Without a bound of its own, so that what is measured is not the broker's patience.
BROKER: Final = ("max_inflight_messages 0",)


def measure(messages: int = MESSAGES) -> dict[str, float]:
    """Messages per second of the stream type (`mqtt qos n`) and of a bare client (`paho qos n`)."""
    found: dict[str, float] = {}
    for qos in (0, 1, 2):
        for name, run in (("mqtt", _nilometer), ("paho", _paho)):
            with (
                tempfile.TemporaryDirectory() as folder,
                start_mosquitto(Path(folder), settings=BROKER) as broker,
            ):
                found[f"{name} qos {qos}"] = run(broker, qos, messages)
    return found


def _nilometer(broker: Mosquitto, qos: int, messages: int) -> float:
    return asyncio.run(_read_all(broker, qos, messages))


async def _read_all(broker: Mosquitto, qos: int, messages: int) -> float:
    streams = await asyncio.gather(*(_open(broker, qos, one) for one in range(SENSORS)))
    each = messages // SENSORS
    with _publisher(broker, qos, each * SENSORS) as publisher:
        counts = asyncio.gather(*(_read(stream, each) for stream in streams))
        readings, instants = zip(*await counts, strict=True)
        published = publisher.wait()
    for found in readings:
        assert found == list(range(each)), "a message is missing, or came twice"
    assert published == each * SENSORS
    await asyncio.gather(*(stream.close_stream() for stream in streams))
    return published / (max(last for _, last in instants) - min(first for first, _ in instants))


async def _open(broker: Mosquitto, qos: int, sensor: int) -> MqttStream:
    stream = MqttStream()
    address = f"{broker.url}/sensors/{sensor}"
    await stream.init_stream(
        SensorAddress("Bench", str(sensor), address, {"qos": str(qos)}, COLUMNS, None, "bench")
    )
    return stream


async def _read(stream: MqttStream, count: int) -> tuple[list[int], tuple[float, float]]:
    """The numbers of all readings, and when the first and the last came."""
    numbers: list[int] = []
    first = 0.0
    while len(numbers) < count:
        for one in await stream.read_stream():
            assert isinstance(one, tuple)
            numbers.append(one.value["reading"])
            if one.stored is not None:
                one.stored()
        first = first or time.monotonic()
    return numbers, (first, time.monotonic())


def _paho(broker: Mosquitto, qos: int, messages: int) -> float:
    """A client that counts, and nothing else."""
    instants: list[float] = []
    done, ready = threading.Event(), threading.Event()

    def count(*_: Any) -> None:
        instants.append(time.monotonic())
        if len(instants) == messages:
            done.set()

    client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    client.on_message = count
    client.on_subscribe = lambda *_: ready.set()
    client.connect(broker.host, broker.port)
    client.loop_start()
    client.subscribe("sensors/#", qos)
    assert ready.wait(10)
    with _publisher(broker, qos, messages) as publisher:
        publisher.wait()
        before = -1
        while not done.wait(5) and len(instants) > before:
            before = len(instants)
    client.disconnect()
    client.loop_stop()
    # QoS 0 may lose what the broker cannot deliver in time.
    assert len(instants) == messages or qos == 0
    return len(instants) / (instants[-1] - instants[0])


def _publisher(broker: Mosquitto, qos: int, messages: int) -> MqttSensors:
    return MqttSensors(broker.port, sensors=SENSORS, qos=qos, count=messages, inflight=INFLIGHT)


def main() -> None:
    found = measure()
    print(f"{'':8}{'nilometer':>12}{'bare paho':>12}{'ratio':>8}   messages/s, acknowledged")
    for qos in (0, 1, 2):
        own, peer = found[f"mqtt qos {qos}"], found[f"paho qos {qos}"]
        print(f"QoS {qos}   {own:12,.0f}{peer:12,.0f}{own / peer:8.2f}")


if __name__ == "__main__":
    main()
