"""One connection to an MQTT broker, shared by all sensors whose filters have one shape.

Such filters are the same or share no topic, so every message belongs to exactly one of them; the
broker's session then knows which sensors it serves, in whatever order they are opened.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

from nilometer.errors import InputError
from nilometer.sensors.types import mqtt_packets as packets
from nilometer.sensors.types.mqtt_deliveries import Deliveries, Delivery, delivery_key
from nilometer.sensors.types.mqtt_packets import Kind, Packet, Publish
from nilometer.sensors.types.mqtt_session import Session
from nilometer.sensors.types.mqtt_subscription import Message, Subscription
from nilometer.sensors.types.mqtt_topics import filter_of

_LONGEST_HEAD: Final = 1 << 17
"""More than topic and properties take."""
_UNCLAIMED: Final = 120.0
"""For how many seconds a session's messages wait for a sensor that is not open yet."""
_PAUSE_AFTER_FAILURE: Final = 0.5


class MqttConnection:
    """A connection that is made when a sensor joins, and made anew after it was lost."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._subscriptions: dict[str, list[Subscription]] = {}
        self._unclaimed: dict[str, list[tuple[float, Publish, bool, Delivery]]] = {}
        self._deliveries = Deliveries(self._send, 2 * session.inflight)
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._failed: tuple[float, Exception] | None = None
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self._connected: asyncio.Future[packets.Connected] | None = None
        self._out = bytearray()
        self._number = 0
        self._unread = 0
        self._paused = self._kept = False
        self._keep_alive = session.keep_alive
        self._heard = self._said = 0.0
        self._beat: asyncio.TimerHandle | None = None

    async def join(self, one: Subscription) -> None:
        """Connect where needed, and subscribe."""
        await self._ensure_connected()
        self._subscriptions.setdefault(one.filter, []).append(one)
        for _, message, cut, delivery in self._unclaimed.pop(one.filter, ()):
            self._hand_over(one, message, cut, delivery)
        try:
            version, qos = self.session.version, self.session.qos
            codes = await self._ask(
                lambda number: packets.subscribe(
                    version, number, one.filter, qos, retained=one.retained
                )
            )
            if not codes or codes[0] >= 0x80:
                reason = packets.failure(version, codes[0] if codes else 0x80)
                raise ConnectionError(f"the broker refuses {one.filter!r}: {reason}")
        except BaseException:
            self._forget(one, keep=True)
            raise

    async def leave(self, one: Subscription, *, keep: bool) -> None:
        """Let a sensor go; `keep`: the broker shall go on collecting messages for it."""
        if one not in self._subscriptions.get(one.filter, ()):
            return
        alone = len(self._subscriptions[one.filter]) == 1
        self._kept |= keep
        self._forget(one, keep=keep)
        try:
            if alone and not keep and self._transport is not None:
                version = self.session.version
                await self._ask(lambda number: packets.unsubscribe(version, number, one.filter))
        except (ConnectionError, TimeoutError):
            pass  # the session is given up with the connection, or its rest is not claimed
        finally:
            if not self._subscriptions and self._transport is not None:
                self._send(packets.disconnect(self.session.version, forget=not self._kept))
                self.end(None)

    def read(self, one: Subscription, most: int) -> list[Message]:
        """Take what has come for a sensor."""
        found: list[Message] = []
        while one.unread and len(found) < most:
            message, cut, delivery = one.unread.popleft()
            topic = message.topic.decode(errors="replace")
            if delivery is None:
                found.append(Message(topic, message.payload, cut, None, None))
                continue
            self._unread -= 1
            stored = _Stored(self._deliveries, delivery)
            found.append(Message(topic, message.payload, cut, delivery.key, stored))
        if self._paused and self._unread <= self.session.inflight and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return found

    @property
    def in_use(self) -> bool:
        return self._transport is not None or self._opening is not None

    # What the broker says.

    def hears(self, transport: asyncio.BaseTransport | None) -> bool:
        """Whether a transport is the one in use."""
        if transport is not self._transport:
            return False
        self._heard = asyncio.get_running_loop().time()
        return True

    def handle(self, packet: Packet) -> None:
        """Do what a packet asks for."""
        kind = packet.first & 0xF0
        if kind == Kind.PUBLISH:
            self._receive(packets.read_publish(packet, self.session.version), packet.cut)
        elif kind == Kind.PUBREL:
            self._deliveries.released(packets.read_number(packet))
        elif kind in (Kind.SUBACK, Kind.UNSUBACK):
            waiting = self._answers.pop(packets.read_number(packet), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(packets.read_codes(packet, self.session.version))
        elif kind == Kind.CONNACK and self._connected is not None and not self._connected.done():
            self._connected.set_result(packets.read_connected(packet, self.session.version))
        elif kind == Kind.DISCONNECT:
            code = packet.body[0] if packet.body else 0
            reason = packets.failure(self.session.version, code)
            self.end(ConnectionError(f"the broker ended the connection: {reason}"))

    def _receive(self, message: Publish, cut: bool) -> None:
        own = filter_of(message.topic.decode(errors="replace"), self.session.shape)
        sensors = self._subscriptions.get(own or "", [])
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
            return
        if not sensors and own is not None and not message.retained:
            self._hold(own, message, cut, key)
            return
        wanted = [one for one in sensors if not self._stored_before(one, message, key)]
        delivery = self._deliveries.take(message, key, len(wanted))
        for one in wanted:
            self._hand_over(one, message, cut, delivery)

    def _hold(self, own: str, message: Publish, cut: bool, key: bytes) -> None:
        """Keep a message of the session whose sensor is not open yet."""
        now = asyncio.get_running_loop().time()
        delivery = self._deliveries.take(message, key, 1)
        self._unclaimed.setdefault(own, []).append((now, message, cut, delivery))

    def _hand_over(
        self, one: Subscription, message: Publish, cut: bool, delivery: Delivery
    ) -> None:
        if self._stored_before(one, message, delivery.key):
            self._deliveries.stored(delivery)
            return
        one.put(message, cut, delivery)
        self._unread += 1
        # Version 3.1.1 cannot tell the broker how much may be on its way.
        if self._unread > 2 * self.session.inflight and not self._paused and self._transport:
            self._paused = True
            self._transport.pause_reading()

    def _stored_before(self, one: Subscription, message: Publish, key: bytes) -> bool:
        if not message.again or key not in one.delivered:
            return False
        one.delivered.discard(key)
        one.duplicates += 1
        return True

    # Connecting, and what is left when a connection ends.

    async def _ensure_connected(self) -> None:
        if self._transport is not None and self._opening is None:
            return
        loop = asyncio.get_running_loop()
        if self._failed is not None and loop.time() < self._failed[0]:
            raise self._failed[1]
        if self._opening is None:
            self._opening = loop.create_task(self._open())
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        """Connect once for all who wait; who comes soon after a failure is told the same."""
        loop, session = asyncio.get_running_loop(), self.session
        try:
            async with asyncio.timeout(session.timeout):
                await self._greet(loop)
            self._failed = None
        except (OSError, ssl.SSLError) as error:
            reason = ConnectionError(f"cannot reach {session.host}:{session.port}: {_text(error)}")
            self._failed = (loop.time() + _PAUSE_AFTER_FAILURE, reason)
            self.end(reason)
            raise reason from error
        finally:
            self._opening = None

    async def _greet(self, loop: asyncio.AbstractEventLoop) -> None:
        session = self.session
        context = session.tls.context() if session.tls is not None else None
        self._connected = loop.create_future()
        self._paused = self._kept = False
        wire = _Wire(self)
        transport, _ = await loop.create_connection(
            lambda: wire, session.host, session.port, ssl=context
        )
        self._transport = transport
        self._send(
            packets.connect(
                session.version,
                session.client,
                clean=session.qos == 0,
                keep_alive=session.keep_alive,
                user=session.user,
                password=session.password,
                session=session.expiry if session.qos else 0,
                inflight=session.inflight,
            )
        )
        said = await self._connected
        if said.code:
            raise ConnectionError(packets.failure(session.version, said.code))
        self._deliveries.connected(session=said.session)
        self._keep_alive = session.keep_alive if said.keep_alive is None else said.keep_alive
        self._heard = loop.time()
        self._tick()

    def end(self, error: Exception | None) -> None:
        """The connection is over: what nobody has read will come again, what was read may not."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        if self._out:
            transport.write(bytes(self._out))
            self._out.clear()
        transport.close() if error is None else transport.abort()
        if self._beat is not None:
            self._beat.cancel()
        failure = error or ConnectionError("the connection to the broker was closed")
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(failure)
        if self._connected is not None and not self._connected.done():
            self._connected.set_exception(failure)
        self._answers.clear()
        self._drop_unread(failure)

    def _drop_unread(self, failure: Exception) -> None:
        for sensors in self._subscriptions.values():
            for one in sensors:
                self._unsettle(one)
                one.fail(failure)
        for held in self._unclaimed.values():
            for _, _, _, delivery in held:
                self._deliveries.unread(delivery)
        self._subscriptions.clear()
        self._unclaimed.clear()
        self._unread = 0

    def _unsettle(self, one: Subscription) -> None:
        for _, _, delivery in one.unread:
            if delivery is not None:
                self._deliveries.unread(delivery)
                self._unread -= 1
        one.unread.clear()

    def _forget(self, one: Subscription, *, keep: bool) -> None:
        sensors = self._subscriptions.get(one.filter, [])
        if one not in sensors:
            return
        sensors.remove(one)
        if not sensors:
            del self._subscriptions[one.filter]
        if keep:
            self._unsettle(one)
        for _, _, delivery in one.unread:
            if delivery is not None:
                self._deliveries.stored(delivery)
                self._unread -= 1
        one.unread.clear()

    # What is sent.

    async def _ask(self, request: Callable[[int], bytes]) -> bytes:
        """Send a request and return the codes of the answer."""
        if self._transport is None:
            raise ConnectionError("the connection to the broker was lost")
        while True:
            self._number = self._number % 65_535 + 1
            if self._number not in self._answers:
                break
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answers[self._number] = waiting
        self._send(request(self._number))
        async with asyncio.timeout(self.session.timeout):
            return await waiting

    def _send(self, data: bytes) -> None:
        """Send with whatever else is sent in this round of the loop."""
        if self._transport is None:
            return
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out += data

    def _flush(self) -> None:
        if self._transport is not None and self._out:
            self._transport.write(bytes(self._out))
            self._said = asyncio.get_running_loop().time()
        self._out.clear()

    def _tick(self) -> None:
        """Keep the connection alive, notice its death, and let go what nobody claims."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._keep_alive and not self._paused and now - self._heard > 1.5 * self._keep_alive:
            self.end(ConnectionError("the broker has not answered within its keep-alive time"))
            return
        if self._keep_alive and now - max(self._said, self._heard) >= self._keep_alive / 3:
            self._send(packets.PING)
        self._give_up_unclaimed(now - _UNCLAIMED)
        self._beat = loop.call_later(min(self._keep_alive / 4 or 30.0, 30.0), self._tick)

    def _give_up_unclaimed(self, before: float) -> None:
        """End subscriptions that an earlier run left in the session and that no sensor wants."""
        for own in [own for own, held in self._unclaimed.items() if held[0][0] < before]:
            for _, _, _, delivery in self._unclaimed.pop(own):
                self._deliveries.stored(delivery)
            self._number = self._number % 65_535 + 1
            self._send(packets.unsubscribe(self.session.version, self._number, own))


class _Wire(asyncio.Protocol):
    """The socket of one connection; what an earlier socket still says is not heard."""

    def __init__(self, connection: MqttConnection) -> None:
        self._connection = connection
        self._splitter = packets.Splitter(connection.session.max_bytes + _LONGEST_HEAD)
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        connection = self._connection
        try:
            for packet in self._splitter.feed(data):
                if connection.hears(self._transport):
                    connection.handle(packet)
        except (packets.MalformedPacketError, IndexError) as error:
            connection.end(ConnectionError(f"the broker does not speak MQTT: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection.hears(self._transport):
            reason = f"the connection to the broker was lost{_why(exc)}"
            self._connection.end(ConnectionError(reason))


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
    """The connection of this loop for a session; it outlives its sensors to remember messages."""
    own = _CONNECTIONS.setdefault(asyncio.get_running_loop(), {})
    name = (session.host, session.port, session.client)
    found = own.get(name)
    if found is None or (found.session != session and not found.in_use):
        found = own[name] = MqttConnection(session)
    if found.session != session:
        raise InputError(
            "sensors of one table reach one broker in different ways",
            detail=f"another password, version or certificate for {session.host}:{session.port}",
            hint="give them the same, or options client that differ",
        )
    return found


def _why(error: BaseException | None) -> str:
    return f": {_text(error)}" if error is not None else ""


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
