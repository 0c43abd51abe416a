"""One panel of a dashboard: its head, its content, and what can be done with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.model.dashboard import Panel, PanelKind, SourceKind
from nilometer.server.console.access import Console
from nilometer.server.console.confirm import confirmed
from nilometer.server.console.dashboard_changes import DashboardChanges
from nilometer.server.console.panel_body import PanelBody
from nilometer.server.console.panel_form import open_panel_form
from nilometer.server.console.query_actions import tell_problem
from nilometer.server.console.query_list import query_address
from nilometer.server.console.range_bar import RangeBar
from nilometer.server.dashboards.freshness import Marks, mark_of
from nilometer.server.dashboards.panel_picture import read_panel
from nilometer.server.dashboards.time_range import Interval

_MOST_MOVES: Final = 15
"""How often in a row a chart without new rows only moves on before rows are read again."""
_MOST_WAITS: Final = 4
"""The same for panels that do not move."""


class PanelView:
    """A card in the current place."""

    def __init__(
        self, console: Console, panel: Panel, bar: RangeBar, changes: DashboardChanges | None
    ) -> None:
        """`bar` chooses the range of the page. `changes` None: the visitor may change nothing."""
        self._console = console
        self._visitor = console.visitor()
        self._bar = bar
        self._changes = changes
        self._mark: tuple[int, ...] | None = None
        self._moves = 0
        self.panel = panel
        self.place = 0
        with ui.element("li").classes("nm-card nm-pane") as self.card:
            self.card.style(f"--nm-width: {panel.width}")
            with ui.element("div").classes("nm-pane-head"):
                ui.label(panel.title).props("role=heading aria-level=2").classes("nm-pane-title")
                ui.element("div").classes("nm-grow")
                self._draw_menu()
            self._body = PanelBody(panel.kind, panel.title, bar.choose)

    def forget(self) -> None:
        """Read everything again at the next refresh."""
        self._mark = None

    async def refresh(self, at: Interval, marks: Marks, *, is_live: bool) -> None:
        """Show the current picture, if it can differ from the one shown."""
        mark = mark_of(self.panel.source, marks)
        if mark is not None and mark == self._mark:
            limit = _MOST_MOVES if self.panel.kind is PanelKind.LINE else _MOST_WAITS
            if not is_live or self._moves < limit:
                self._moves += 1
                if is_live:
                    self._body.move(at)
                return
        self._mark, self._moves = mark, 0
        try:
            picture = await read_panel(self._console.service, self.panel, at, self._visitor.asker)
        except NilometerError as error:
            self._mark = None
            if not self.card.is_deleted:
                self._body.fail(error)
            return
        if not self.card.is_deleted:
            await self._body.show(picture)

    def _draw_menu(self) -> None:
        changes, source = self._changes, self.panel.source
        if changes is None and source.kind is SourceKind.SELECT:
            return
        with ui.button(icon="more_vert", color=None) as more:
            more.props("flat round dense size=sm")
            more._props["aria-label"] = f"More of {self.panel.title}"
            with ui.menu().props("auto-close"):
                if source.kind is SourceKind.QUERY:
                    ui.menu_item("Open the query", lambda: _go(query_address(source.text)))
                if source.kind is SourceKind.STREAM:
                    ui.menu_item("Open the stream", lambda: _go(f"/console/streams/{source.text}"))
                if changes is not None:
                    self._draw_changes(changes)

    def _draw_changes(self, changes: DashboardChanges) -> None:
        ui.menu_item("Edit", self._edit)
        ui.menu_item("Move earlier", lambda: self._try(lambda: changes.move(self.place, -1)))
        ui.menu_item("Move later", lambda: self._try(lambda: changes.move(self.place, 1)))
        ui.menu_item("Duplicate", lambda: self._try(lambda: changes.copy(self.place)))
        ui.menu_item("Delete", self._delete)

    def _edit(self) -> None:
        changes = self._changes
        assert changes is not None

        async def change(panel: Panel) -> None:
            await changes.change(self.place, panel)

        open_panel_form(self._console, self.panel, self._bar.range, change)

    async def _delete(self) -> None:
        changes = self._changes
        assert changes is not None
        meaning = "What it shows stays where it is."
        if await confirmed(f"Delete the panel {self.panel.title}?", meaning, "Delete it"):
            await self._try(lambda: changes.remove(self.place))

    async def _try(self, do: Callable[[], Awaitable[None]]) -> None:
        try:
            await do()
        except NilometerError as error:
            tell_problem(error)


def _go(address: str) -> None:
    ui.navigate.to(address)
