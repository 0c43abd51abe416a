"""One client of an MQTT broker, shared by all sensors whose filters have one shape.

Such filters are the same or share no topic, so every message belongs to exactly one of them; the
broker's session then identifies the sensors it serves, in whatever order they are opened.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from nilometer.errors import InputError
from nilometer.sensors.types import mqtt_packets as packets
from nilometer.sensors.types.mqtt_backlog import Backlog
from nilometer.sensors.types.mqtt_deliveries import Deliveries, Delivery, delivery_key
from nilometer.sensors.types.mqtt_packets import Publish
from nilometer.sensors.types.mqtt_session import Session
from nilometer.sensors.types.mqtt_subscription import Message, Subscription
from nilometer.sensors.types.mqtt_topics import filter_of
from nilometer.sensors.types.mqtt_wire import MqttWire

_UNCLAIMED: Final = 120.0
"""How many seconds a session's messages wait for a sensor that is not open yet."""
_PAUSE_AFTER_FAILURE: Final = 0.5


class _Unclaimed(NamedTuple):
    """A message whose sensor is not open."""

    since: float
    message: Publish
    cut: bool
    delivery: Delivery


class MqttConnection:
    """A connection that is opened when a sensor joins, and reopened after it was lost."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._wire: MqttWire | None = None
        self._opening: asyncio.Task[MqttWire] | None = None
        self._failed: tuple[float, Exception] | None = None
        self._deliveries = Deliveries(self._send, 2 * session.inflight)
        self._subscriptions: dict[str, list[Subscription]] = {}
        self._unclaimed: dict[str, list[_Unclaimed]] = {}
        self._duplicates: Counter[str] = Counter()
        self._unread = 0
        self._kept = False
        self._backlog = Backlog()

    @property
    def in_use(self) -> bool:
        return self._wire is not None or self._opening is not None

    async def join(self, one: Subscription) -> None:
        """Connect if needed, and subscribe."""
        wire = await self._connected_wire()
        self._subscriptions.setdefault(one.filter, []).append(one)
        for _, message, cut, delivery in self._unclaimed.pop(one.filter, ()):
            self._hand_over(one, message, cut, delivery)
        one.duplicates += self._duplicates.pop(one.filter, 0)
        version, qos = self.session.version, self.session.qos
        try:
            codes = await wire.ask(
                partial(packets.subscribe, version, one.filter, qos, one.retained)
            )
            if not codes or codes[0] >= 0x80:
                reason = packets.failure(version, codes[0] if codes else 0x80)
                raise ConnectionError(f"the broker refuses {one.filter!r}: {reason}")
        except BaseException:
            self._forget(one, keep=True)
            raise

    async def leave(self, one: Subscription, *, keep: bool) -> None:
        """Remove a sensor; `keep`: the broker must continue to collect messages for it."""
        sensors = self._subscriptions.get(one.filter, [])
        if one not in sensors:
            return
        self._kept |= keep
        self._forget(one, keep=keep)
        try:
            if not sensors and not keep and self._wire is not None:
                await self._wire.ask(partial(packets.unsubscribe, self.session.version, one.filter))
        except OSError:
            pass  # what is then left in the session will not be claimed
        finally:
            if not self._subscriptions and self._wire is not None:
                self._wire.close(forget=not self._kept)

    def read(self, one: Subscription, limit: int) -> list[Message]:
        """Take what has arrived for a sensor."""
        messages: list[Message] = []
        while one.unread and len(messages) < limit:
            message, cut, delivery = one.unread.popleft()
            topic = message.topic.decode(errors="replace")
            if delivery is None:
                messages.append(
                    Message(topic, message.payload, cut, None, None, message.properties, False)
                )
            else:
                self._unread -= 1
                stored = _Stored(self._deliveries, delivery)
                key, queued = delivery.key, delivery.queued
                messages.append(
                    Message(topic, message.payload, cut, key, stored, message.properties, queued)
                )
        if self._unread <= self.session.inflight and self._wire is not None:
            self._wire.resume()
        return messages

    # What arrives over the wire.

    def connected(self, *, session: bool) -> None:
        self._kept = False
        self._deliveries.connected(session=session)
        self._backlog.connected(asyncio.get_running_loop().time(), session=session)

    def receive(self, message: Publish, cut: bool) -> None:
        """Pass a message to its sensors; one with QoS 1 or 2 at most once."""
        own = filter_of(message.topic.decode(errors="replace"), self.session.shape) or ""
        sensors = self._subscriptions.get(own, [])
        if message.retained:
            sensors = [one for one in sensors if one.retained]
        if not message.qos:
            for one in sensors:
                one.put(message, cut, None)
            return
        key = delivery_key(message)
        if self._deliveries.known(message, key):
            for one in sensors:
                one.duplicates += 1
            if not sensors:
                self._duplicates[own] += 1
            return
        now = asyncio.get_running_loop().time()
        queued = not message.retained and self._backlog.takes(now)
        if not sensors and not message.retained:
            delivery = self._deliveries.take(message, key, 1)
            delivery.queued = queued
            held = _Unclaimed(now, message, cut, delivery)
            self._unclaimed.setdefault(own, []).append(held)
            return
        delivery = self._deliveries.take(message, key, len(sensors))
        delivery.queued = queued
        for one in sensors:
            self._hand_over(one, message, cut, delivery)

    def released(self, number: int) -> None:
        self._deliveries.released(number)

    def beat(self, now: float) -> None:
        """End subscriptions that an earlier run left in the session and that no sensor wants."""
        late = [own for own, held in self._unclaimed.items() if held[0].since < now - _UNCLAIMED]
        for own in late:
            for held in self._unclaimed.pop(own):
                self._deliveries.stored(held.delivery)
            if self._wire is not None:
                self._wire.tell(partial(packets.unsubscribe, self.session.version, own))

    def lost(self, error: Exception) -> None:
        """Messages that nobody has read will be delivered again; those that were read may not."""
        self._wire = None
        for sensors in self._subscriptions.values():
            for one in sensors:
                self._leave_unread(one)
                one.fail(error)
        for held in self._unclaimed.values():
            for one_held in held:
                self._deliveries.unread(one_held.delivery)
        self._subscriptions.clear()
        self._unclaimed.clear()
        self._duplicates.clear()

    def _hand_over(
        self, one: Subscription, message: Publish, cut: bool, delivery: Delivery
    ) -> None:
        if message.again and delivery.key in one.delivered:
            one.delivered.discard(delivery.key)
            one.duplicates += 1
            self._deliveries.stored(delivery)
            return
        one.put(message, cut, delivery)
        self._unread += 1
        # Version 3.1.1 cannot tell the broker how many messages may be in flight.
        if self._unread > 2 * self.session.inflight and self._wire is not None:
            self._wire.pause()

    # Connecting and disconnecting.

    async def _connected_wire(self) -> MqttWire:
        """The wire in use; all waiters share one attempt, and its failure holds for a while."""
        if self._opening is None:
            if self._wire is not None:
                return self._wire
            loop = asyncio.get_running_loop()
            if self._failed is not None and loop.time() < self._failed[0]:
                raise self._failed[1]
            self._opening = loop.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> MqttWire:
        session = self.session
        wire = self._wire = MqttWire(session, self)
        try:
            async with asyncio.timeout(session.timeout):
                await wire.open()
        except Exception as error:  # a host name may be invalid, which is not an OSError
            text = str(error) or f"no answer within {session.timeout:g} s"
            reason = ConnectionError(f"cannot reach {session.host}:{session.port}: {text}")
            self._failed = (asyncio.get_running_loop().time() + _PAUSE_AFTER_FAILURE, reason)
            wire.abort(reason)
            self._wire = None
            raise reason from error
        finally:
            self._opening = None
        return wire

    def _forget(self, one: Subscription, *, keep: bool) -> None:
        sensors = self._subscriptions.get(one.filter, [])
        if one in sensors:
            sensors.remove(one)
            if not sensors:
                del self._subscriptions[one.filter]
        if keep:
            self._leave_unread(one)
        while one.unread:
            _, _, delivery = one.unread.popleft()
            if delivery is not None:
                self._deliveries.stored(delivery)
                self._unread -= 1

    def _leave_unread(self, one: Subscription) -> None:
        """Leave a sensor's unread messages to be delivered again."""
        while one.unread:
            _, _, delivery = one.unread.popleft()
            if delivery is not None:
                self._deliveries.unread(delivery)
                self._unread -= 1

    def _send(self, data: bytes) -> None:
        if self._wire is not None:
            self._wire.send(data)


class _Stored:
    """Acknowledges a message for one sensor, once."""

    __slots__ = ("_deliveries", "_delivery")

    def __init__(self, deliveries: Deliveries, delivery: Delivery) -> None:
        self._deliveries = deliveries
        self._delivery: Delivery | None = delivery

    def __call__(self) -> None:
        delivery, self._delivery = self._delivery, None
        if delivery is not None:
            self._deliveries.stored(delivery)


_CONNECTIONS: Final[WeakKeyDictionary[Any, dict[tuple[str, int, str], MqttConnection]]] = (
    WeakKeyDictionary()
)


def shared_connection(session: Session) -> MqttConnection:
    """This loop's connection for a session; it outlives its sensors to remember messages."""
    own = _CONNECTIONS.setdefault(asyncio.get_running_loop(), {})
    name = (session.host, session.port, session.client)
    connection = own.get(name)
    if connection is None or (connection.session != session and not connection.in_use):
        connection = own[name] = MqttConnection(session)
    if connection.session != session:
        raise InputError(
            "sensors of one table reach one broker in different ways",
            detail=f"another password, version or certificate for {session.host}:{session.port}",
            hint="give them the same, or options client that differ",
        )
    return connection
