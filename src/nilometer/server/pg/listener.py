"""Listens for clients that use PostgreSQL's protocol; a token is their password."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import ssl
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from nilometer.errors import NilometerError, UnauthorizedError
from nilometer.model.events import event
from nilometer.server.access import Caller
from nilometer.server.fair_threads import works_for
from nilometer.server.guards import is_loopback
from nilometer.server.limits import Room, Shares, Weights
from nilometer.server.pg import wire
from nilometer.server.pg.catalog import PgCatalog
from nilometer.server.pg.catalog_tables import DATABASE, SERVER_VERSION
from nilometer.server.pg.error_messages import error_message
from nilometer.server.pg.prepared import PreparedStatements
from nilometer.server.pg.session import Session
from nilometer.server.pg.statements import Statements
from nilometer.server.scopes import Scope, require_scope
from nilometer.server.tokens import Tokens, scopes_of

if TYPE_CHECKING:
    from nilometer.server.service import Service

_LOG: Final = logging.getLogger("nilometer.access")
_ENDS: Final = (ConnectionError, asyncio.IncompleteReadError, TimeoutError, ssl.SSLError, OSError)
_PAUSE: Final = 0.5
"""Delay in seconds before a wrong token is answered."""
_MOST_PASSWORD: Final = 4096
_STATUS: Final = {
    "server_version": SERVER_VERSION,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "session_authorization": DATABASE,
}


class PgListener:
    """All connections of a server through PostgreSQL's protocol."""

    def __init__(self, service: Service, tokens: Tokens, context: ssl.SSLContext | None) -> None:
        self._service = service
        self._tokens = tokens
        self._context = context
        self._catalog = PgCatalog()
        self._room = Room(service.settings.max_connections, "connections are open")
        self._shares = Shares(
            service.settings.max_connections_each, "connections of one token are open"
        )
        self._held = Weights(4 * service.settings.max_answer_bytes, "bytes of answers are held")
        self._sessions: dict[tuple[int, int], Session] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, listening: socket.socket) -> None:
        """Accept connections."""
        self._server = await asyncio.start_server(self._connected, sock=listening)

    async def close(self) -> None:
        """Close all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2)
        self._catalog.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with self._room.one():
                await self._serve(reader, writer)
        except NilometerError as error:
            writer.write(error_message(error, fatal=True))
        except _ENDS:
            pass  # the client has disconnected, or uses another protocol
        finally:
            self._tasks.discard(task)
            with suppress(*_ENDS):
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(self._service.settings.header_seconds):
            caller = await self._greet(reader, writer)
        if caller is not None:
            works_for(caller.name)
            with self._shares.one(caller.name):
                await self._serve_caller(caller, reader, writer)

    async def _serve_caller(
        self, caller: Caller, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        key = (secrets.randbelow(1 << 31), secrets.randbelow(1 << 32))
        statements = Statements(self._service, self._catalog, caller)
        prepared = PreparedStatements(caller.name, self._held)
        session = Session(self._service, statements, caller, reader, writer, prepared)
        self._sessions[key] = session
        try:
            writer.write(wire.AUTHENTICATED)
            for name, value in _STATUS.items():
                writer.write(wire.parameter_status(name, value))
            writer.write(wire.key_data(*key))
            await session.run()
            await writer.drain()
        finally:
            del self._sessions[key]

    async def _greet(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Caller | None:
        """The client that connects; None: it only wanted to cancel a statement."""
        is_encrypted = False
        while True:
            startup = await wire.read_startup(reader)
            match startup.code:
                case wire.SSL_REQUEST if self._context is not None and not is_encrypted:
                    if reader._buffer:  # type: ignore[attr-defined]
                        # A man in the middle could send data in the client's name.
                        raise wire.ProtocolError("data came before the connection was encrypted")
                    writer.write(b"S")
                    await writer.start_tls(self._context)
                    is_encrypted = True
                case wire.SSL_REQUEST | wire.GSS_REQUEST:
                    writer.write(b"N")
                    await writer.drain()
                case wire.CANCEL_REQUEST:
                    session = self._sessions.get((startup.process, startup.secret))
                    if session is not None:
                        session.cancel()
                    return None
                case wire.PROTOCOL:
                    break
                case _:
                    raise wire.ProtocolError("this version of the protocol is not supported")
        peer = str((writer.get_extra_info("peername") or ("nowhere",))[0])
        if self._context is not None and not is_encrypted and not is_loopback(peer):
            raise UnauthorizedError(
                "only encrypted connections are accepted", hint="sslmode=require"
            )
        return await self._authenticate(reader, writer, peer)

    async def _authenticate(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str
    ) -> Caller:
        writer.write(wire.ASK_PASSWORD)
        await writer.drain()
        kind, body = await wire.read_message(reader, _MOST_PASSWORD)
        if kind != b"p":
            raise wire.ProtocolError("a password was expected")
        secret = body.text()
        token = await self._service.look(lambda: self._tokens.find(secret))
        if token is None:
            extra = event("access_refused", peer, client=peer, path="pg")
            _LOG.warning("a token that is not valid came from %s, for pg", peer, extra=extra)
            await asyncio.sleep(_PAUSE)
            raise UnauthorizedError(
                "the token is not valid", hint="give a token of this server as the password"
            )
        caller = Caller(token.name, scopes_of(token), partial(self._tokens.find_hash, token.hash))
        require_scope(caller.scopes, Scope.READ)
        return caller
