"""A small HTTP/1.1 client for many sensors: GET, persistent connections, bounded answers.

A general-purpose client costs ten times the processor time for each request, and more with every
connection in its pool: five hundred sensors a second would take a core.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from nilometer.model.reach import Reach, connect_within
from nilometer.sensors.types.http_answer import AnswerReader, BadAnswerError, HttpAnswer

_IDLE: Final = 20.0
"""How many seconds an unused connection stays open."""


@dataclass(frozen=True)
class Origin:
    """A server."""

    host: str
    port: int
    context: ssl.SSLContext | None = None
    reach: Reach = Reach.PUBLIC


class HttpConnection(asyncio.Protocol):
    """One connection, which answers one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._waiting: asyncio.Future[HttpAnswer] | None = None
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, request: bytes, max_bytes: int) -> asyncio.Future[HttpAnswer]:
        """Send a request; return a future for the answer, or an error."""
        assert self._transport is not None
        self._reader = AnswerReader(max_bytes)
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiting

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._reader is None:
            self.close()  # nothing was requested
            return
        try:
            answer = self._reader.feed(data)
        except BadAnswerError as error:
            self._done(error)
            self.close()
            return
        if answer is not None:
            if not answer.is_kept:
                self.close()
            self._done(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        answer = self._reader.end() if self._reader is not None else None
        self._done(answer or ConnectionError(str(exc or "the server closed the connection")))

    def _done(self, outcome: HttpAnswer | Exception) -> None:
        waiting, self._waiting, self._reader = self._waiting, None, None
        if waiting is None or waiting.done():
            return
        if isinstance(outcome, HttpAnswer):
            waiting.set_result(outcome)
        else:
            waiting.set_exception(outcome)


class HttpClient:
    """The connections of one loop to all servers, closed when no sensor is left."""

    def __init__(self) -> None:
        self._sensors = 0
        self._idle: dict[Origin, deque[HttpConnection]] = {}
        self._cleaning: asyncio.TimerHandle | None = None

    def join(self) -> None:
        """Register a sensor that will send requests."""
        self._sensors += 1

    def leave(self) -> None:
        """Deregister a sensor that sends no more requests."""
        self._sensors -= 1
        if not self._sensors:
            for idle in self._idle.values():
                for connection in idle:
                    connection.close()
            self._idle.clear()
            if self._cleaning is not None:
                self._cleaning.cancel()
                self._cleaning = None

    async def get(self, origin: Origin, request: bytes, *, max_bytes: int) -> HttpAnswer:
        """The answer to a request; a body of more than `max_bytes` raises BadAnswerError."""
        connection = self._take(origin)
        if connection is not None:
            try:
                return await self._ask(origin, connection, request, max_bytes)
            except OSError:
                pass  # the server had closed it: a new connection shows whether it is up
        return await self._ask(origin, await _connect(origin), request, max_bytes)

    async def _ask(
        self, origin: Origin, connection: HttpConnection, request: bytes, max_bytes: int
    ) -> HttpAnswer:
        try:
            answer = await connection.ask(request, max_bytes)
        except BaseException:
            connection.close()  # later data on it belongs to no request
            raise
        if connection.is_open and self._sensors:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.setdefault(origin, deque()).append(connection)
            self._clean_later()
        return answer

    def _take(self, origin: Origin) -> HttpConnection | None:
        idle = self._idle.get(origin)
        while idle:
            # The most recently used one is the least likely to have been closed.
            connection = idle.pop()
            if connection.is_open:
                return connection
        return None

    def _clean_later(self) -> None:
        if self._cleaning is None:
            loop = asyncio.get_running_loop()
            self._cleaning = loop.call_later(_IDLE, self._clean)

    def _clean(self) -> None:
        """Close connections that have not been used for a long time."""
        self._cleaning = None
        before = asyncio.get_running_loop().time() - _IDLE
        for origin, idle in list(self._idle.items()):
            while idle and (idle[0].idle_since < before or not idle[0].is_open):
                idle.popleft().close()
            if not idle:
                del self._idle[origin]
        if self._idle:
            self._clean_later()


async def _connect(origin: Origin) -> HttpConnection:
    """A new connection, to the first of the host's addresses that answers."""
    loop = asyncio.get_running_loop()
    name = origin.host if origin.context is not None else None

    async def connect(address: str) -> HttpConnection:
        _, connection = await loop.create_connection(
            HttpConnection, address, origin.port, ssl=origin.context, server_hostname=name
        )
        return connection

    return await connect_within(origin.host, origin.port, origin.reach, connect)


_CLIENTS: Final[WeakKeyDictionary[Any, HttpClient]] = WeakKeyDictionary()


def shared_client() -> HttpClient:
    """The client of this loop."""
    return _CLIENTS.setdefault(asyncio.get_running_loop(), HttpClient())
