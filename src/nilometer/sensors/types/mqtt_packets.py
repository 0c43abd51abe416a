"""The packets of MQTT 3.1.1 and 5 that a subscriber sends and receives, as bytes.

A client library would hide when a message is acknowledged: QoS 2 must be answered with PUBREC once
the message is stored, not when it arrives, since the broker then forgets the message.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

V3: Final = 4
"""The protocol level of 3.1.1."""
V5: Final = 5
_FAILURES_3: Final = {
    1: "unacceptable protocol version",
    2: "client identifier rejected",
    3: "server unavailable",
    4: "bad user name or password",
    5: "not authorized",
}
_FAILURES_5: Final = {
    0x80: "unspecified error",
    0x81: "malformed packet",
    0x82: "protocol error",
    0x84: "unsupported protocol version",
    0x85: "client identifier not valid",
    0x86: "bad user name or password",
    0x87: "not authorized",
    0x88: "server unavailable",
    0x89: "server busy",
    0x8B: "server shutting down",
    0x8D: "keep alive timeout",
    0x8E: "session taken over",
    0x8F: "topic filter invalid",
    0x95: "packet too large",
    0x97: "quota exceeded",
    0x9D: "server moved",
}
_SESSION_EXPIRY: Final = 0x11
_SERVER_KEEP_ALIVE: Final = 0x13
_RECEIVE_MAXIMUM: Final = 0x21
_ONE_BYTE: Final = {0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A}
_TWO_BYTES: Final = {0x13, 0x21, 0x22, 0x23}
_FOUR_BYTES: Final = {0x02, 0x11, 0x18, 0x27}


class PacketKind(IntEnum):
    """The upper half of a packet's first byte."""

    CONNECT = 0x10
    CONNACK = 0x20
    PUBLISH = 0x30
    PUBACK = 0x40
    PUBREC = 0x50
    PUBREL = 0x60
    PUBCOMP = 0x70
    SUBSCRIBE = 0x80
    SUBACK = 0x90
    UNSUBSCRIBE = 0xA0
    UNSUBACK = 0xB0
    PINGREQ = 0xC0
    PINGRESP = 0xD0
    DISCONNECT = 0xE0


class MalformedPacketError(Exception):
    """Bytes that are not MQTT."""


class Packet(NamedTuple):
    """A packet as it arrived."""

    first: int
    body: bytes
    cut: bool
    """Whether it was too long, so that only its beginning is here."""


class Publish(NamedTuple):
    """A message."""

    topic: bytes
    payload: bytes
    qos: int
    again: bool
    retained: bool
    number: int
    """The packet identifier; 0 with QoS 0."""
    properties: bytes = b""
    """The properties of version 5, as they arrived."""


class Connected(NamedTuple):
    """The broker's answer to CONNECT."""

    code: int
    session: bool
    keep_alive: int | None


PING: Final = bytes([PacketKind.PINGREQ, 0])


def connect(
    version: int,
    client: str,
    *,
    clean: bool,
    keep_alive: int,
    user: str | None,
    password: str | None,
    session: int,
    inflight: int,
) -> bytes:
    """Request a session; `session` (seconds) and `inflight` exist only in version 5."""
    flags = (0x02 if clean else 0) | (0x80 if user is not None else 0)
    flags |= 0x40 if password is not None else 0
    body = _text("MQTT") + struct.pack(">BBH", version, flags, keep_alive)
    if version == V5:
        properties = struct.pack(">BIBH", _SESSION_EXPIRY, session, _RECEIVE_MAXIMUM, inflight)
        body += bytes([len(properties)]) + properties
    body += _text(client)
    body += b"".join(_text(one) for one in (user, password) if one is not None)
    return _packet(PacketKind.CONNECT, body)


def subscribe(version: int, topic: str, qos: int, retained: bool, number: int) -> bytes:
    """Subscribe; `retained`: whether a new subscription wants retained messages."""
    handling = (0x10 if retained else 0x20) if version == V5 else 0
    properties = b"\0" if version == V5 else b""
    body = struct.pack(">H", number) + properties + _text(topic) + bytes([qos | handling])
    return _packet(PacketKind.SUBSCRIBE | 0x02, body)


def unsubscribe(version: int, topic: str, number: int) -> bytes:
    properties = b"\0" if version == V5 else b""
    return _packet(
        PacketKind.UNSUBSCRIBE | 0x02, struct.pack(">H", number) + properties + _text(topic)
    )


def answer(kind: PacketKind, number: int) -> bytes:
    """PUBACK, PUBREC or PUBCOMP, with success."""
    return struct.pack(">BBH", kind, 2, number)


