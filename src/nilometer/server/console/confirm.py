"""Asks for confirmation before something that cannot be undone."""

from __future__ import annotations

from nicegui import ui

from nilometer.server.console.drawing import Drawing
from nilometer.server.console.highlighted_sql import highlighted_sql


async def confirmed(question: str, meaning: str, verb: str, statement: str | None = None) -> bool:
    """Whether the user confirms; the statement to be run is shown."""
    with ui.dialog() as dialog, ui.card().classes("nm-dialog"):
        ui.label(question).classes("nm-title").props("role=heading aria-level=2")
        ui.label(meaning)
        if statement is not None:
            Drawing(highlighted_sql(statement)).classes("nm-statement")
        with ui.element("div").classes("nm-row nm-end"):
            ui.button("Keep it", on_click=lambda: dialog.submit(False), color=None).props(
                "flat no-caps"
            )
            ui.button(verb, on_click=lambda: dialog.submit(True)).props("no-caps color=negative")
    is_confirmed = bool(await dialog)
    dialog.delete()
    return is_confirmed
