"""The stream type mqtt, against a real mosquitto: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from nilometer.sensors.types.mqtt_backlog import Backlog
from tests.mosquitto import Mosquitto, start_mosquitto
from tests.mqtt_publisher import MqttSensors
from tests.mqtt_streams import (
    at,
    nothing_more,
    opened,
    publish,
    run,
    take,
    values,
)
from tests.patience import until


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
        taken = await take(stream, 4, store=False)
        for one in taken[:2]:
            one.stored()
        keys.extend(one.key for one in taken[:3])
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


def test_messages_wait_in_the_session_while_a_sensor_is_paused(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 0.0
    connected, takes = Backlog.connected, Backlog.takes
    monkeypatch.setattr(
        Backlog, "connected", lambda self, _, **how: connected(self, seconds, **how)
    )
    monkeypatch.setattr(Backlog, "takes", lambda self, _: takes(self, seconds))

    async def work() -> None:
        nonlocal seconds
        first, second = (at(f"{broker.url}/wait/{one}", owner="wait") for one in "ab")
        streams = [await opened(first), await opened(second)]
        for one in streams:
            await one.pause_stream()
        publish(broker, ("wait/a", '{"reading": 1}'), ("wait/b", '{"reading": 2}'))
        # The second sensor's message comes before the sensor is open again: it is kept for it.
        a = await opened(first)
        (reading,) = await take(a, 1)
        assert (reading.value, reading.queued) == ({"reading": 1}, True)
        b = await opened(second)
        (reading,) = await take(b, 1)
        assert (reading.value, reading.queued) == ({"reading": 2}, True)
        seconds += 1.0  # the backlog is over
        publish(broker, ("wait/a", '{"reading": 4}'))
        (new,) = await take(a, 1)
        assert (new.value, new.queued) == ({"reading": 4}, False)
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
    monkeypatch.setattr("nilometer.sensors.types.mqtt_wire._SLOWEST_BEAT", 0.1)

    async def work() -> None:
        left, other = (at(f"{broker.url}/left/{one}", owner="left") for one in "ab")
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
            taken = []
            while len(taken) < 500:
                taken += await take(stream, 1)
            assert [one["reading"] for one in values(taken)] == list(range(500))
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
        taken = await take(stream, 100)
        assert [one["reading"] for one in values(taken)] == list(range(200, 300))
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
