"""What a browser is shown at an address where nothing is: a plain page that leads back."""

from __future__ import annotations

from html import escape
from typing import Final

from nicegui import __version__ as nicegui_version
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse

STATIC: Final = "/_console"
_LONGEST: Final = 120
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Nothing here · Nilometer</title>
<link rel="icon" href="{static}/favicon.svg">
<link rel="stylesheet" href="/_nicegui/{nicegui}/static/fonts.css">
<link rel="stylesheet" href="{static}/login.css">
</head>
<body>
<main>
<img class="mark" src="{static}/favicon.svg" alt="" width="56" height="56">
<h1>There is no page here</h1>
<p class="lead">Nothing has the address <code>{path}</code>.
It may be misspelt, or what it showed was dropped.</p>
<nav class="ways" aria-label="Pages">
<a href="/">Write a query</a>
<a href="/console/queries">All queries</a>
<a href="/console/sensors">Sensors</a>
<a href="/docs">The API</a>
</nav>
</main>
</body>
</html>
"""


def wants_page(connection: HTTPConnection) -> bool:
    """Whether somebody looks with a browser; programs are answered as the API answers."""
    return "text/html" in connection.headers.get("accept", "")


def missing_page(path: str) -> HTMLResponse:
    """The page, with status 404."""
    shown = path if len(path) <= _LONGEST else path[:_LONGEST] + "…"
    text = _PAGE.format(static=STATIC, nicegui=nicegui_version, path=escape(shown))
    return HTMLResponse(text, 404, {"Cache-Control": "no-store"})
