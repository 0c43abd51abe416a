"""Access to the console: pages and live connections only for visitors with a session."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlsplit

from fastapi import FastAPI
from nicegui import app as nicegui_app
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from nilometer.server.console.access import session_of
from nilometer.server.console.missing_page import missing_page, wants_page
from nilometer.server.console.plain_page import STATIC
from nilometer.server.sessions import Sessions

_OPEN: Final = ("/_nicegui/", f"{STATIC}/", "/favicon.ico")
"""Code and fonts that anyone may have; they contain no data."""
_LIVE: Final = "/_nicegui_ws/"
_PAGES: Final = "/console/"


class ConsoleGuard:
    """Runs before NiceGUI, after all routes of the API."""

    def __init__(self, inner: ASGIApp, app: FastAPI, sessions: Sessions) -> None:
        self.inner = inner
        self.app = app
        self.sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.inner(scope, receive, send)
            return
        path = scope["path"]
        if path.startswith(_OPEN):
            await self.inner(scope, receive, send)
        elif path.startswith(_LIVE):
            self._check_live(HTTPConnection(scope))
            await self.inner(scope, receive, send)
        elif scope["type"] == "http" and (path == "/" or path.startswith(_PAGES)):
            await self._page(scope, receive, send)
        else:
            await self._refuse_unknown(scope, receive, send)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._has_session(HTTPConnection(scope)):
            if any(one.matches(scope)[0] is Match.FULL for one in nicegui_app.routes):
                await self.inner(scope, receive, send)
            else:
                await self._refuse_unknown(scope, receive, send)
            return
        query = "" if scope["path"] == "/" else f"?next={quote(_address(scope))}"
        await RedirectResponse(f"/login{query}", 303)(scope, receive, send)

    def _check_live(self, connection: HTTPConnection) -> None:
        """A page of another site must not use the console with the visitor's cookie."""
        if not self._has_session(connection) or not is_same_origin(connection):
            raise HTTPException(403, "this connection needs a session of this console")

    def _has_session(self, connection: HTTPConnection) -> bool:
        return bool(self.sessions.scopes(session_of(connection.cookies)))

    async def _refuse_unknown(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what no route takes; the mount at / hides wrong methods from the router."""
        others = [one for one in self.app.router.routes if getattr(one, "app", None) is not self]
        if any(one.matches(scope)[0] is Match.PARTIAL for one in others):
            raise HTTPException(405)
        if scope["type"] != "http" or not wants_page(HTTPConnection(scope)):
            raise HTTPException(404)
        await missing_page(scope["path"])(scope, receive, send)


def _address(scope: Scope) -> str:
    """The requested address with its choices: a link leads to it after the login, too."""
    chosen = scope.get("query_string", b"").decode("latin-1")
    return f"{scope['path']}?{chosen}" if chosen else str(scope["path"])


def is_same_origin(connection: HTTPConnection) -> bool:
    """Whether a request comes from a page of this server, or from no page at all."""
    origin = connection.headers.get("origin")
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc == connection.headers.get("host")
    except ValueError:  # not a valid address
        return False
