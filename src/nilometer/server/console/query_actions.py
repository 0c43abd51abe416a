"""What can be done with a query from its page and from the list: start, stop, drop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from nilometer.database.query_status import QueryPhase, QueryStatus
from nilometer.errors import NilometerError, in_one_line
from nilometer.server.console.access import Console
from nilometer.server.scopes import Scope


class QueryActions:
    """Buttons for one query in the current place; those that make no sense now are not shown."""

    def __init__(self, console: Console, name: str, changed: Callable[[], Awaitable[None]]) -> None:
        self._console = console
        self._visitor = console.visitor()
        self._name = name
        self._changed = changed
        self._start = self._button("Start", "play_arrow", self._do_start)
        self._stop = self._button("Stop", "stop", self._do_stop)
        self._drop = self._button("Drop", "delete_outline", self._ask_to_drop)

    def show(self, status: QueryStatus) -> None:
        """Offer what makes sense in this phase."""
        runs = status.phase in (QueryPhase.RUNNING, QueryPhase.RESTARTING)
        self._start.set_visibility(not runs)
        self._stop.set_visibility(runs)

    def _button(self, word: str, icon: str, do: Callable[[], Awaitable[None]]) -> ui.button:
        button = ui.button(word, icon=icon, on_click=do, color=None).props("no-caps flat dense")
        button.classes("nm-second nm-action")
        button._props["aria-label"] = f"{word} {self._name}"
        if (why := self._visitor.refusal(Scope.WRITE)) is not None:
            button.disable()
            with button:
                ui.tooltip(why)
        return button

    async def _do_start(self) -> None:
        await self._attempt(self._start, self._begin)

    async def _do_stop(self) -> None:
        await self._attempt(self._stop, self._end)

    async def _begin(self) -> None:
        await self._console.service.start_query(self._name, self._visitor.asker)

    async def _end(self) -> None:
        await self._console.service.stop_query(self._name, self._visitor.asker)

    async def _forget(self) -> None:
        await self._console.service.drop_query(self._name, self._visitor.asker)

    async def _ask_to_drop(self) -> None:
        with ui.dialog() as dialog, ui.card().classes("nm-dialog"):
            ui.label(f"Drop {self._name}?").classes("nm-title")
            ui.label("Its results and all that it has kept are deleted. This cannot be undone.")
            with ui.element("div").classes("nm-row nm-end"):
                ui.button("Keep it", on_click=lambda: dialog.submit(False), color=None)
                ui.button("Drop it", on_click=lambda: dialog.submit(True)).props(
                    "no-caps color=negative"
                )
        if await dialog:
            await self._attempt(self._drop, self._forget)
        dialog.delete()

    async def _attempt(self, button: ui.button, do: Callable[[], Awaitable[None]]) -> None:
        """Do something that may take a second, or say why it could not be done."""
        button.props("loading")
        try:
            await do()
        except NilometerError as error:
            tell_problem(error)
        finally:
            button.props(remove="loading")
        await self._changed()


def tell_problem(error: NilometerError) -> None:
    """Say for a while what went wrong."""
    ui.notify(in_one_line(error), type="negative", multi_line=True, close_button="Close")
