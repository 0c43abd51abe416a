"""HTTP connections that slow clients cannot hold open, or use to exhaust memory."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nilometer.errors import InputError, LimitError, NilometerError
from nilometer.server.error_shape import RETRY_SECONDS, shape_of, status_of
from nilometer.server.settings import ServerSettings

MOST_HEAD_BYTES: Final = 64 << 10
_PHRASES: Final = {400: "Bad Request", 429: "Too Many Requests"}


def protocol_for(settings: ServerSettings) -> type[HttpToolsProtocol]:
    """Uvicorn's protocol, with the limits of a server."""

    class Protocol(BoundedProtocol):
        head_seconds = settings.header_seconds
        max_connections = settings.max_connections

    return Protocol


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections that do not send a valid request head in time and within 64 KiB."""

    head_seconds: ClassVar[float]
    max_connections: ClassVar[int]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._patience: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._refuse(
                LimitError(
                    f"{self.max_connections} connections are open already",
                    hint="try again in a few seconds",
                )
            )
            return
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._is_between_requests:
            self._wait_for_head()
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_between_requests and self._head_bytes > MOST_HEAD_BYTES:
            self._refuse(InputError("the head of the request is too long"))

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._head_bytes = 0
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._refuse(InputError(msg.rstrip(".").lower().replace("http", "HTTP")))

    @property
    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_head(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()

    def _refuse(self, error: NilometerError) -> None:
        """Send an error in the common shape, and close the connection."""
        self._stop_waiting()
        if self.transport.is_closing():
            return
        body = json.dumps(shape_of(error)).encode()
        status = status_of(error)
        lines = [
            f"HTTP/1.1 {status} {_PHRASES[status]}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
            *([f"Retry-After: {RETRY_SECONDS}"] if status == 429 else []),
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()
