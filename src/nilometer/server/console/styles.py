"""The style sheet of the pages that draw."""

from __future__ import annotations

from nicegui import ui

from nilometer.server.console.frame import static_address


def add_styles() -> None:
    """Let the page being built use the classes of drawings."""
    ui.add_head_html(f'<link rel="stylesheet" href="{static_address("drawings.css")}">')
