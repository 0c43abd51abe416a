"""The stream type mqtt, against a real mosquitto."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pyarrow as pa
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from nilometer.errors import InputError
from nilometer.sensors.stream_type import BadReadingError, Reading, SensorAddress
from nilometer.sensors.types.mqtt import MqttStream
from tests.mosquitto import Mosquitto, make_certificates, start_mosquitto
from tests.mqtt_publisher import MqttSensors

COLUMNS = pa.schema([("reading", pa.int64()), ("temperature", pa.float64())])
PATIENCE = 50.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """One that tells of every packet in its log."""
    folder = tmp_path_factory.mktemp("broker")
    with start_mosquitto(folder, settings=("log_type all",)) as running:
        yield running


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
    """So many readings, acknowledged or not."""
    found: list[Any] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            some = await stream.read_stream()
            for one in some:
                if store and one.stored is not None:
                    one.stored()
            found += some
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what must become so, however slow the machine is."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


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
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    if broker.tls is not None:
        client.tls_set(str(broker.tls.authority))
    if "user" in how:
        client.username_pw_set(how.pop("user"), how.pop("password"))
    client.connect(broker.host, broker.port)
    client.loop_start()
    for topic, payload in messages:
        client.publish(topic, payload, qos, **how).wait_for_publish(PATIENCE)
    client.disconnect()
    client.loop_stop()


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 60))


def values(readings: list[Any]) -> list[Any]:
    return [one.value for one in readings]


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_message_comes_once_and_in_order(broker: Mosquitto, version: str, qos: int) -> None:
    async def work() -> None:
        topic = f"order/{version}/{qos}"
        sensor = at(f"{broker.url}/{topic}/0", owner=topic, version=version, qos=str(qos))
        stream = await opened(sensor)
        assert stream.can_wait == (qos > 0)
        with MqttSensors(broker.port, qos=qos, count=500, rate=2000, prefix=topic) as sensors:
            found = await take(stream, 500)
            assert await asyncio.to_thread(sensors.wait) == 500
        assert [one["reading"] for one in values(found)] == list(range(500))
        assert await nothing_more(stream, 0.1)
        await stream.close_stream()

    run(work)


def test_many_sensors_share_one_connection(broker: Mosquitto) -> None:
    async def work() -> None:
        addresses = [at(f"{broker.url}/many/{one}", owner="many") for one in range(60)]
        streams = await asyncio.gather(*(opened(one) for one in addresses))
        with MqttSensors(broker.port, sensors=60, count=600, prefix="many") as sensors:
            found = await asyncio.gather(*(take(one, 10) for one in streams))
            sensors.wait()
        for number, readings in enumerate(found):
            assert [one["reading"] for one in values(readings)] == list(range(10))
            assert {one["sensor"] for one in values(readings)} == {number}
        (client,) = {one._connection.session.client for one in streams}  # type: ignore[union-attr]
        assert broker.log.count(f" as {client} ") == 1
        await asyncio.gather(*(one.close_stream() for one in streams))

    run(work)


def test_overlapping_filters_each_get_every_message_once(broker: Mosquitto) -> None:
    async def work() -> None:
        filters = ["lap/a/t", "lap/+/t", "lap/a/+", "lap/#", "lap/a/#"]
        streams = [await opened(at(f"{broker.url}/{one}")) for one in filters]
        publish(broker, ("lap/a/t", '{"reading": 1}'), ("lap/b/t", '{"reading": 2}'))
        found = [
            [one["reading"] for one in values(await take(stream, count))]
            for stream, count in zip(streams, [1, 2, 1, 2, 1], strict=True)
        ]
        assert found == [[1], [1, 2], [1], [1, 2], [1]]
        for stream in streams:
            assert await nothing_more(stream, 0.1)
            await stream.close_stream()

    run(work)


def test_two_sensors_of_one_topic_both_have_to_store(broker: Mosquitto) -> None:
    sensor = at(f"{broker.url}/twins", owner="twins")

    async def one_stores() -> None:
        first, second = await opened(sensor), await opened(sensor)
        publish(broker, ("twins", '{"reading": 1}'))
        await take(first, 1)
        await take(second, 1, store=False)
        await first.pause_stream()
        await second.pause_stream()

    async def both_store() -> None:
        first, second = await opened(sensor), await opened(sensor)
        publish(broker, ("twins", '{"reading": 2}'))
        assert values(await take(first, 2)) == [{"reading": 1}, {"reading": 2}]
        assert values(await take(second, 1)) == [{"reading": 2}]
        await first.pause_stream()
        await second.pause_stream()

    async def nothing_is_left() -> None:
        stream = await opened(sensor)
        assert await nothing_more(stream)
        await stream.close_stream()

    run(one_stores)
    run(both_store)
    run(nothing_is_left)


def test_topic_levels_and_json_fields_become_columns(broker: Mosquitto) -> None:
    async def work() -> None:
        columns = pa.schema(
            [("site", pa.string()), ("room", pa.int32()), ("t", pa.float64()), ("h", pa.float64())]
        )
        stream = await opened(
            at(
                f"{broker.url}/plant/+/room/#",
                columns=columns,
                levels="site, room",
                fields="t=values.0, h=data.h",
            )
        )
        publish(broker, ("plant/north/room/12", '{"values": [21.5], "data": {"h": 40}}'))
        assert values(await take(stream, 1)) == [{"site": "north", "room": 12, "t": 21.5, "h": 40}]
        await stream.close_stream()

    run(work)


@pytest.mark.parametrize(
    ("options", "payload", "value"),
    [
        ({}, "21.5", 21.5),
        ({"format": "csv"}, "7,21.5", {"reading": 7, "temperature": 21.5}),
        ({"format": "text"}, "8", 8),
    ],
)
def test_payloads_of_other_formats(
    broker: Mosquitto, options: dict[str, str], payload: str, value: Any
) -> None:
    async def work() -> None:
        stream = await opened(at(f"{broker.url}/formats", owner=str(options), **options))
        publish(broker, ("formats", payload))
        assert values(await take(stream, 1)) == [value]
        await stream.close_stream()

    run(work)


def test_what_is_no_reading_is_told_apart_and_can_be_acknowledged(broker: Mosquitto) -> None:
    async def work() -> None:
        stream = await opened(at(f"{broker.url}/bad", max_bytes="1KB"))
        publish(
            broker,
            ("bad", "{oops"),
            ("bad", b"\xff\xfe"),
            ("bad", "[" * 100_000),
            ("bad", '"' + "x" * 200_000 + '"'),
            ("bad", '{"reading": 1}'),
        )
        *bad, good = await take(stream, 5)
        assert all(isinstance(one, BadReadingError) and one.stored is not None for one in bad)
        assert [one.reason.split(":")[0] for one in bad] == [
            "malformed JSON",
            "malformed JSON",
            "a message of more than 1024 bytes",
            "a message of more than 1024 bytes",
        ]
        assert max(len(one.payload) for one in bad) <= 4096
        assert good.value == {"reading": 1}
        await stream.close_stream()

    run(work)


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_not_stored_is_delivered_again(broker: Mosquitto, version: str, qos: int) -> None:
    """A process that dies is one whose connection ends without a word."""
    topic = f"again/{version}/{qos}"
    sensor = at(f"{broker.url}/{topic}", owner=topic, version=version, qos=str(qos))
    keys: list[bytes] = []

    async def dies() -> None:
        stream = await opened(sensor)
        publish(broker, *[(topic, f'{{"reading": {one}}}') for one in range(4)], qos=qos)
        found = await take(stream, 4, store=False)
        for one in found[:2]:
            one.stored()
        keys.extend(one.key for one in found[:3])
        assert stream._connection is not None
        last = "PUBACK" if qos == 1 else "PUBCOMP"
        said = f"Received {last} from {stream._connection.session.client} "
        await until(lambda: broker.log.count(said) == 2)
        assert stream._connection._wire is not None
        stream._connection._wire.abort(ConnectionError("test"))

    async def comes_back() -> None:
        stream = await opened(
            at(
                f"{broker.url}/{topic}",
                owner=topic,
                version=version,
                qos=str(qos),
                delivered=frozenset(keys),
            )
        )
        # 0 and 1 were acknowledged, 2 was stored though not acknowledged, 3 was neither.
        assert values(await take(stream, 1)) == [{"reading": 3}]
        assert await nothing_more(stream)
        assert stream.duplicates == 1
        await stream.pause_stream()

    async def has_all() -> None:
        stream = await opened(sensor)
        assert await nothing_more(stream)
        await stream.close_stream()

    run(dies)
    run(comes_back)
    run(has_all)


@pytest.mark.parametrize("qos", [1, 2])
def test_stored_while_the_connection_was_lost(broker: Mosquitto, qos: int) -> None:
    """What was stored meanwhile is acknowledged when it comes again, and is no new reading."""

    async def work() -> None:
        topic = f"meanwhile/{qos}"
        sensor = at(f"{broker.url}/{topic}", owner=topic, qos=str(qos))
        stream = await opened(sensor)
        publish(broker, *[(topic, f'{{"reading": {one}}}') for one in range(3)], qos=qos)
        before, after, unread = await take(stream, 3, store=False)
        assert stream._connection is not None
        assert stream._connection._wire is not None
        stream._connection._wire.abort(ConnectionError("test"))
        with pytest.raises(ConnectionError):
            await stream.read_stream()
        before.stored()
        await stream.close_stream()
        stream = await opened(sensor)
        await until(lambda: stream.duplicates == 3)
        assert await nothing_more(stream)
        after.stored()
        unread.stored()
        await stream.pause_stream()
        stream = await opened(sensor)
        assert await nothing_more(stream)
        await stream.close_stream()

    run(work)


def test_messages_wait_in_the_session_while_a_sensor_is_paused(broker: Mosquitto) -> None:
    async def work() -> None:
        first, second = (at(f"{broker.url}/wait/{one}", owner="wait") for one in "ab")
        streams = [await opened(first), await opened(second)]
        for one in streams:
            await one.pause_stream()
        publish(broker, ("wait/a", '{"reading": 1}'), ("wait/b", '{"reading": 2}'))
        # The second sensor's message comes before the sensor is open again: it is kept for it.
        a = await opened(first)
        assert values(await take(a, 1)) == [{"reading": 1}]
        await asyncio.sleep(0.2)
        b = await opened(second)
        assert values(await take(b, 1)) == [{"reading": 2}]
        await a.close_stream()
        await b.close_stream()
        publish(broker, ("wait/a", '{"reading": 3}'))
        again = await opened(first)
        assert await nothing_more(again, 0.2)
        await again.close_stream()

    run(work)


def test_a_subscription_that_no_sensor_claims_is_ended(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nilometer.sensors.types.mqtt_connection._UNCLAIMED", 0.1)

    async def work() -> None:
        left, other = (at(f"{broker.url}/left/{one}", owner="left", keepalive="1s") for one in "ab")
        await (await opened(left)).pause_stream()
        publish(broker, ("left/a", '{"reading": 1}'))
        stream = await opened(other)
        assert stream._connection is not None
        ended = f"Received UNSUBSCRIBE from {stream._connection.session.client}\n\tleft/a"
        await until(lambda: ended in re.sub(r"\n\d+: ", "\n", broker.log))
        publish(broker, ("left/a", '{"reading": 2}'), ("left/b", '{"reading": 3}'))
        assert values(await take(stream, 1)) == [{"reading": 3}]
        again = await opened(left)
        assert await nothing_more(again, 0.2)
        await again.close_stream()
        await stream.close_stream()

    run(work)


def test_retained_messages_are_readings_only_on_request(broker: Mosquitto) -> None:
    async def work() -> None:
        publish(broker, ("kept", '{"reading": 1}'), retain=True)
        for version in ("3.1.1", "5"):
            without = await opened(at(f"{broker.url}/kept", owner=f"a{version}", version=version))
            assert await nothing_more(without, 0.2)
            wanted = at(f"{broker.url}/kept", owner=f"b{version}", version=version, retained="yes")
            assert values(await take(await opened(wanted), 1)) == [{"reading": 1}]

    run(work)


def test_unread_messages_slow_the_broker_and_none_is_lost(broker: Mosquitto) -> None:
    async def work() -> None:
        for version in ("3.1.1", "5"):
            topic = f"slow/{version}"
            sensor = at(f"{broker.url}/{topic}/0", owner=topic, version=version, inflight="20")
            stream = await opened(sensor)
            with MqttSensors(broker.port, count=500, prefix=topic) as sensors:
                await asyncio.to_thread(sensors.wait)
            await asyncio.sleep(0.3)
            assert stream._subscription is not None
            assert len(stream._subscription.unread) <= 41
            found = []
            while len(found) < 500:
                found += await take(stream, 1)
            assert [one["reading"] for one in values(found)] == list(range(500))
            await stream.close_stream()

    run(work)


def test_qos_0_keeps_the_newest_and_counts_what_was_dropped(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nilometer.sensors.types.mqtt_subscription._MOST_UNREAD", 100)

    async def work() -> None:
        stream = await opened(at(f"{broker.url}/flood/0", qos="0"))
        with MqttSensors(broker.port, qos=0, count=300, prefix="flood") as sensors:
            await asyncio.to_thread(sensors.wait)
        await until(lambda: stream.dropped == 200)
        found = await take(stream, 100)
        assert [one["reading"] for one in values(found)] == list(range(200, 300))
        assert stream.dropped == 200
        await stream.close_stream()

    run(work)


def test_a_restarted_broker_is_reached_again_and_nothing_is_lost(tmp_path: Path) -> None:
    async def work() -> None:
        with start_mosquitto(tmp_path, persistence=True) as broker:
            sensor = at(f"{broker.url}/back")
            stream = await opened(sensor)
            publish(broker, ("back", '{"reading": 1}'))
            taken = await take(stream, 1, store=False)
            broker.stop()
            with pytest.raises(ConnectionError, match="lost|shutting down"):
                await stream.read_stream()
            await stream.close_stream()
            with pytest.raises(ConnectionError, match=f"cannot reach {broker.host}:{broker.port}"):
                await opened(sensor)
            broker.start()
            publish(broker, ("back", '{"reading": 2}'))
            taken[0].stored()
            await asyncio.sleep(0.6)
            stream = await opened(sensor)
            assert values(await take(stream, 1)) == [{"reading": 2}]
            assert await nothing_more(stream)
            await stream.close_stream()

    run(work)


def test_tls_and_passwords(tmp_path: Path) -> None:
    tls = make_certificates(tmp_path / "certificates")
    passwords = {"ada": "pass word"}

    async def work() -> None:
        with start_mosquitto(tmp_path, tls=tls, passwords=passwords) as broker:
            place = f"mqtts://ada:pass%20word@{broker.host}:{broker.port}/secret"
            stream = await opened(at(place, ca=str(tls.authority)))
            message = ("secret", '{"reading": 1}')
            await asyncio.to_thread(publish, broker, message, user="ada", password="pass word")
            assert values(await take(stream, 1)) == [{"reading": 1}]
            await stream.close_stream()
            insecure = await opened(at(place, owner="b", insecure="true"))
            await insecure.close_stream()
            with pytest.raises(ConnectionError, match="certificate verify failed"):
                await opened(at(place, owner="c"))
            for version, text in (("5", "not authorized|user name"), ("3.1.1", "not authorized")):
                wrong = at(
                    f"{broker.url}/secret",
                    owner=f"d{version}",
                    ca=str(tls.authority),
                    user="ada",
                    password="no",
                    version=version,
                )
                with pytest.raises(ConnectionError, match=text):
                    await opened(wrong)

    run(work)


def test_keep_alive_finds_a_broker_that_is_silent() -> None:
    async def work() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """A broker that takes a subscription and then says no more."""
            await reader.read(100)
            writer.write(b"\x20\x03\0\0\0")
            request = await reader.read(100)
            writer.write(b"\x90\x04" + request[2:4] + b"\0\1")
            await reader.read()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        stream = await opened(at(f"mqtt://127.0.0.1:{port}/t", keepalive="1s"))
        with pytest.raises(ConnectionError, match="keep-alive"):
            await stream.read_stream()
        server.close()

    run(work)


def test_who_does_not_speak_mqtt_is_refused() -> None:
    async def work() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\xff\xff\xff\xff\xff\xff\r\n\r\n")
            await reader.read()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionError, match="cannot reach"):
            await opened(at(f"mqtt://127.0.0.1:{port}/t", timeout="1s"))
        server.close()

    run(work)


def test_two_passwords_for_one_session_are_refused(broker: Mosquitto) -> None:
    async def work() -> None:
        one = await opened(at(f"mqtt://u:a@{broker.host}:{broker.port}/x", owner="clash"))
        with pytest.raises(InputError, match="in different ways"):
            await opened(at(f"mqtt://u:b@{broker.host}:{broker.port}/y", owner="clash"))
        await one.close_stream()

    run(work)


@pytest.mark.parametrize(
    ("address", "options", "text"),
    [
        ("topic", {}, "sensor s names no broker"),
        ("mqtt://h", {}, "an MQTT topic that cannot be subscribed"),
        ("mqtt://h/a/#/b", {}, "an MQTT topic that cannot be subscribed"),
        ("mqtt://h/a/b+", {}, "an MQTT topic that cannot be subscribed"),
        ("mqtt://h/$share/g/a", {}, "an MQTT topic that cannot be subscribed"),
        ("http://h/a", {}, "an address that is not MQTT"),
        ("mqtt://h:x/a", {}, "an MQTT port that is none"),
        ("mqtt://h/a", {"qos": "3"}, "option qos of stream type mqtt cannot be '3'"),
        ("mqtt://h/a", {"qoss": "1"}, "stream type mqtt has no option 'qoss'"),
        ("mqtt://h/a", {"levels": "reading"}, "option levels names 1 columns"),
        ("mqtt://h/+", {"levels": "nothing"}, "option levels names a column 'nothing'"),
        ("mqtt://h/a", {"fields": "temprature=t"}, "option fields names a column 'temprature'"),
    ],
)
def test_refusals(address: str, options: dict[str, str], text: str) -> None:
    async def work() -> None:
        with pytest.raises(InputError, match=text.replace("(", "\\(")):
            await opened(at(address, **options))

    run(work)


def test_a_reading_is_a_plain_tuple(broker: Mosquitto) -> None:
    async def work() -> None:
        stream = await opened(at(f"{broker.url}/tuple"))
        client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        client.connect(broker.host, broker.port)
        client.loop_start()
        # Properties of version 5 lie between topic and payload.
        properties = Properties(PacketTypes.PUBLISH)
        properties.UserProperty = [("a", "b" * 300)]
        client.publish("tuple", "1", 1, properties=properties).wait_for_publish(PATIENCE)
        client.disconnect()
        client.loop_stop()
        (found,) = await take(stream, 1)
        assert isinstance(found, Reading)
        assert found.value == 1
        await stream.close_stream()

    run(work)


def test_a_host_whose_name_is_none_cannot_be_reached_at_any_time() -> None:
    async def work() -> None:
        for _ in range(2):
            with pytest.raises(ConnectionError, match="cannot reach"):
                await opened(at(f"mqtt://{'a' * 64}.example/t"))

    run(work)
