"""A page that an application adds to the console: its address, its style sheet, its frame."""

from __future__ import annotations

from hashlib import sha256

from nicegui import app as nicegui_app
from nicegui import ui

from nilometer.server.console.access import Console
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.page_results import PageResults
from nilometer.server.console.pages import ConsolePage
from nilometer.server.console.plain_page import STATIC
from nilometer.server.console.styles import add_styles


def add_page(console: Console, page: ConsolePage) -> None:
    """Serve a page at its address to visitors with a session."""
    style = _serve_style(page)

    @console_page(page.address)
    async def added_page() -> None:
        add_styles()
        with page_frame(page.title, console):
            if style is not None:
                ui.add_head_html(f'<link rel="stylesheet" href="{style}">')
            page.build(PageResults(console.service, console.visitor().asker.name))


def _serve_style(page: ConsolePage) -> str | None:
    """The address of a page's style sheet; it changes with the content."""
    if page.style is None:
        return None
    path = f"{STATIC}/pages/{page.name}.css"
    nicegui_app.add_static_file(local_file=page.style, url_path=path)
    return f"{path}?{sha256(page.style.read_bytes()).hexdigest()[:8]}"
