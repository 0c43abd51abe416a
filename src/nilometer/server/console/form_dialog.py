"""A form: fields, the statement they produce, and a button that runs exactly that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.value_element import ValueElement

from nilometer.errors import NilometerError, in_one_line
from nilometer.server.console.access import Console
from nilometer.server.console.drawing import Drawing, shape
from nilometer.server.console.highlighted_sql import highlighted_sql

_EMPTY = "—"


class FormDialog:
    """A dialog in the current place; closes once its statement was run, else shows the error."""

    def __init__(
        self,
        console: Console,
        title: str,
        verb: str,
        write: Callable[[], str],
        done: Callable[[str], Awaitable[None]],
    ) -> None:
        """`write` returns the statement for the filled-in fields, or raises what is missing.

        `done` receives the database's message.
        """
        self._service = console.service
        self._visitor = console.visitor()
        self._write = write
        self._done = done
        self._text: str | None = None
        self._is_touched = False
        with ui.dialog() as self.dialog, ui.card().classes("nm-dialog nm-form-card"):
            ui.label(title).classes("nm-title").props("role=heading aria-level=2")
            self._fields = ui.element("div").classes("nm-fields")
            ui.label("This is what will be run:").classes("nm-small nm-soft")
            self._shown = Drawing(highlighted_sql(_EMPTY)).classes("nm-statement")
            self.extra = ui.element("div").classes("nm-extra")
            self._problem = ui.label().classes("nm-bad nm-small").props("role=alert")
            with ui.element("div").classes("nm-row nm-end"):
                ui.button("Cancel", color=None, on_click=self.dialog.close).props("flat no-caps")
                self._run = ui.button(verb, color=None, on_click=self._try)
                self._run.classes("nm-first").props("unelevated no-caps")
        self.dialog.on("hide", self.dialog.delete)

    @contextmanager
    def fields(self) -> Iterator[None]:
        """Build the fields inside this context; pass each to `watch`."""
        with self._fields:
            yield
        self.refresh()

    def watch(self, *fields: ValueElement[Any]) -> None:
        """Update the statement whenever one of these changes."""
        for one in fields:
            one.on_value_change(self._touch)

    def open(self) -> None:
        self.dialog.open()

    @property
    def text(self) -> str | None:
        """The statement that is shown; None: a field is missing."""
        return self._text

    def say(self, problem: str) -> None:
        """Show an error."""
        self._problem.text = problem

    def refresh(self) -> None:
        """Show the statement for the filled-in fields, or what is missing."""
        try:
            self._text = self._write()
        except NilometerError as error:
            self._text = None
            self._problem.text = in_one_line(error) if self._is_touched else ""
            self._shown.show(shape("p", "Nothing yet.", class_="nm-soft nm-small"))
        else:
            self._problem.text = ""
            self._shown.show(highlighted_sql(self._text))
        self._run.set_enabled(self._text is not None)

    def _touch(self) -> None:
        self._is_touched = True
        self.refresh()

    async def _try(self) -> None:
        if self._text is None:
            return
        self._run.props("loading")
        try:
            executed = await self._service.execute(self._text, self._visitor.asker)
        except NilometerError as error:
            self._problem.text = in_one_line(error)
            return
        finally:
            self._run.props(remove="loading")
        await self._done(executed.message or "done")
        self.dialog.close()


def tell_done(message: str) -> None:
    """Show for a while what was done."""
    ui.notify(message, type="positive", close_button="Close")
