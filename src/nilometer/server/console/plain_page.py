"""Pages without scripts, for those who are not logged in, or are lost."""

from __future__ import annotations

from typing import Final

from nicegui import __version__ as nicegui_version
from starlette.responses import HTMLResponse

STATIC: Final = "/_console"
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="same-origin">
<title>{title} · Nilometer</title>
<link rel="icon" href="{static}/favicon.svg">
<link rel="stylesheet" href="/_nicegui/{nicegui}/static/fonts.css">
<link rel="stylesheet" href="{static}/login.css">
</head>
<body>
<main>
<img class="mark" src="{static}/favicon.svg" alt="" width="56" height="56">
{body}
</main>
</body>
</html>
"""


def plain_page(title: str, body: str, status: int) -> HTMLResponse:
    """A page of HTML that browsers do not cache."""
    text = _PAGE.format(static=STATIC, nicegui=nicegui_version, title=title, body=body)
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})
