"""What a statement did, shown below the editor: a sentence, rows, or a plan."""

from __future__ import annotations

from nicegui import ui

from nilometer.server.console.live_elements import TABLE_ROWS, LiveTable
from nilometer.server.console.table_rows import table_columns, table_rows
from nilometer.server.service import Executed


async def show_executed(done: Executed) -> None:
    """Draw the outcome of a statement here."""
    if done.message:
        with ui.element("div").classes("nm-bar nm-done").props("role=status"):
            ui.icon("check_circle").classes("nm-good")
            ui.label(done.message)
    if done.rows is None:
        return
    if not done.rows.num_rows:
        ui.label("No rows.").classes("nm-empty")
        return
    count = done.rows.num_rows
    cut = f", of which the first {TABLE_ROWS} are shown" if count > TABLE_ROWS else ""
    more = "more than " if done.is_cut else ""
    ui.label(f"{more}{count} rows{cut}").classes("nm-bar nm-soft nm-small").props("role=status")
    table = LiveTable("Rows of the statement", "No rows.")
    await table.begin(table_columns(done.rows.schema))
    await table.replace(table_rows(done.rows.slice(0, TABLE_ROWS)))


def show_plan(text: str) -> None:
    """Draw what EXPLAIN says here."""
    with ui.element("pre").classes("nm-text nm-mono").props('tabindex=0 aria-label="Plan"'):
        ui.label(text).classes("nm-plain")
