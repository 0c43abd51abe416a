"""What can be done with a query from its page and from the list: start, stop, limit, drop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from nilometer.database.query_status import QueryPhase, QueryStatus
from nilometer.errors import NilometerError, in_one_line
from nilometer.server.console.access import Console
from nilometer.server.console.confirm import confirmed
from nilometer.server.console.form_dialog import tell_done
from nilometer.server.console.form_statements import written_name
from nilometer.server.console.limits_form import open_limits_form
from nilometer.server.scopes import Scope


class QueryActions:
    """Buttons for one query in the current place; those that make no sense now are hidden."""

    def __init__(self, console: Console, name: str, changed: Callable[[], Awaitable[None]]) -> None:
        self._console = console
        self._visitor = console.visitor()
        self._name = name
        self._changed = changed
        self._start = self._button("Start", "play_arrow", self._do_start)
        self._stop = self._button("Stop", "stop", self._do_stop)
        self._button("Limits", "tune", self._ask_limits)
        self._drop = self._button("Drop", "delete_outline", self._ask_to_drop)

    def show(self, status: QueryStatus) -> None:
        """Offer the actions that make sense in this phase."""
        runs = status.phase in (QueryPhase.RUNNING, QueryPhase.STALLED, QueryPhase.RESTARTING)
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
        await self._console.service.queries.start(self._name, self._visitor.asker)

    async def _end(self) -> None:
        await self._console.service.queries.stop(self._name, self._visitor.asker)

    async def _forget(self) -> None:
        await self._console.service.queries.drop(self._name, self._visitor.asker)

    async def _ask_to_drop(self) -> None:
        meaning = "Its results and all that it has kept are deleted. This cannot be undone."
        text = f"DROP QUERY {written_name(self._name)}"
        if await confirmed(f"Drop {self._name}?", meaning, "Drop it", text):
            await self._attempt(self._drop, self._forget)

    async def _ask_limits(self) -> None:
        try:
            status = await self._console.service.queries.status(self._name)
        except NilometerError as error:
            tell_problem(error)
            return
        open_limits_form(self._console, status, self._limited)

    async def _limited(self, message: str) -> None:
        tell_done(message)
        await self._changed()

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
    """Show for a while what went wrong."""
    ui.notify(in_one_line(error), type="negative", multi_line=True, close_button="Close")
