"""One connection that uses PostgreSQL's protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from nilometer import errors
from nilometer.errors import ClosedError, InputError, NilometerError, NotFoundError
from nilometer.server.access import Caller
from nilometer.server.pg import wire
from nilometer.server.pg.copy_lines import copy_lines, header_line
from nilometer.server.pg.error_messages import CancelledError, error_message
from nilometer.server.pg.prepared import Portal, PreparedStatements, has_rows, type_oids
from nilometer.server.pg.statements import (
    Command,
    CopyOut,
    StatementAnswer,
    Statements,
    read_command,
    read_commands,
)
from nilometer.server.pg.values import encoded_rows, shapes_of
from nilometer.server.results.chunk import Chunk
from nilometer.server.results.events import End, tell
from nilometer.server.results.phases import Phases
from nilometer.server.scopes import Scope

if TYPE_CHECKING:
    from nilometer.server.service import Service

_LOG: Final = logging.getLogger("nilometer.pg")
_FOLLOWED_ROWS: Final = 1000


@dataclass
class Session:
    """A client that has authenticated with its token."""

    service: Service
    statements: Statements
    caller: Caller
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    prepared: PreparedStatements
    _skips: bool = False
    """Whether messages are skipped until the next Sync, after an error."""
    _status: bytes = b"I"
    _cancel: Callable[[], None] | None = None
    _following: asyncio.Task[None] | None = None
    _cancelled: bool = False

    def cancel(self) -> None:
        """Cancel the running statement, if any."""
        self._cancelled = True
        if self._cancel is not None:
            self._cancel()
        if self._following is not None:
            self._following.cancel()

    async def run(self) -> None:
        """Answer until the client disconnects."""
        try:
            await self._run_messages()
        finally:
            self.prepared.close_portals()

    async def _run_messages(self) -> None:
        max_bytes = self.service.settings.max_body_bytes
        await self._ready()
        while True:
            kind, body = await wire.read_message(self.reader, max_bytes)
            if kind == b"X":
                return
            reason = self.caller.refusal(Scope.READ)
            if reason is None and self.service.is_closing:
                reason = ClosedError("the server is stopping")
            if reason is not None:
                self._send_error(reason, fatal=True)
                await self._flush()
                return
            await self._take(kind, body)

    async def _take(self, kind: bytes, body: wire.Body) -> None:
        if kind == b"S":
            self._skips = False
            if self._status == b"I":
                self.prepared.close_portals()  # they last as long as a transaction
            await self._ready()
            return
        if self._skips:
            return
        try:
            async with self._errors_sent():
                await self._do(kind, body)
        except _AnsweredError:
            if kind == b"Q":
                await self._ready()
            else:
                self._skips = True

    async def _do(self, kind: bytes, body: wire.Body) -> None:
        match kind:
            case b"Q":
                await self._simple(body.text())
            case b"P":
                await self._parse(body)
            case b"B":
                self.prepared.bind(body)
                self.writer.write(wire.BOUND)
            case b"D":
                await self._describe(body.byte(), body.text())
            case b"E":
                await self._execute(body.text(), body.int32())
            case b"C":
                self.prepared.close(body.byte(), body.text())
                self.writer.write(wire.CLOSED)
            case b"H":
                await self._flush()
            case b"d" | b"c" | b"f":
                pass  # what is left of a refused COPY
            case _:
                raise wire.ProtocolError(f"unknown message type {kind!r}")

    # The simple protocol

    async def _simple(self, text: str) -> None:
        commands = await self._read(text)
        if not commands:
            self.writer.write(wire.EMPTY_QUERY)
        for one in commands:
            await self._run(one)
        await self._ready()

    async def _read(self, text: str) -> list[Command]:
        return await self.service.read_as(text, self.caller, read_commands)

    async def _run(self, command: Command) -> None:
        if command.copy is not None:
            await self._copy(command.copy)
            return
        if command.parameters:
            raise InputError("there is no value for $1")
        answer = await self._answer(command, ())
        self._notice(answer)
        if answer.rows is not None:
            shapes = shapes_of(answer.rows.schema)
            self.writer.write(wire.row_description(shapes))
            for values in encoded_rows(answer.rows, shapes):
                self.writer.write(wire.data_row(values, len(shapes)))
                await self._drain()
        self._finish(command, answer.tag)

    async def _answer(self, command: Command, values: Sequence[object]) -> StatementAnswer:
        self._cancelled = False

        def cancelling(end: Callable[[], None]) -> None:
            self._cancel = end

        try:
            return await self.statements.answer(command, values, cancelling)
        except NilometerError:
            if self._cancelled:
                raise CancelledError("the statement was cancelled") from None
            raise
        finally:
            self._cancel = None

    def _finish(self, command: Command, tag: str) -> None:
        self.writer.write(wire.complete(tag))
        if command.tag in ("BEGIN", "START TRANSACTION"):
            self._status = b"T"
        elif command.tag in ("COMMIT", "ROLLBACK"):
            self._status = b"I"

    # The extended protocol

    async def _parse(self, body: wire.Body) -> None:
        name, text = body.text(), body.text()
        oids = [body.uint32() for _ in range(body.count())]
        self.prepared.prepare(name, text, await self._read(text), oids)
        self.writer.write(wire.PARSED)

    async def _describe(self, kind: bytes, name: str) -> None:
        if kind == b"S":
            prepared = self.prepared.find(name)
            self.writer.write(wire.parameter_description(type_oids(prepared)))
            command = prepared.command
            schema = None if command is None else await self.statements.describe(command)
            if schema is None:
                self.writer.write(wire.NO_DATA)
            else:
                self.writer.write(wire.row_description(shapes_of(schema)))
            return
        portal = self.prepared.find_portal(name)
        rows = (await self._answered(portal)).rows if has_rows(portal) else None
        if rows is None:
            self.writer.write(wire.NO_DATA)
        else:
            self.writer.write(wire.row_description(shapes_of(rows.schema, portal.formats)))

    async def _execute(self, name: str, max_rows: int) -> None:
        portal = self.prepared.find_portal(name)
        command = portal.prepared.command
        if command is None:
            self.writer.write(wire.EMPTY_QUERY)
            return
        if command.copy is not None:
            await self._copy(command.copy)
            return
        answer = await self._answered(portal)
        self._notice(answer)
        if answer.rows is not None:
            shapes = shapes_of(answer.rows.schema, portal.formats)
            if portal.left is None:
                portal.left = encoded_rows(answer.rows, shapes)
            for sent, values in enumerate(portal.left, 1):
                self.writer.write(wire.data_row(values, len(shapes)))
                await self._drain()
                if sent == max_rows:
                    self.writer.write(wire.SUSPENDED)
                    return
            portal.left = iter(())
            portal.answer = replace(answer, rows=answer.rows.schema.empty_table())
        self._finish(command, answer.tag)

    async def _answered(self, portal: Portal) -> StatementAnswer:
        if portal.answer is not None:
            return portal.answer
        assert portal.prepared.command is not None
        answer = await self._answer(portal.prepared.command, portal.values)
        self.prepared.hold(portal, answer)
        return answer

    # COPY

    async def _copy(self, copy: CopyOut) -> None:
        if copy.follows is not None:
            await self._follow(copy, copy.follows)
            return
        command, *more = await self._read(copy.query) or [read_command("")]
        if more or command.tree is None or command.parameters:
            raise InputError("COPY takes a query", hint="COPY (SELECT …) TO STDOUT")
        rows = (await self._answer(command, ())).rows
        assert rows is not None
        self._begin_copy(rows.schema, copy)
        for line in copy_lines(rows, copy):
            self.writer.write(wire.copy_data(line))
            await self._drain()
        self.writer.write(wire.COPY_DONE)
        self.writer.write(wire.complete(f"COPY {len(rows)}"))

    def _begin_copy(self, schema: pa.Schema, copy: CopyOut) -> None:
        self.writer.write(wire.copy_out(len(schema.names)))
        if copy.has_header:
            self.writer.write(wire.copy_data(header_line(schema.names, copy)))

    async def _follow(self, copy: CopyOut, name: str) -> None:
        """Send results as they arrive, until the client cancels or disconnects."""
        self._cancelled = False
        self._following = asyncio.ensure_future(self._send_results(copy, name))
        gone = asyncio.ensure_future(self._until_gone())
        try:
            await asyncio.wait({self._following, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (self._following, gone):
                one.cancel()
            with suppress(asyncio.CancelledError):
                await gone
        following, self._following = self._following, None
        try:
            await following
        except asyncio.CancelledError:
            if not self._cancelled:
                raise ConnectionResetError from None
            raise CancelledError("following was cancelled") from None
        self.writer.write(wire.COPY_DONE)
        self.writer.write(wire.complete("COPY 0"))

    async def _until_gone(self) -> None:
        """Return when the client has disconnected: it sends nothing while it follows."""
        while not self.reader.at_eof():
            await asyncio.sleep(0.5)

    async def _send_results(self, copy: CopyOut, name: str) -> None:
        service = self.service
        known = (await service.queries.status(name)).name
        results = await service.look(lambda: service.queries.results(known))
        phases = Phases(service.queries.status)
        with ExitStack() as taken:
            taken.enter_context(service.followers.one(results.name, self.caller.name))
            offset = await results.oldest()
            self._begin_copy(results.schema, copy)
            await self._flush()
            telling = tell(
                results,
                offset,
                partial(phases.of, known),
                max_rows=_FOLLOWED_ROWS,
                ending=self._ending,
            )
            try:
                async for event in telling:
                    if isinstance(event, Chunk):
                        for line in copy_lines(event.rows, copy):
                            self.writer.write(wire.copy_data(line))
                        await self._flush()
                    elif isinstance(event, End) and not isinstance(event.error, NotFoundError):
                        raise event.error
            finally:
                await telling.aclose()

    def _ending(self) -> NilometerError | None:
        if self.service.is_closing:
            return ClosedError("the server is stopping")
        return self.caller.refusal(Scope.READ)

    # Sending

    def _notice(self, answer: StatementAnswer) -> None:
        if answer.notice:
            fields = {b"S": "NOTICE", b"V": "NOTICE", b"C": "00000", b"M": answer.notice}
            self.writer.write(wire.error_response(fields, notice=True))

    @asynccontextmanager
    async def _errors_sent(self) -> AsyncIterator[None]:
        try:
            yield
        except wire.ProtocolError:
            raise
        except NilometerError as error:
            self._send_error(error)
            raise _AnsweredError from None
        except (ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
            raise
        except Exception:
            _LOG.exception("a statement failed")
            self._send_error(
                errors.InternalError("an internal error occurred; see the server's log")
            )
            raise _AnsweredError from None

    def _send_error(self, error: NilometerError, *, fatal: bool = False) -> None:
        self.writer.write(error_message(error, fatal=fatal))

    async def _ready(self) -> None:
        self.writer.write(wire.ready(self._status))
        await self._flush()

    async def _drain(self) -> None:
        """Wait while the client reads nothing, so that little is held for it."""
        transport = self.writer.transport
        if transport.get_write_buffer_size() > 1 << 18:
            await self._flush()

    async def _flush(self) -> None:
        async with asyncio.timeout(300):
            await self.writer.drain()


class _AnsweredError(Exception):
    """The client has already received the error."""