def disconnect(version: int, *, forget: bool) -> bytes:
    """Disconnect; `forget`: the session must end too, which only version 5 can request."""
    if version == V5 and forget:
        properties = struct.pack(">BI", _SESSION_EXPIRY, 0)
        return _packet(PacketKind.DISCONNECT, bytes([0, len(properties)]) + properties)
    return bytes([PacketKind.DISCONNECT, 0])


class Splitter:
    """Splits incoming bytes into packets; of a longer one only `max_bytes` are kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._skip = 0

    def feed(self, data: bytes) -> list[Packet]:
        """The packets that are complete now."""
        if self._skip:
            used = min(self._skip, len(data))
            self._skip -= used
            data = data[used:]
        buffer = self._buffer
        buffer += data
        packets: list[Packet] = []
        place = 0
        while (header := _header(buffer, place)) is not None:
            start, length = header
            kept = min(length, self._max_bytes)
            if len(buffer) < start + kept:
                break
            end = start + kept
            packets.append(Packet(buffer[place], bytes(buffer[start:end]), kept < length))
            missing = start + length - len(buffer)
            self._skip = max(0, missing)
            place = min(start + length, len(buffer))
        del buffer[:place]
        return packets


def read_publish(packet: Packet, version: int) -> Publish:
    """The message of a PUBLISH packet."""
    first, body, _ = packet
    try:
        place = 2 + (body[0] << 8 | body[1])
        topic = body[2:place]
        qos = first >> 1 & 3
        number, properties = 0, b""
        if qos:
            number = body[place] << 8 | body[place + 1]
            place += 2
        if version == V5:
            length, place = _varying(body, place)
            properties = body[place : place + length]
            place += length
    except IndexError as error:
        raise MalformedPacketError("a message that ends too early") from error
    if qos > 2:
        raise MalformedPacketError("a message with QoS 3")
    again, retained = bool(first & 8), bool(first & 1)
    return Publish(topic, body[place:], qos, again, retained, number, properties)


def read_number(packet: Packet) -> int:
    """The packet identifier at the start of an answer."""
    if len(packet.body) < 2:
        raise MalformedPacketError("an answer without a packet identifier")
    return packet.body[0] << 8 | packet.body[1]


def read_connected(packet: Packet, version: int) -> Connected:
    """The contents of a CONNACK packet."""
    body = packet.body
    if len(body) < 2:
        raise MalformedPacketError("an answer to CONNECT that ends too early")
    numbers = _numbers(body, 2) if version == V5 else {}
    return Connected(body[1], bool(body[0] & 1), numbers.get(_SERVER_KEEP_ALIVE))


def read_codes(packet: Packet, version: int) -> bytes:
    """The reason codes of a SUBACK or UNSUBACK packet."""
    place = 2
    if version == V5:
        length, place = _varying(packet.body, place)
        place += length
    return packet.body[place:]


def failure(version: int, code: int) -> str:
    """A reason code in words."""
    failures = _FAILURES_5 if version == V5 or code >= 0x80 else _FAILURES_3
    return f"{failures.get(code, 'refused')} (code {code})"


def _header(buffer: bytearray, place: int) -> tuple[int, int] | None:
    """Where the body at a position starts, and its length; None: incomplete."""
    length = shift = 0
    for at in range(place + 1, min(place + 5, len(buffer))):
        byte = buffer[at]
        length |= (byte & 127) << shift
        if byte < 128:
            return at + 1, length
        shift += 7
    if len(buffer) >= place + 5:
        raise MalformedPacketError("a length of more than four bytes")
    return None


def _varying(body: bytes, place: int) -> tuple[int, int]:
    """A variable-length number at a position, and the position after it."""
    number = shift = 0
    while True:
        byte = body[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
        shift += 7
        if shift > 21:
            raise MalformedPacketError("a length of more than four bytes")


def _numbers(body: bytes, place: int) -> dict[int, int]:
    """The properties that are numbers; texts are skipped."""
    numbers: dict[int, int] = {}
    try:
        length, place = _varying(body, place)
        end = place + length
        while place < end:
            name = body[place]
            place += 1
            if (
                width := 1 * (name in _ONE_BYTE)
                + 2 * (name in _TWO_BYTES)
                + 4 * (name in _FOUR_BYTES)
            ):
                numbers[name] = int.from_bytes(body[place : place + width], "big")
                place += width
            else:
                # A user property is two texts; every other one here is one.
                for _ in range(2 if name == 0x26 else 1):
                    place += 2 + int.from_bytes(body[place : place + 2], "big")
    except IndexError as error:
        raise MalformedPacketError("properties that end too early") from error
    return numbers


def _packet(first: int, body: bytes) -> bytes:
    length, head = len(body), bytearray([first])
    while True:
        length, byte = length >> 7, length & 127
        head.append(byte | (128 if length else 0))
        if not length:
            return bytes(head) + body


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded
