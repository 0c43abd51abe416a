"""The stream type mqtt, against a real mosquitto: what messages become, and who may connect."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pyarrow as pa
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from nilometer.errors import InputError
from nilometer.log.layout import TIMESTAMP
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.manager.build_rows import RowBuilder
from nilometer.sensors.stream_type import BadReadingError, Reading
from tests.mosquitto import Mosquitto, make_certificates, start_mosquitto
from tests.mqtt_publisher import MqttSensors
from tests.mqtt_streams import (
    LONG,
    at,
    nothing_more,
    opened,
    publish,
    run,
    take,
    values,
)


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_message_comes_once_and_in_order(broker: Mosquitto, version: str, qos: int) -> None:
    async def work() -> None:
        topic = f"order/{version}/{qos}"
        sensor = at(f"{broker.url}/{topic}/0", owner=topic, version=version, qos=str(qos))
        stream = await opened(sensor)
        assert stream.can_wait == (qos > 0)
        with MqttSensors(broker.port, qos=qos, count=500, rate=2000, prefix=topic) as sensors:
            taken = await take(stream, 500)
            assert await asyncio.to_thread(sensors.wait) == 500
        assert [one["reading"] for one in values(taken)] == list(range(500))
        assert await nothing_more(stream, 0.1)
        await stream.close_stream()

    run(work)


def test_many_sensors_share_one_connection(broker: Mosquitto) -> None:
    async def work() -> None:
        addresses = [at(f"{broker.url}/many/{one}", owner="many") for one in range(60)]
        streams = await asyncio.gather(*(opened(one) for one in addresses))
        with MqttSensors(broker.port, sensors=60, count=600, prefix="many") as sensors:
            taken = await asyncio.gather(*(take(one, 10) for one in streams))
            sensors.wait()
        for number, readings in enumerate(taken):
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
        taken = [
            [one["reading"] for one in values(await take(stream, count))]
            for stream, count in zip(streams, [1, 2, 1, 2, 1], strict=True)
        ]
        assert taken == [[1], [1, 2], [1], [1, 2], [1]]
        for stream in streams:
            assert await nothing_more(stream, 0.1)
            await stream.close_stream()

    run(work)


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


def test_user_properties_become_columns(broker: Mosquitto) -> None:
    async def work() -> None:
        columns = pa.schema([("room", pa.string()), ("t", pa.float64()), ("at", TIMESTAMP)])
        stream = await opened(
            at(
                f"{broker.url}/told/+",
                columns=columns,
                owner="told",
                levels="room",
                properties="at=sent.at",
            )
        )
        properties = Properties(PacketTypes.PUBLISH)
        properties.UserProperty = [("other", "x"), ("sent.at", "2026-01-31T12:00:00Z")]
        properties.MessageExpiryInterval = 60
        publish(broker, ("told/hall", "21.5"), protocol=paho.MQTTv5, properties=properties)
        publish(broker, ("told/hall", '{"t": 22}'))
        first, second = values(await take(stream, 2))
        assert (first["room"], first["t"], second) == ("hall", 21.5, {"room": "hall", "t": 22})
        builder = RowBuilder(Declaration("S", columns, "mqtt", time="at"))
        built = builder.from_values([first])
        assert built.times is not None
        assert (built.times.tolist(), built.refused) == ([1_769_860_800_000_000], {})
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


def test_retained_messages_are_readings_only_on_request(broker: Mosquitto) -> None:
    async def work() -> None:
        publish(broker, ("kept", '{"reading": 1}'), retain=True)
        for version in ("3.1.1", "5"):
            without = await opened(at(f"{broker.url}/kept", owner=f"a{version}", version=version))
            assert await nothing_more(without, 0.2)
            wanted = at(f"{broker.url}/kept", owner=f"b{version}", version=version, retained="yes")
            assert values(await take(await opened(wanted), 1)) == [{"reading": 1}]

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
        ("mqtt://h:x/a", {}, "an invalid MQTT port"),
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
        client.publish("tuple", "1", 1, properties=properties).wait_for_publish(LONG)
        client.disconnect()
        client.loop_stop()
        (reading,) = await take(stream, 1)
        assert isinstance(reading, Reading)
        assert reading.value == 1
        await stream.close_stream()

    run(work)


def test_a_host_whose_name_is_none_cannot_be_reached_at_any_time() -> None:
    async def work() -> None:
        for _ in range(2):
            with pytest.raises(ConnectionError, match="cannot reach"):
                await opened(at(f"mqtt://{'a' * 64}.example/t"))

    run(work)
