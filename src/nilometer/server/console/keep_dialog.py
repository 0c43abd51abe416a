"""Asks for the name under which to keep a query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from nilometer.errors import NilometerError


class KeepDialog:
    """A dialog that closes once the query is kept, and otherwise says why it is not."""

    def __init__(self, keep: Callable[[str, str], Awaitable[None]]) -> None:
        self._keep = keep
        self._text = ""
        with ui.dialog() as self._dialog, ui.element("div").classes("nm-card nm-pad nm-dialog"):
            ui.label("Keep this query").classes("nm-title").props("role=heading aria-level=2")
            ui.label("It keeps running when you leave, and after a restart.").classes("nm-soft")
            self._name = ui.input("Name").props("outlined dense autofocus maxlength=60")
            self._name.on("keydown.enter", self._try)
            self._problem = ui.label().classes("nm-bad nm-small").props("role=alert")
            with ui.element("div").classes("nm-row nm-end"):
                ui.button("Cancel", color=None, on_click=self._dialog.close).props("flat no-caps")
                ui.button("Keep", color=None, on_click=self._try).classes("nm-first").props(
                    "unelevated no-caps"
                )

    def ask(self, text: str) -> None:
        """Open the dialog for a query with this text."""
        self._text = text
        self._problem.text = ""
        self._dialog.open()

    async def _try(self) -> None:
        try:
            await self._keep((self._name.value or "").strip(), self._text)
        except NilometerError as error:
            self._problem.text = error.message
        else:
            self._dialog.close()
