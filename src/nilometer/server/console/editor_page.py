"""The first page: write a statement, run it, watch its results."""

from __future__ import annotations

from nicegui import ui

from nilometer.server.console.access import Console
from nilometer.server.console.frame import page_frame


def add_editor_page(console: Console) -> None:
    """`/`."""

    @ui.page("/")
    async def editor_page() -> None:
        with page_frame("Query", console):
            ui.label("Query")
