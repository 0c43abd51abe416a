"""Logging in with a token or a one-time link, and logging out: plain pages without scripts."""

from __future__ import annotations

import asyncio
import logging
from html import escape
from typing import Final
from urllib.parse import parse_qs

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from nilometer.model.events import event
from nilometer.server.access import client_of, tell_refused
from nilometer.server.console.access import COOKIE, session_of
from nilometer.server.console.guard import is_same_origin
from nilometer.server.console.plain_page import plain_page
from nilometer.server.sessions import Sessions

_LOG: Final = logging.getLogger("nilometer.access")
_MOST_BYTES: Final = 4096
_BODY: Final = """<h1>Nilometer</h1>
<p class="lead">A stream database for sensors</p>
{problem}
<form method="post" action="/login" autocomplete="off">
<input type="hidden" name="next" value="{wanted}">
<label for="token">Access token</label>
<input id="token" name="token" type="password" placeholder="nm_…" required autofocus
 spellcheck="false" autocapitalize="off" autocomplete="off">
<button type="submit">Log in</button>
</form>
<p class="hint">The server printed the first token when it started.
More are made by <code>nilometer tokens create</code>.</p>"""


def add_login(app: FastAPI, sessions: Sessions) -> None:
    """`/login` and `/logout`."""

    @app.get("/login", include_in_schema=False)
    async def look(request: Request) -> Response:
        address = _safe_path(request.query_params.get("next", ""))
        code = request.query_params.get("code")
        if code is None:
            return _page(address)
        session = sessions.redeem(code)
        if session is None:
            tell_refused(request, "a login by a link that is used or too old was refused")
            return _page(address, "This link has already been used, or has expired.")
        _tell_login(request, sessions.asker(session).name)
        return _let_in(request, session, address)

    @app.post("/login", include_in_schema=False)
    async def enter(request: Request) -> Response:
        form = await _read_form(request)
        address = _safe_path(form.get("next", ""))
        if not is_same_origin(request):
            tell_refused(request, "a login from another site was refused")
            return _page(address, "This form was sent by another site.")
        session = await asyncio.to_thread(sessions.open, form.get("token", "").strip())
        if session is None:
            tell_refused(request, "a login with a token that is not valid was refused")
            return _page(address, "This token is unknown, or has expired.")
        _tell_login(request, sessions.asker(session).name)
        return _let_in(request, session, address)

    @app.post("/logout", include_in_schema=False)
    async def leave(request: Request) -> Response:
        if is_same_origin(request):
            sessions.close(session_of(request.cookies))
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE)
        return answer


def _tell_login(request: Request, name: str) -> None:
    client = client_of(request)
    extra = event("login", client, client=client, token=name)
    _LOG.info("login to the console by %s, from %s", name, client, extra=extra)


def _page(address: str, problem: str = "") -> HTMLResponse:
    shown = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    body = _BODY.format(wanted=escape(address), problem=shown)
    return plain_page("Log in", body, 403 if problem else 200)


def _let_in(request: Request, session: str, address: str) -> Response:
    answer = RedirectResponse(address, 303, {"Cache-Control": "no-store"})
    secure = request.url.scheme == "https"
    # Lax, not Strict: a link to the console in a mail or chat should find the session.
    answer.set_cookie(COOKIE, session, httponly=True, samesite="lax", secure=secure)
    return answer


def _safe_path(address: str) -> str:
    """A page of the console; anything else becomes the first page, to lead nobody elsewhere."""
    return address if address.startswith("/console/") and "\\" not in address else "/"


async def _read_form(request: Request) -> dict[str, str]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            return {}
    return {name: values[0] for name, values in parse_qs(body.decode("latin-1")).items()}
