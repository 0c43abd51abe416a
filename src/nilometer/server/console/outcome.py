"""The outcome of a statement, shown below the editor: a sentence, rows, or a plan."""

from __future__ import annotations

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.server.console.drawing import shortened
from nilometer.server.console.live_elements import TABLE_ROWS, LiveTable
from nilometer.server.console.run_statement import Ran
from nilometer.server.console.table_rows import table_columns, table_rows
from nilometer.server.statement_runner import Executed


def show_heading(ran: Ran) -> None:
    """Say which of several statements this is."""
    with ui.element("div").classes("nm-bar nm-part"):
        ui.label(f"{ran.number} of {ran.count}").classes("nm-chip")
        text = shortened(" ".join(ran.text.split()), 160)
        ui.label(text).classes("nm-mono nm-soft nm-oneline nm-grow")


def show_failure(ran: Ran, error: NilometerError) -> None:
    """Say which statement failed, and what happened to the others."""
    with ui.element("div").classes("nm-problem nm-apart").props("role=alert"):
        ui.label(error.message).classes("nm-what")
        ui.label(outcome_of_others(ran.number, ran.count)).classes("nm-small nm-detail")


def outcome_of_others(failed: int, count: int) -> str:
    """What happened to the statements around one that failed.

    >>> outcome_of_others(2, 4), outcome_of_others(3, 3)
    ('Statement 1 was run; statements 3 to 4 were not.', 'Statements 1 to 2 were run.')
    >>> outcome_of_others(1, 2)
    'Statement 2 was not run.'
    """
    before, after = _several(1, failed - 1), _several(failed + 1, count)
    parts = [f"{before} run"] if before else []
    if after:
        parts.append(f"{after} not" if before else f"{after} not run")
    words = "; ".join(parts) + "."
    return words[:1].upper() + words[1:]


def _several(first: int, last: int) -> str:
    if last < first:
        return ""
    return f"statement {first} was" if first == last else f"statements {first} to {last} were"


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
    if cut or more or not done.message:
        text = f"{more}{count} rows{cut}"
        ui.label(text).classes("nm-bar nm-soft nm-small").props("role=status")
    table = LiveTable("Rows of the statement", "No rows.")
    await table.begin(table_columns(done.rows.schema), "No rows.")
    await table.replace(table_rows(done.rows.slice(0, TABLE_ROWS)), "No rows.")


def show_plan(text: str) -> None:
    """Draw the output of EXPLAIN here."""
    with ui.element("pre").classes("nm-text nm-mono").props('tabindex=0 aria-label="Plan"'):
        ui.label(text).classes("nm-plain")
