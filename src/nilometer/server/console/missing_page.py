"""The page a browser gets at an address that does not exist: plain, with a link back."""

from __future__ import annotations

from html import escape
from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse

from nilometer.server.console.plain_page import plain_page

_LONGEST: Final = 120
_BODY: Final = """<h1>There is no page here</h1>
<p class="lead">Nothing has the address <code>{path}</code>.
It may be misspelt, or what it showed was dropped.</p>
<nav class="ways" aria-label="Pages">
<a href="/">Write a query</a>
<a href="/console/queries">All queries</a>
<a href="/console/sensors">Sensors</a>
<a href="/docs">The API</a>
</nav>"""


def wants_page(connection: HTTPConnection) -> bool:
    """Whether this is a browser; programs are answered as the API answers."""
    return "text/html" in connection.headers.get("accept", "")


def missing_page(path: str) -> HTMLResponse:
    """The page, with status 404."""
    shown = path if len(path) <= _LONGEST else path[:_LONGEST] + "…"
    return plain_page("Nothing here", _BODY.format(path=escape(shown)), 404)
