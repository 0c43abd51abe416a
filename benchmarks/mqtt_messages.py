"""MQTT messages per second, with broker, publisher and subscriber beside each other.

Run separately: python -m benchmarks.mqtt_messages. A message counts once it has been acknowledged;
every message must arrive exactly once and in order. Measured are the stream type alone, which
acknowledges at once, and the whole path through the stream manager into a log that syncs every
append to disk. The peer is a bare client library that only counts.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import paho.mqtt.client as paho
import pyarrow as pa

from nilometer.log.clock import now_micros
from nilometer.log.reader import LogReader
from nilometer.log.registrations import register
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.stream_type import SensorAddress
from nilometer.sensors.types.mqtt import MqttStream
from tests.mosquitto import Mosquitto, start_mosquitto
from tests.mqtt_publisher import MqttSensors

SENSORS: Final = 50
MESSAGES: Final = 60_000
INFLIGHT: Final = 1000
COLUMNS: Final = pa.schema(
    [("sensor", pa.int64()), ("reading", pa.int64()), ("temperature", pa.float64())]
)
# Without the broker's own limit, so that it is not what is measured.
BROKER: Final = ("max_inflight_messages 0", "max_queued_messages 0")


def measure(messages: int = MESSAGES) -> dict[str, float]:
    """Messages per second: `log qos n`, `mqtt qos n` (stream type only), `paho qos n` (client)."""
    rates: dict[str, float] = {}
    for qos in (0, 1, 2):
        for name, run in (("log", _into_a_log), ("mqtt", _nilometer), ("paho", _paho)):
            if name == "log" and qos == 0:
                continue  # the broker drops what it cannot deliver in time
            with (
                tempfile.TemporaryDirectory() as folder,
                start_mosquitto(Path(folder), settings=BROKER) as broker,
            ):
                rates[f"{name} qos {qos}"] = run(broker, qos, messages)
    return rates


def _into_a_log(broker: Mosquitto, qos: int, messages: int) -> float:
    """Through the manager: a message is acknowledged once its row is on disk."""
    declared = Declaration(
        "Bench",
        COLUMNS,
        "mqtt",
        {"qos": str(qos)},
        static=pa.schema([("id", pa.int64())]),
        column="seen",
    )
    sensors = [Sensor(n, n, {"id": n}, f"{broker.url}/sensors/{n}") for n in range(SENSORS)]
    each = messages // SENSORS
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder, "log"))
        manager = StreamManager(
            lambda name: log if name == "Bench" else f"{log}.dead",
            lambda _: sensors,
            lambda *_: set(range(SENSORS)),
        )
        manager.start()
        try:
            manager.watch(declared)
            register(log, "bench", LogReader.open(log).start, {}, now=now_micros(), named=True)
            _wait(lambda: sum(s.state == "connected" for s in manager.status("Bench")) == SENSORS)
            with _publisher(broker, qos, each * SENSORS) as publisher:
                seconds = _time_rows(LogReader.open(log), each * SENSORS)
                publisher.wait()
        finally:
            manager.stop()
        _check_rows(LogReader.open(log), each)
    return each * SENSORS / seconds


def _time_rows(log: LogReader, rows: int) -> float:
    """The time from the first row of a log to the last."""
    _wait(lambda: log.end.row > 0)
    started = time.monotonic()
    _wait(lambda: log.end.row >= rows)
    return time.monotonic() - started


def _wait(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < until, "messages are missing"
        time.sleep(0.005)


def _check_rows(log: LogReader, each: int) -> None:
    frames = [frame.rows for frame in log.read(log.start, log.end) if len(frame.rows)]
    rows = pa.Table.from_batches(frames)
    readings: dict[int, list[int]] = {}
    numbers = zip(rows["_sensor"].to_pylist(), rows["reading"].to_pylist(), strict=True)
    for sensor, reading in numbers:
        readings.setdefault(sensor, []).append(reading)
    assert all(one == list(range(each)) for one in readings.values()), "missing, or twice"
    assert len(readings) == SENSORS


def _nilometer(broker: Mosquitto, qos: int, messages: int) -> float:
    return asyncio.run(_read_all(broker, qos, messages))


async def _read_all(broker: Mosquitto, qos: int, messages: int) -> float:
    streams = await asyncio.gather(*(_open(broker, qos, one) for one in range(SENSORS)))
    each = messages // SENSORS
    with _publisher(broker, qos, each * SENSORS) as publisher:
        counts = asyncio.gather(*(_read(stream, each) for stream in streams))
        readings, instants = zip(*await counts, strict=True)
        published = publisher.wait()
    for received in readings:
        assert received == list(range(each)), "a message is missing, or came twice"
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
    """The numbers of all readings, and when the first and the last arrived."""
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
    """A client that only counts."""
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
    rates = measure()
    titles = f"{'into a log':>12}{'type alone':>12}{'bare paho':>12}{'log/paho':>10}"
    print(f"{'':8}{titles}   messages/s, acknowledged")
    for qos in (0, 1, 2):
        own, peer, log = (rates.get(f"{name} qos {qos}") for name in ("mqtt", "paho", "log"))
        stored = f"{log:12,.0f}" if log else f"{'':12}"
        ratio = f"{log / peer:10.2f}" if log and peer else ""
        print(f"QoS {qos}   {stored}{own:12,.0f}{peer:12,.0f}{ratio}")


if __name__ == "__main__":
    main()
