"""One socket to an MQTT broker, from CONNECT to the end, kept alive meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from nilometer.model.reach import connect_within
from nilometer.sensors.types import mqtt_packets as packets
from nilometer.sensors.types.mqtt_packets import Packet, PacketKind, Publish
from nilometer.sensors.types.mqtt_session import Session

_LONGEST_HEAD: Final = 1 << 17
"""More than topic and properties take."""
_SLOWEST_BEAT: Final = 30.0


class Listener(Protocol):
    """Receives what arrives over a wire."""

    def connected(self, *, session: bool) -> None:
        """The broker accepts; `session`: it still has our earlier session."""

    def receive(self, message: Publish, cut: bool) -> None:
        """A message has arrived; `cut`: it was too long, and its end is missing."""

    def released(self, number: int) -> None:
        """The broker has forgotten a message with QoS 2."""

    def beat(self, now: float) -> None:
        """Some time has passed."""

    def lost(self, error: Exception) -> None:
        """The wire can no longer be used."""


class MqttWire(asyncio.Protocol):
    """A socket that speaks MQTT; once closed, it notifies nobody."""

    def __init__(self, session: Session, listener: Listener) -> None:
        self._session = session
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._splitter = packets.Splitter(session.max_bytes + _LONGEST_HEAD)
        self._transport: asyncio.Transport | None = None
        self._accepted: asyncio.Future[packets.Connected] = self._loop.create_future()
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self._out = bytearray()
        self._number = 0
        self._paused = False
        self._keep_alive = session.keep_alive
        self._heard = self._said = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Connect; raises OSError if that fails."""
        session = self._session
        context = session.tls.context() if session.tls is not None else None
        name = session.host if context is not None else None
        await connect_within(
            session.host,
            session.port,
            session.reach,
            lambda address: self._loop.create_connection(
                lambda: self, address, session.port, ssl=context, server_hostname=name
            ),
        )
        self.send(
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
        connected = await self._accepted
        if connected.code:
            raise ConnectionError(packets.failure(session.version, connected.code))
        if connected.keep_alive is not None:
            self._keep_alive = connected.keep_alive
        self._tick()

    def close(self, *, forget: bool) -> None:
        """Disconnect; `forget`: the broker must forget us."""
        self.send(packets.disconnect(self._session.version, forget=forget))
        self._end(None)

    def abort(self, error: Exception) -> None:
        """Close the socket without disconnecting."""
        self._end(error)

    async def ask(self, request: Callable[[int], bytes]) -> bytes:
        """Send a request under a number, and return the codes of the answer."""
        if self._transport is None:
            raise ConnectionError("the connection to the broker was lost")
        number = self._next_number()
        waiting: asyncio.Future[bytes] = self._loop.create_future()
        self._answers[number] = waiting
        self.resume()
        self.send(request(number))
        try:
            async with asyncio.timeout(self._session.timeout):
                return await waiting
        finally:
            self._answers.pop(number, None)

    def tell(self, request: Callable[[int], bytes]) -> None:
        """Send a request whose answer does not matter."""
        self.send(request(self._next_number()))

    def send(self, data: bytes) -> None:
        """Send with whatever else is sent in this round of the loop."""
        if self._transport is None:
            return
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += data

    def pause(self) -> None:
        """Stop reading until `resume`; an awaited answer is read first."""
        if not self._paused and not self._answers and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._heard = self._loop.time()
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        try:
            for packet in self._splitter.feed(data):
                if self._transport is not None:
                    self._handle(packet)
        except (packets.MalformedPacketError, IndexError) as error:
            self._end(ConnectionError(f"the broker does not speak MQTT: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        why = f": {exc}" if exc is not None else ""
        self._end(ConnectionError(f"the connection to the broker was lost{why}"))

    def _handle(self, packet: Packet) -> None:
        kind, version = packet.first & 0xF0, self._session.version
        if kind == PacketKind.PUBLISH:
            self._listener.receive(packets.read_publish(packet, version), packet.cut)
        elif kind == PacketKind.PUBREL:
            self._listener.released(packets.read_number(packet))
        elif kind in (PacketKind.SUBACK, PacketKind.UNSUBACK):
            waiting = self._answers.pop(packets.read_number(packet), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(packets.read_codes(packet, version))
        elif kind == PacketKind.CONNACK and not self._accepted.done():
            connected = packets.read_connected(packet, version)
            # Messages of the session may follow at once, before anyone could wait for this.
            if not connected.code:
                self._listener.connected(session=connected.session)
            self._accepted.set_result(connected)
        elif kind == PacketKind.DISCONNECT:
            reason = packets.failure(version, packet.body[0] if packet.body else 0)
            self._end(ConnectionError(f"the broker ended the connection: {reason}"))

    def _end(self, error: Exception | None) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        if error is None:
            transport.write(bytes(self._out))
            transport.close()
        else:
            transport.abort()
        self._out.clear()
        if self._timer is not None:
            self._timer.cancel()
        failure = error or ConnectionError("the connection to the broker was closed")
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(failure)
        if not self._accepted.done():
            self._accepted.set_exception(failure)
        self._listener.lost(failure)

    def _flush(self) -> None:
        if self._transport is not None and self._out:
            self._transport.write(bytes(self._out))
            self._said = self._loop.time()
        self._out.clear()

    def _next_number(self) -> int:
        while True:
            self._number = self._number % 65_535 + 1
            if self._number not in self._answers:
                return self._number

    def _tick(self) -> None:
        """Keep the connection alive, and detect its loss."""
        now = self._loop.time()
        if self._keep_alive and not self._paused and now - self._heard > 1.5 * self._keep_alive:
            self._end(ConnectionError("the broker has not answered within its keep-alive time"))
        if self._transport is None:
            return
        # Anything we send keeps us alive there; only an answer keeps the broker alive here.
        if self._keep_alive and now - min(self._said, self._heard) >= self._keep_alive / 3:
            self.send(packets.PING)
        self._listener.beat(now)
        pause = self._keep_alive / 4 if self._keep_alive else _SLOWEST_BEAT
        self._timer = self._loop.call_later(min(pause, _SLOWEST_BEAT), self._tick)
