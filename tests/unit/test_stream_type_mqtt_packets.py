"""MQTT without a broker: packets however they are cut, and messages however connections end."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.sensors.types.mqtt_deliveries import Deliveries, Delivery, delivery_key
from nilometer.sensors.types.mqtt_packets import (
    V3,
    V5,
    MalformedPacketError,
    Packet,
    PacketKind,
    Publish,
    Splitter,
    connect,
    read_codes,
    read_connected,
    read_publish,
)
from nilometer.sensors.types.mqtt_topics import filter_of, shape, wildcard_levels

LEVELS = st.sampled_from(["a", "b", "", "long"])
MARKS = st.sampled_from(["a", "b", "", "+"])


def length(number: int) -> bytes:
    encoded = b""
    while True:
        number, byte = divmod(number, 128)
        encoded += bytes([byte | (128 if number else 0)])
        if not number:
            return encoded


def published(topic: bytes, payload: bytes, qos: int, number: int, version: int) -> bytes:
    body = struct.pack(">H", len(topic)) + topic
    body += struct.pack(">H", number) if qos else b""
    body += b"\x03\x23\x00\x01" if version == V5 else b""
    return bytes([0x30 | qos << 1]) + length(len(body + payload)) + body + payload


@given(
    messages=st.lists(
        st.tuples(
            st.binary(max_size=5), st.binary(max_size=300), st.integers(0, 2), st.integers(1, 65535)
        ),
        max_size=6,
    ),
    cuts=st.lists(st.integers(0, 1500)),
    version=st.sampled_from([V3, V5]),
    limit=st.sampled_from([60, 100_000]),
)
def test_messages_do_not_depend_on_how_bytes_are_cut(
    messages: list[tuple[bytes, bytes, int, int]], cuts: list[int], version: int, limit: int
) -> None:
    texts = [published(*one, version) for one in messages]
    text = b"".join(texts)
    places = sorted({0, len(text), *(one for one in cuts if one < len(text))})
    splitter = Splitter(limit)
    packets = [
        packet
        for start, end in zip(places, [*places[1:], len(text)], strict=True)
        for packet in splitter.feed(text[start:end])
    ]
    assert len(packets) == len(messages)
    for packet, whole, (topic, payload, qos, number) in zip(packets, texts, messages, strict=True):
        seen = read_publish(packet, version)
        body = len(whole) - (2 if len(whole) < 130 else 3)
        assert packet.cut == (body > limit)
        assert (seen.topic, seen.qos, seen.number) == (topic, qos, number if qos else 0)
        assert seen.payload == (payload[: limit - body] if packet.cut else payload)


def test_connect_is_what_the_standard_shows() -> None:
    """3.1.1, figure 3.6, with another keep-alive and client."""
    packet = connect(
        V3, "c", clean=False, keep_alive=10, user="u", password="p", session=0, inflight=1
    )
    assert packet == b"\x10\x13\x00\x04MQTT\x04\xc0\x00\x0a\x00\x01c\x00\x01u\x00\x01p"


@given(
    filters=st.lists(
        st.tuples(st.lists(MARKS, min_size=1, max_size=4), st.booleans()), min_size=1, max_size=8
    ),
    topic=st.lists(LEVELS, min_size=1, max_size=5),
)
def test_of_all_filters_of_one_shape_at_most_one_matches(
    filters: list[tuple[list[str], bool]], topic: list[str]
) -> None:
    text = "/".join(topic)
    for levels, ends in filters:
        own = "/".join([*levels, "#"] if ends else levels)
        matches = _matches(own.split("/"), topic)
        assert (filter_of(text, shape(own)) == own) == matches
        if matches:
            matched = wildcard_levels(text, own)
            assert len(matched) == levels.count("+") + ends


def _matches(levels: list[str], topic: list[str]) -> bool:
    """By the words of the standard, level by level."""
    if not levels or levels[0] == "#":
        return bool(levels) or not topic
    if not topic:
        return False
    if levels[0] not in ("+", topic[0]):
        return False
    return _matches(levels[1:], topic[1:])


class _Broker:
    """What a broker does for one session, as plainly as can be."""

    def __init__(self, qos: int) -> None:
        self.qos = qos
        self.unacknowledged: dict[int, int] = {}
        """Messages by the number under which they were sent."""
        self.sent: set[int] = set()
        """Numbers that were sent by this connection."""
        self.following = 0
        self.acknowledged: list[int] = []

    def new(self) -> Publish:
        number = next(one for one in range(1, 100) if one not in self.unacknowledged)
        self.unacknowledged[number] = self.following
        self.following += 1
        return self.message(number, again=False)

    def message(self, number: int, *, again: bool) -> Publish:
        self.sent.add(number)
        # Payloads repeat, so that keys would be mistaken where only they are looked at.
        payload = b"%d" % (self.unacknowledged[number] % 2)
        return Publish(b"t", payload, self.qos, again, False, number)

    def take(self, answer: bytes) -> None:
        kind, _, number = struct.unpack(">BBH", answer)
        assert kind == (PacketKind.PUBACK if self.qos == 1 else PacketKind.PUBREC)
        assert number in self.sent, "what was not sent by this connection is not acknowledged"
        self.acknowledged.append(self.unacknowledged.pop(number))


@settings(max_examples=300)
@given(
    steps=st.lists(st.sampled_from(["new", "store", "store", "lose", "resend", "resend"])),
    qos=st.sampled_from([1, 2]),
)
def test_messages_are_taken_once_and_acknowledged_once_they_are_stored(
    steps: list[str], qos: int
) -> None:
    broker = _Broker(qos)
    deliveries = Deliveries(broker.take, 50)
    deliveries.connected(session=False)
    taken: list[tuple[int, Delivery]] = []
    ever: list[int] = []
    stored: set[int] = set()

    def receive(message: Publish) -> None:
        content = broker.unacknowledged[message.number]
        key = delivery_key(message)
        if not deliveries.known(message, key):
            taken.append((content, deliveries.take(message, key, 1)))
            ever.append(content)

    for step in [*steps, "lose", *["resend"] * 100, *["store"] * 100]:
        if step == "new":
            receive(broker.new())
        elif step == "store" and taken:
            content, delivery = taken.pop(0)
            stored.add(content)
            deliveries.stored(delivery)
        elif step == "lose":
            broker.sent.clear()
            deliveries.connected(session=True)
        elif step == "resend":
            late = sorted(set(broker.unacknowledged) - broker.sent)
            if late:
                receive(broker.message(late[0], again=True))
        assert set(broker.acknowledged) <= stored
    assert ever == sorted(set(ever)) == list(range(broker.following))
    assert not broker.unacknowledged
    assert sorted(broker.acknowledged) == ever


@pytest.mark.limit(20)
def test_a_length_within_a_packet_has_four_bytes_at_most() -> None:
    """Of a megabyte of them the number would take minutes, in which no sensor is read."""
    endless = b"\xff" * (1 << 21)
    for read, body in (
        (read_publish, b"\0\1a" + endless),
        (read_connected, b"\0\0" + endless),
        (read_codes, b"\0\1" + endless),
    ):
        with pytest.raises(MalformedPacketError, match="more than four bytes"):
            read(Packet(0x30, body, False), V5)
