"""A form for the limits of one query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from nicegui import ui

from nilometer.database.limits import shown_size
from nilometer.database.query_status import OnError, QueryStatus
from nilometer.model.time import duration_words
from nilometer.server.console.access import Console
from nilometer.server.console.form_dialog import FormDialog
from nilometer.server.console.form_statements import alter_limits

_WORDS: Final = {
    OnError.SKIP.value: "it is left out, as a dead letter",
    OnError.STOP.value: "the query is stopped",
}


def limits_as_text(status: QueryStatus) -> dict[str, str]:
    """The limits of a query as its form has them; empty: no limit."""
    limits = status.limits
    return {
        "results": "" if limits.results is None else shown_size(limits.results),
        "state": "" if limits.state is None else shown_size(limits.state),
        "history": "" if limits.history is None else duration_words(limits.history),
        "shed": "" if limits.shed is None else str(limits.shed),
        "shed_by": limits.shed_by or "",
        "on_error": (limits.on_error or OnError.SKIP).value,
    }


def changed_limits(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """The limits that differ from before.

    >>> changed_limits({"results": "", "state": "1 GB"}, {"results": "2 GB", "state": "1 GB"})
    {'results': '2 GB'}
    """
    return {name: value for name, value in after.items() if value.strip() != before[name]}


def open_limits_form(
    console: Console, status: QueryStatus, done: Callable[[str], Awaitable[None]]
) -> None:
    """Ask for new limits of a query."""
    before = limits_as_text(status)

    def write() -> str:
        after = {name: str(field.value or "") for name, field in fields.items()}
        return alter_limits(status.name, changed_limits(before, after))

    form = FormDialog(console, f"Limits of {status.name}", "Change them", write, done)
    with form.fields():
        fields: dict[str, ui.input | ui.select] = {
            "results": ui.input("Results on disk, at most", placeholder="no limit, or 2 GB"),
            "state": ui.input("State, at most", placeholder="no limit, or 200 MB"),
            "history": ui.input("Results are kept for", placeholder="forever, or 7 days"),
            "shed": ui.input("Rows are shed when more wait than", placeholder="never, or 1000000"),
            "shed_by": ui.input("Those worth least are shed, by", placeholder="all the same"),
            "on_error": ui.select(_WORDS, label="A row that cannot be computed"),
        }
        for name, field in fields.items():
            field.value = before[name]
            field.props("dense outlined stack-label")
        form.watch(*fields.values())
    form.open()
