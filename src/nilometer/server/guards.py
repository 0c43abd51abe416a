"""Checks on every request: its host, its length, and the headers of its response."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nilometer.errors import InputError, TooLargeError
from nilometer.server.error_shape import response_for, unforeseen
from nilometer.server.settings import ServerSettings

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})

_PAGES: Final = "; ".join(
    (
        "default-src 'self'",
        # Vue compiles the console's templates in the browser.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""Pages load nothing from other hosts, and send nothing there."""
_DATA: Final = "default-src 'none'; frame-ancestors 'none'"

_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def add_guards(app: FastAPI, settings: ServerSettings) -> None:
    """Wrap an application with the guards; the last one added is passed first."""
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes, within=settings.body_seconds)
    app.add_middleware(UnforeseenErrors)
    app.add_middleware(HostCheck, allowed=allowed_hosts(settings))
    app.add_middleware(SecurityHeaders, is_encrypted=settings.certificate is not None)


def allowed_hosts(settings: ServerSettings) -> frozenset[str] | None:
    """The names by which the server may be addressed; None: any.

    A page of another site can make its own name resolve to 127.0.0.1, and then send requests to
    this server from the visitor's browser. It cannot change the name in the header Host.
    """
    if settings.allowed_hosts:
        return frozenset(one.lower() for one in settings.allowed_hosts)
    if is_loopback(settings.host):
        return _LOOPBACK
    return None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    return host.lower() in _LOOPBACK or host.startswith("127.")


class HostCheck:
    """Refuses requests that address the server by another name."""

    def __init__(self, app: ASGIApp, allowed: Collection[str] | None) -> None:
        self.app = app
        self.allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self.allowed is None:
            await self.app(scope, receive, send)
            return
        hosts = [one.lower() for one in Headers(scope=scope).getlist("host")]
        # Of two names, a proxy may have checked the other one.
        if len(hosts) == 1 and {hosts[0], _without_port(hosts[0])} & set(self.allowed):
            await self.app(scope, receive, send)
            return
        error = InputError(
            "the server does not answer to this host name",
            hint="use the address that it printed; allowed_hosts in its configuration adds names",
        )
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": error.message})
            return
        await response_for(error)(scope, receive, send)


class BodyLimit:
    """Limits the size of a body and the time to read it, whatever its headers say."""

    def __init__(self, app: ASGIApp, max_bytes: int, within: float) -> None:
        self.app = app
        self.max_bytes = max_bytes
        self.within = within

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or int(length) > self.max_bytes:
            await response_for(self._too_large())(scope, receive, send)
            return
        counted = _Counted(receive, self.max_bytes, self.within)
        await self.app(scope, counted.receive, send)

    def _too_large(self) -> TooLargeError:
        return TooLargeError(
            "the request is too long", detail=f"at most {self.max_bytes} bytes are read"
        )


class _Counted:
    """The body of one request."""

    def __init__(self, receive: Receive, max_bytes: int, within: float) -> None:
        self._receive = receive
        self._left = max_bytes
        self._until = asyncio.get_running_loop().time() + within
        self._more = True

    async def receive(self) -> Message:
        if not self._more:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, "the body did not arrive in time") from None
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            self._more = message.get("more_body", False)
            if self._left < 0:
                raise HTTPException(413)
        return message


class SecurityHeaders:
    """Tells browsers what they must not do with a response."""

    def __init__(self, app: ASGIApp, is_encrypted: bool) -> None:
        self.app = app
        self.is_encrypted = is_encrypted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add(MutableHeaders(scope=message))
            await send(message)

        await self.app(scope, receive, sent)

    def _add(self, headers: MutableHeaders) -> None:
        for name, value in _ALWAYS.items():
            headers[name] = value
        is_page = headers.get("content-type", "").startswith("text/html")
        headers["Content-Security-Policy"] = _PAGES if is_page else _DATA
        if headers.get("content-type", "").startswith("application/json"):
            headers.setdefault("Cache-Control", "no-store")
        if self.is_encrypted:
            headers["Strict-Transport-Security"] = "max-age=31536000"


class UnforeseenErrors:
    """Answers unexpected errors with an id, never with a traceback."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = is_gone = False

        async def sent(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        async def received() -> Message:
            nonlocal is_gone
            message = await receive()
            is_gone = is_gone or message["type"] == "http.disconnect"
            return message

        try:
            await self.app(scope, received, sent)
        except Exception as error:
            if is_gone and _is_unanswered(error):
                return
            answer = unforeseen(error)
            if has_begun:
                raise  # the connection is cut: the response is incomplete
            await answer(scope, receive, send)


def _is_unanswered(error: Exception) -> bool:
    """Whether Starlette only reports that a client disconnected before the response."""
    return isinstance(error, RuntimeError) and str(error) == "No response returned."


def _without_port(host: str) -> str:
    """The name in the header Host; an IPv6 address keeps its brackets."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host
