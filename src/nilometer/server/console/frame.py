"""The frame of every console page: name, navigation, theme, connection, log out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from nicegui import Client, ui

from nilometer.server.console.access import Console
from nilometer.server.console.plain_page import STATIC
from nilometer.server.scopes import Scope

_SESSION_SECONDS: Final = 5.0
"""How soon a page is closed after its session has ended."""
THEME_COOKIE: Final = "nilometer_theme"
FOLDER: Final = Path(__file__).parent / "static"
_LEAVE_SECONDS: Final = 1.0
_BUILD_SECONDS: Final = 60.0
"""How long building a page may take; a busy server is slow, which is not an error."""
_PLACES: Final = (
    ("Query", "/", "terminal"),
    ("Queries", "/console/queries", "stacked_line_chart"),
    ("Dashboards", "/console/dashboards", "dashboard"),
    ("Sensors", "/console/sensors", "sensors"),
    ("Alerts", "/console/alerts", "notifications"),
    ("Deliveries", "/console/deliveries", "outbox"),
    ("Health", "/console/health", "monitor_heart"),
)
_FOR_ADMIN: Final = (("Tokens", "/console/tokens", "key"),)
_THEMES: Final = {
    "auto": ("brightness_auto", "follows your system"),
    "light": ("light_mode", "light"),
    "dark": ("dark_mode", "dark"),
}
_DARK: Final = {"auto": None, "light": False, "dark": True}


def console_page(address: str) -> ui.page:
    """A decorator that makes a function the console page at this address."""
    return ui.page(address, response_timeout=_BUILD_SECONDS)


@contextmanager
def page_frame(title: str, console: Console) -> Iterator[ui.element]:
    """Build a page's own content inside this context; its title is in the header and the tab."""
    _add_head(title)
    with ui.header(elevated=False).classes("nm-header"):
        with ui.element("a").props('href="#content"').classes("nm-skip"):
            ui.label("Skip to content")
        _draw_header(title, console)
    with ui.element("div").classes("nm-main").props("id=content tabindex=-1") as content:
        yield content
    with ui.element("nav").classes("nm-bottom").props('aria-label="Main, at the bottom"'):
        _draw_places(title, console)


def _add_head(title: str) -> None:
    ui.page_title(f"{title} · Nilometer")
    # Without a referrer, forms would not show that they come from here.
    ui.add_head_html('<meta name="referrer" content="same-origin">')
    ui.add_head_html(f'<link rel="stylesheet" href="{static_address("console.css")}">')
    ui.colors(primary="#0b7285", secondary="#5c7cfa", positive="#2b8a3e", negative="#c92a2a")


def static_address(file: str) -> str:
    """The address of one of our files; it changes with the content, so browsers may cache it."""
    return f"{STATIC}/{file}?{sha256((FOLDER / file).read_bytes()).hexdigest()[:8]}"


def _draw_header(title: str, console: Console) -> None:
    with ui.element("a").props('href="/" aria-label="Nilometer, first page"').classes("nm-name"):
        ui.element("img").props(f'src="{STATIC}/favicon.svg" alt="" width=28 height=28')
        ui.label("Nilometer")
    with ui.element("nav").classes("nm-top").props('aria-label="Main"'):
        _draw_places(title, console)
    ui.element("div").classes("nm-grow")
    with ui.element("span").classes("nm-live").props('role=status id="connection"'):
        ui.element("i")
        ui.label("live")
    _draw_theme_switch()
    _draw_log_out(console)
    visitor = console.visitor()

    client = ui.context.client

    def leave_when_ended() -> None:
        if visitor.has_ended:
            ui.navigate.to("/login")
            # A browser that stays receives nothing more anyway.
            asyncio.get_running_loop().call_later(_LEAVE_SECONDS, _close, client)

    ui.timer(_SESSION_SECONDS, leave_when_ended)


def _close(client: Client) -> None:
    """Close a page, whatever its browser does."""
    if not client.is_deleted:
        client.delete()


def _draw_places(title: str, console: Console) -> None:
    added = ((page.title, page.address, page.icon) for page in console.pages)
    own = _FOR_ADMIN if console.visitor().may(Scope.ADMIN) else ()
    for name, address, icon in (*_PLACES, *own, *added):
        here = ' aria-current="page"' if name == title else ""
        with ui.element("a").props(f'href="{address}"{here}').classes("nm-place"):
            ui.icon(icon)
            ui.label(name)


def _draw_theme_switch() -> None:
    cookies = ui.context.client.request.cookies
    cookie = cookies.get(THEME_COOKIE, "auto")
    chosen = cookie if cookie in _THEMES else "auto"
    dark = ui.dark_mode(_DARK[chosen])
    button = (
        ui.button(icon=_THEMES[chosen][0], color=None).props("flat round dense").classes("nm-tool")
    )

    def show(theme: str) -> None:
        icon, words = _THEMES[theme]
        button.props(f'icon={icon} aria-label="Theme: {words}. Change it"')
        tip.text = f"Theme: {words}"

    def turn() -> None:
        nonlocal chosen
        names = list(_THEMES)
        chosen = names[(names.index(chosen) + 1) % len(names)]
        dark.value = _DARK[chosen]
        show(chosen)
        ui.run_javascript(
            f"document.cookie='{THEME_COOKIE}={chosen};path=/;max-age=31536000;samesite=lax'"
        )

    with button:
        tip = ui.tooltip("")
    show(chosen)
    button.on_click(turn)


def _draw_log_out(console: Console) -> None:
    scopes = ", ".join(sorted(console.visitor().scopes))
    with ui.element("form").props('method=post action="/logout"').classes("nm-form"):
        button = ui.button(icon="logout", color=None).props("flat round dense type=submit")
        with button.classes("nm-tool").props('aria-label="Log out"'):
            ui.tooltip(f"Log out (your token allows: {scopes})")
