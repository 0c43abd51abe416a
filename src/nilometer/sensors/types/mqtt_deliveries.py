"""Which messages of a session we hold, and when each may be acknowledged to the broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from nilometer.sensors.types.mqtt_packets import PacketKind, Publish, answer


def delivery_key(message: Publish) -> bytes:
    """Identifies a message when it is delivered again.

    Packet identifier, topic and payload: a broker reuses an identifier only after the message was
    acknowledged, and marks what it sends again.
    """
    content = blake2b(message.topic, digest_size=12)
    content.update(b"\0")
    content.update(message.payload)
    return message.number.to_bytes(2, "big") + content.digest()


@dataclass(slots=True)
class Delivery:
    """A message that some sensors must store before it is acknowledged."""

    key: bytes
    number: int
    qos: int
    connection: int
    """The connection on which it last arrived: it can only be acknowledged on that one."""
    waiting: int = 0
    """How many sensors have not stored it yet."""
    queued: bool = False
    """Whether the broker had kept it while nobody was listening."""


class Deliveries:
    """The messages with QoS 1 or 2 of one session, across connections.

    `send` takes the bytes of an acknowledgement; `kept` is how many acknowledged ones are
    remembered, since an acknowledgement may be lost with its connection.
    """

    def __init__(self, send: Callable[[bytes], None], kept: int) -> None:
        self._send = send
        self._kept = kept
        self._open: dict[int, Delivery] = {}
        self._settled: dict[int, bytes] = {}
        self._connection = 0

    def connected(self, *, session: bool) -> None:
        """Note a new connection; without the old session, identifiers start again."""
        self._connection += 1
        if not session:
            self._open.clear()
            self._settled.clear()

    def known(self, message: Publish, key: bytes) -> bool:
        """Whether a message arrived before; one that is already stored is acknowledged at once."""
        if not message.again:
            return False
        if self._settled.get(message.number) == key:
            self._send(answer(_first_answer(message.qos), message.number))
            return True
        delivery = self._open.get(message.number)
        if delivery is None or delivery.key != key:
            return False
        delivery.connection = self._connection
        if not delivery.waiting:
            self._settle(delivery)
        return True

    def take(self, message: Publish, key: bytes, sensors: int) -> Delivery:
        """Register a message that `sensors` sensors must store; if none, acknowledge it at once."""
        delivery = Delivery(key, message.number, message.qos, self._connection, sensors)
        # The identifier is reused: the earlier message may have looked the same.
        self._settled.pop(message.number, None)
        self._open[message.number] = delivery
        if not sensors:
            self._settle(delivery)
        return delivery

    def stored(self, delivery: Delivery) -> None:
        """Note that one sensor has stored a message, or does not want it."""
        delivery.waiting -= 1
        # What arrived on an earlier connection is acknowledged when the broker sends it again.
        if not delivery.waiting and delivery.connection == self._connection:
            self._settle(delivery)

    def unread(self, delivery: Delivery) -> None:
        """Forget an unread message of a lost connection: it must be delivered as a new one."""
        if self._open.get(delivery.number) is delivery:
            del self._open[delivery.number]

    def released(self, number: int) -> None:
        """Note that the broker has forgotten a message with QoS 2."""
        self._send(answer(PacketKind.PUBCOMP, number))

    def _settle(self, delivery: Delivery) -> None:
        if self._open.get(delivery.number) is not delivery:
            return
        del self._open[delivery.number]
        self._settled.pop(delivery.number, None)
        self._settled[delivery.number] = delivery.key
        if len(self._settled) > self._kept:
            del self._settled[next(iter(self._settled))]
        self._send(answer(_first_answer(delivery.qos), delivery.number))


def _first_answer(qos: int) -> PacketKind:
    return PacketKind.PUBACK if qos == 1 else PacketKind.PUBREC
