"""The stream type kafka, against the cluster of librdkafka: what messages become, and when."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import InputError
from nilometer.log.layout import TIMESTAMP
from nilometer.model.reach import Reach
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.find_types import stream_class
from nilometer.sensors.stream_type import BadReadingError, Reading, SensorAddress
from nilometer.sensors.types import kafka_consumer
from nilometer.sensors.types.kafka import KafkaStream
from nilometer.sensors.types.kafka_consumer import TopicConsumer
from tests.kafka_cluster import KafkaCluster
from tests.manager_streams import Site
from tests.patience import Patience, wait_for

X = pa.schema([("x", pa.float64())])


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    made = KafkaCluster()
    yield made
    made.close()


def at(
    address: str,
    columns: pa.Schema = X,
    delivered: frozenset[bytes] = frozenset(),
    **options: str,
) -> SensorAddress:
    return SensorAddress("T", "s", address, options, columns, None, "tests/1", delivered, "tests")


def opened(sensor: SensorAddress) -> KafkaStream:
    stream = KafkaStream()
    stream.init_stream(sensor)
    return stream


def read(stream: KafkaStream) -> list[Any]:
    readings = stream.read_stream()
    return readings if isinstance(readings, list) else []


def take(stream: KafkaStream, count: int) -> list[Any]:
    """So many readings and bad ones, and whatever comes with the last of them."""
    readings: list[Any] = []
    patience = Patience(60)
    while sum(is_message(one) for one in readings) < count:
        assert not patience.ended, f"got {readings}"
        readings += read(stream)
    return readings


def is_message(one: Any) -> bool:
    return isinstance(one, BadReadingError) or not isinstance(one.value, pa.RecordBatch)


def values(readings: list[Any]) -> list[Any]:
    return [one.value for one in readings if isinstance(one, Reading) and is_message(one)]


def keys(readings: list[Any]) -> frozenset[bytes]:
    return frozenset(one.key for one in readings if isinstance(one, Reading))


def test_messages_are_readings_and_parts_of_them_columns(cluster: KafkaCluster) -> None:
    columns = pa.schema(
        [
            ("x", pa.float64()),
            ("id", pa.int32()),
            ("at", TIMESTAMP),
            ("site", pa.string()),
            ("p", pa.int32()),
            ("o", pa.int64()),
            ("t", pa.string()),
        ]
    )
    cluster.send(
        "parts",
        {"v": 1.5},
        key="7",
        partition=2,
        timestamp=1_700_000_000_123,
        headers=[("s", b"a")],
    )
    parts = "id=key, at=timestamp, site=header.s, p=partition, o=offset, t=topic"
    stream = opened(at(f"{cluster.url}/parts", columns, start="start", fields="x=v", parts=parts))
    readings = take(stream, 1)
    assert values(readings) == [
        {
            "x": 1.5,
            "id": 7,
            "at": datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC),
            "site": "a",
            "p": 2,
            "o": 0,
            "t": "parts",
        }
    ]
    stream.close_stream()


@pytest.mark.parametrize(
    ("form", "sent", "value"),
    [("json", b"2.5", 2.5), ("csv", b"2.5\n", {"x": 2.5}), ("text", b" 2.5", 2.5)],
)
def test_formats(cluster: KafkaCluster, form: str, sent: bytes, value: Any) -> None:
    cluster.send(f"format-{form}", sent)
    stream = opened(at(f"format-{form}", servers=cluster.servers, start="start", format=form))
    assert values(take(stream, 1)) == [value]
    stream.close_stream()


def test_all_partitions_of_several_topics_are_read_from_where_they_were(
    cluster: KafkaCluster,
) -> None:
    for number in range(40):
        cluster.send(f"many{number % 2}", number, partition=number // 2 % 4)
    sensor = at(f"{cluster.url}/many0,many1", start="start")
    stream = opened(sensor)
    readings = take(stream, 40)
    stream.close_stream()
    assert sorted(values(readings)) == list(range(40))
    cluster.send("many1", 40, partition=3)
    again = opened(at(sensor.address, delivered=keys(readings)))
    assert values(take(again, 1)) == [40]
    again.close_stream()


def test_whatever_part_of_the_readings_was_stored_the_others_come_again(
    cluster: KafkaCluster,
) -> None:
    for number in range(12):
        cluster.send("cut", number, partition=number % 3)
    stream = opened(at(f"{cluster.url}/cut", start="start"))
    readings = take(stream, 12)
    stream.close_stream()
    for cut in range(len(readings) + 1):
        stored = readings[:cut]
        again = opened(at(f"{cluster.url}/cut", delivered=keys(stored), start="start"))
        rest = values(take(again, 12 - len(values(stored))))
        again.close_stream()
        assert sorted(values(stored) + rest) == list(range(12)), cut


def test_start(cluster: KafkaCluster) -> None:
    cluster.send("begun", 1)
    stream = opened(at(f"{cluster.url}/begun"))
    first = read(stream)
    assert values(first) == []
    cluster.send("begun", 2, 3)
    readings = take(stream, 2)
    assert [(one.value, one.queued) for one in readings if is_message(one)] == [
        (2, False),
        (3, False),
    ]
    stream.close_stream()
    # The position of a topic of which nothing has come yet is stored, too.
    again = opened(at(f"{cluster.url}/begun", delivered=keys(first)))
    readings = take(again, 2)
    assert [(one.value, one.queued) for one in readings if is_message(one)] == [
        (2, True),
        (3, True),
    ]
    again.close_stream()
    future = opened(at(f"{cluster.url}/begun", start="2100-01-01"))
    assert values(read(future)) == []
    future.close_stream()


def test_what_is_no_reading_is_set_apart_with_its_place(cluster: KafkaCluster) -> None:
    cluster.send("bad", b"{", 1, None, b'"' + b"y" * 400 + b'"', partition=1)
    stream = opened(at(f"{cluster.url}/bad", start="start", max_bytes="300"))
    readings = take(stream, 4)
    stream.close_stream()
    reasons = [one.reason for one in readings if isinstance(one, BadReadingError)]
    assert reasons[0].startswith("malformed JSON: ")
    assert reasons[0].endswith(" (bad/1 at offset 0)")
    assert reasons[1] == "a message without a value (bad/1 at offset 2)"
    assert reasons[2] == "a message of more than 300 bytes (bad/1 at offset 3)"
    assert values(readings) == [1]
    # Its last message was bad: that it was read is stored all the same.
    again = opened(at(f"{cluster.url}/bad", delivered=keys(readings)))
    cluster.send("bad", 5, partition=1)
    assert values(take(again, 1)) == [5]
    again.close_stream()


def test_tombstones_may_be_ignored(cluster: KafkaCluster) -> None:
    cluster.send("graves", None, 3, key="k")
    stream = opened(at(f"{cluster.url}/graves", start="start", tombstones="ignore"))
    assert values(take(stream, 1)) == [3]
    stream.close_stream()


def test_how_many_messages_wait_is_reported(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_consumer, "_COUNT_EVERY", 0.0)
    cluster.send("waiting", *range(5000))
    stream = opened(at(f"{cluster.url}/waiting", start="start"))
    readings = take(stream, 1)
    while stream.behind is None:  # not all partitions have reported yet
        readings += take(stream, 1)
    assert len(values(readings)) + stream.behind == 5000
    take(stream, 5000 - len(values(readings)))
    wait_for(lambda: read(stream) or stream.behind == 0)
    stream.close_stream()


def fill(cluster: KafkaCluster, topic: str, above: int) -> int:
    """Send large messages until the cluster has removed all offsets up to this one."""
    while (low := cluster.held(topic, 0)[0]) <= above:
        cluster.send(topic, *[b"0" + b" " * 400_000] * 5)
    return low


def test_messages_that_retention_has_removed_are_counted_and_reported(
    cluster: KafkaCluster,
) -> None:
    cluster.send("short", 1, 2, 3)
    stream = opened(at(f"{cluster.url}/short", start="start"))
    readings = take(stream, 3)
    stream.close_stream()
    low = fill(cluster, "short", 5)
    again = opened(at(f"{cluster.url}/short", delivered=keys(readings)))
    assert again.dropped == low - 3
    (letter, position) = read(again)
    assert letter.reason == (
        f"offsets 3 to {low - 1} of short/0 were removed by the retention of the topic before they "
        "were read"
    )
    again.close_stream()
    # Once that is stored, it is not counted again.
    third = opened(at(f"{cluster.url}/short", delivered=frozenset([position.key])))
    assert third.dropped == 0
    third.close_stream()


def test_a_topic_that_ends_before_the_position_is_refused_or_read_anew(
    cluster: KafkaCluster,
) -> None:
    cluster.send("anew", 1, 2)
    stream = opened(at(f"{cluster.url}/anew", start="start"))
    (key,) = {one.replace(b"anew/0:2", b"anew/0:99") for one in keys(take(stream, 2)[-1:])}
    stream.close_stream()
    with pytest.raises(InputError, match="anew/0 ends before offset 99"):
        opened(at(f"{cluster.url}/anew", delivered=frozenset([key])))
    again = opened(at(f"{cluster.url}/anew", delivered=frozenset([key]), when_reset="start"))
    assert values(take(again, 2)) == [1, 2]
    again.close_stream()


def test_positions_in_another_cluster_are_not_taken_for_those_in_this(
    cluster: KafkaCluster,
) -> None:
    cluster.send("moved", 1)
    stream = opened(at(f"{cluster.url}/moved", start="start"))
    stored = keys(take(stream, 1))
    stream.close_stream()
    other = KafkaCluster()
    other.send("moved", 7)
    moved = opened(at(f"{other.url}/moved", delivered=stored, start="start"))
    assert values(take(moved, 1)) == [7]
    moved.close_stream()
    other.close()


def test_partitions_that_are_added_are_read_from_their_start(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.send("grows", 1, partition=0)
    cluster.send("grows", 2, partition=3)
    all_places: Callable[[TopicConsumer], list[Any]] = TopicConsumer.places
    monkeypatch.setattr(TopicConsumer, "places", lambda self: all_places(self)[:3])
    stream = opened(at(f"{cluster.url}/grows", refresh="100ms"))
    readings = read(stream)
    assert values(readings) == []
    monkeypatch.undo()
    assert values(take(stream, 1)) == [2]
    stream.close_stream()
    # So are those that were added while nobody listened.
    again = opened(at(f"{cluster.url}/grows", delivered=keys(readings)))
    later = take(again, 1)
    assert values(later) == [2]
    again.close_stream()


@pytest.mark.parametrize(
    ("address", "options", "message"),
    [
        ("mqtt://h/x", {}, "not Kafka's"),
        ("kafka://h", {}, "names no topic"),
        ("x", {}, "names no servers"),
        ("kafka://h/a b", {}, "option topic of stream type kafka cannot be 'a b'"),
        ("kafka://h:x/a", {}, "cannot read a server"),
        ("kafka://0x7f.1/a", {}, "neither a name nor an address"),
        ("kafka://ann@127.0.0.1/a", {}, "user ann has no password"),
        ("kafka://127.0.0.1/a", {"sasl": "plain"}, "option sasl without a user"),
        ("kafka://127.0.0.1/a", {"parts": "x=value"}, "option parts of stream type kafka"),
        (
            "kafka://127.0.0.1/a",
            {"parts": "y=key"},
            "names a column 'y' that a reading does not have",
        ),
        ("kafka://127.0.0.1/a", {"start": "soon"}, "option start of stream type kafka"),
    ],
)
def test_what_cannot_work_is_refused(address: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        opened(at(address, **options))


def test_a_cluster_that_does_not_answer_is_an_error_that_names_it() -> None:
    with pytest.raises(ConnectionError, match=r"127\.0\.0\.1:9"):
        opened(at("kafka://127.0.0.1:9/a", timeout="2s"))


def test_brokers_that_send_us_elsewhere_are_refused(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_consumer, "reach_of_cluster", lambda servers, private: Reach.PUBLIC)
    with pytest.raises(OSError, match=r"127\.0\.0\.1, which is not a public address"):
        opened(at(f"{cluster.url}/elsewhere"))


def test_a_manager_stores_each_message_once_though_it_stops_in_between(
    cluster: KafkaCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    site = Site(tmp_path)
    site.rows["S"] = [Sensor(0, 0, {}, f"{cluster.url}/site")]
    declared = Declaration("S", X, "kafka", options={"start": "start"})
    for number in range(5):
        cluster.send("site", *range(number * 10, number * 10 + 10), partition=number % 4)
        cluster.send("site", {"x": "no"}, partition=number % 4)
        with site.manager(declared, find_type=stream_class) as manager:
            site.read("S")
            wait_for(lambda upto=number: len(site.stored("S")) >= upto * 10 + 10)
            wait_for(lambda upto=number: len(site.letters("S")) > upto)
            wait_for(lambda: manager.status("S")[0].behind == 0)
    assert sorted(row["x"] for row in site.stored("S")) == list(range(50))
    assert [one["reason"] for one in site.letters("S")] == [
        f"x: not a number: 'no' (site/{number % 4} at offset {10 + 11 * (number // 4)})"
        for number in range(5)
    ]
