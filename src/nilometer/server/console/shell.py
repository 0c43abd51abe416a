"""The console as a part of the web application."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI
from nicegui import app as nicegui_app
from nicegui import ui

from nilometer.server.console.access import Console
from nilometer.server.console.added_page import add_page
from nilometer.server.console.alerts_page import add_alerts_page
from nilometer.server.console.dashboard_page import add_dashboard_page
from nilometer.server.console.dashboards_page import add_dashboards_page
from nilometer.server.console.deliveries_page import add_deliveries_page
from nilometer.server.console.download_dialog import add_downloads
from nilometer.server.console.editor_page import add_editor_page
from nilometer.server.console.frame import FOLDER
from nilometer.server.console.glossary_page import add_glossary_page
from nilometer.server.console.guard import ConsoleGuard
from nilometer.server.console.health_page import add_health_page
from nilometer.server.console.login import add_login
from nilometer.server.console.pages import ConsolePage
from nilometer.server.console.plain_page import STATIC
from nilometer.server.console.queries_page import add_queries_page
from nilometer.server.console.query_page import add_query_page
from nilometer.server.console.sensors_page import add_sensors_page
from nilometer.server.console.shared_look import SharedLook
from nilometer.server.console.stream_page import add_stream_page
from nilometer.server.console.tokens_page import add_tokens_page
from nilometer.server.service import Service
from nilometer.server.sessions import Sessions
from nilometer.server.tokens import Tokens

_AWAY: Final = 20.0
"""For how many seconds a page may be away before it is closed with all it watches.

A busy machine answers late: with less, pages were reloaded while someone looked at them.
"""


def add_console(
    app: FastAPI,
    service: Service,
    sessions: Sessions,
    tokens: Tokens,
    pages: tuple[ConsolePage, ...] = (),
) -> None:
    """Serve the console with an application; once per process, after all its other routes."""
    console = Console(service, sessions, tokens, pages)
    add_login(app, sessions)
    add_downloads(app, console)
    for page in pages:  # before our own static files, which take every address below theirs
        add_page(console, page)
    nicegui_app.add_static_files(STATIC, FOLDER)
    add_editor_page(console)
    add_queries_page(console)
    add_query_page(console)
    add_dashboards_page(console)
    add_dashboard_page(console)
    add_alerts_page(console)
    add_deliveries_page(console)
    add_tokens_page(console)
    add_glossary_page(console)
    look = SharedLook(console)
    add_sensors_page(console, look)
    add_stream_page(console, look)
    add_health_page(console, look)
    ui.run_with(
        app,
        title="Nilometer",
        favicon=FOLDER / "favicon.svg",
        tailwind=False,
        show_welcome_message=False,
        reconnect_timeout=_AWAY,
        message_history_length=1000,
    )
    mount = app.router.routes[-1]
    mount.app = ConsoleGuard(mount.app, app, sessions)  # type: ignore[attr-defined]
