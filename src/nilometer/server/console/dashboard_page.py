"""One dashboard: its panels, for a shared time range."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from nicegui import background_tasks, ui

from nilometer.errors import NilometerError, NotFoundError
from nilometer.log.clock import now_micros
from nilometer.model.dashboard import Dashboard, Panel
from nilometer.server.console.access import Console
from nilometer.server.console.address_state import address_with, keep_in_address, known_or
from nilometer.server.console.confirm import confirmed
from nilometer.server.console.dashboard_changes import DashboardChanges
from nilometer.server.console.dashboard_forms import dashboard_address, open_title_form
from nilometer.server.console.dashboards_page import DASHBOARDS
from nilometer.server.console.form_dialog import tell_done
from nilometer.server.console.frame import console_page, page_frame, static_address
from nilometer.server.console.panel_form import open_panel_form
from nilometer.server.console.panel_view import PanelView
from nilometer.server.console.query_actions import tell_problem
from nilometer.server.console.range_bar import REFRESH, USUAL, RangeBar
from nilometer.server.console.styles import add_styles
from nilometer.server.dashboards.freshness import read_marks
from nilometer.server.dashboards.time_range import TimeRange, read_range
from nilometer.server.scopes import Scope

_AT_ONCE: Final = 2
"""How many panels of a page are queried at the same time: others need answers, too."""
_LOOK_SECONDS: Final = 10.0
"""How soon a page shows changes by others."""


def add_dashboard_page(console: Console) -> None:
    """`/console/dashboards/{name}`."""

    @console_page("/console/dashboards/{name}")
    async def dashboard_page(name: str, refresh: str = "") -> None:
        add_styles()
        ui.add_head_html(f'<link rel="stylesheet" href="{static_address("dashboards.css")}">')
        parameters = ui.context.client.request.query_params
        at = read_range(*(parameters.get(one, "") for one in ("range", "from", "to")))
        with page_frame("Dashboards", console) as content:
            try:
                dashboard = await console.service.dashboards.find(name)
            except NilometerError as error:
                draw_missing(error)
                return
            DashboardView(console, dashboard, at, known_or(refresh, REFRESH, USUAL), content)


def draw_missing(error: NilometerError) -> None:
    """Show that there is no such dashboard, with a link back."""
    with ui.element("div").classes("nm-card nm-empty"):
        ui.label(error.message).classes("nm-title")
        if error.hint:
            ui.label(error.hint)
        ui.link("All dashboards", DASHBOARDS).classes("nm-link-button")


class DashboardView:
    """The content of the page, in the current place; it checks for new rows while it is open."""

    def __init__(
        self, console: Console, dashboard: Dashboard, at: TimeRange, every: str, content: ui.element
    ) -> None:
        self._console = console
        self._visitor = console.visitor()
        self._may_edit = self._visitor.may(Scope.WRITE)
        self._content = content
        self._dashboard = dashboard
        self._panes: list[PanelView] = []
        self._wake = asyncio.Event()
        self._looked = asyncio.get_running_loop().time()
        self._changes = DashboardChanges(console, lambda: self._dashboard, self._show_changed)
        with ui.element("div").classes("nm-dash-head"):
            self._title = ui.label(dashboard.title).props("role=heading aria-level=1")
            self._title.classes("nm-dash-title")
            self._draw_buttons()
        self._bar = RangeBar(at, every, self._ranged)
        self._grid = ui.element("ul").classes("nm-grid")
        with ui.element("div").classes("nm-card nm-empty") as self._empty:
            self._draw_empty()
        self._draw_panels()
        running = background_tasks.create(self._run(), name=f"dashboard {dashboard.name}")
        if running is not None:
            ui.context.client.on_delete(running.cancel)

    # Checking for new rows

    async def _run(self) -> None:
        is_wanted = True
        while not self._content.is_deleted:
            self._wake.clear()
            began = asyncio.get_running_loop().time()
            try:
                await self._look_for_changes()
                if is_wanted or self._wake.is_set():
                    self._wake.clear()
                    await self._refresh()
            except NotFoundError as error:
                self._leave(error)
                return
            except NilometerError:  # the server is stopping, or the catalog is not responding
                pass
            seconds = self._bar.every
            took = asyncio.get_running_loop().time() - began
            try:
                async with asyncio.timeout(max(seconds or _LOOK_SECONDS, took)):
                    await self._wake.wait()
                is_wanted = True
            except TimeoutError:
                is_wanted = seconds > 0

    async def _refresh(self) -> None:
        """Let every panel show its current rows; one that fails shows its error."""
        marks = await read_marks(self._console.service)
        at = self._bar.range.at(now_micros())
        room = asyncio.Semaphore(_AT_ONCE)

        async def one(pane: PanelView) -> None:
            async with room:
                if not self._wake.is_set():
                    await pane.refresh(at, marks, is_live=self._bar.range.is_live)

        await asyncio.gather(*(one(pane) for pane in list(self._panes)))

    async def _look_for_changes(self) -> None:
        """Show changes that others made to the dashboard."""
        now = asyncio.get_running_loop().time()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        latest = await self._console.service.dashboards.find(self._dashboard.name)
        if latest.version != self._dashboard.version:
            await self._show_changed(latest)

    def _leave(self, error: NotFoundError) -> None:
        """Handle that the dashboard was deleted."""
        self._content.clear()
        with self._content:
            draw_missing(error)

    async def _ranged(self) -> None:
        keep_in_address(dashboard_address(self._dashboard.name), self._bar.address)
        for pane in self._panes:
            pane.forget()
        self._wake.set()

    # Drawing

    async def _show_changed(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._title.text = dashboard.title
        self._draw_panels()
        self._wake.set()

    def _draw_panels(self) -> None:
        """Panels that have not changed are kept, wherever they are now."""
        old: dict[Panel, list[PanelView]] = {}
        for pane in self._panes:
            old.setdefault(pane.panel, []).append(pane)
        self._panes = []
        for place, panel in enumerate(self._dashboard.panels):
            known = old.get(panel)
            if known:
                pane = known.pop(0)
            else:
                with self._grid:
                    changes = self._changes if self._may_edit else None
                    pane = PanelView(self._console, panel, self._bar, changes)
            pane.place = place
            pane.card.move(self._grid, place)
            self._panes.append(pane)
        for gone in (one for some in old.values() for one in some):
            gone.card.delete()
        self._empty.set_visibility(not self._panes)

    def _draw_empty(self) -> None:
        ui.icon("dashboard_customize").classes("nm-empty-icon")
        ui.label("This dashboard has no panels yet.").classes("nm-title")
        ui.label("A panel shows a query, a stream, or the answer to a SELECT over what is stored.")
        if self._may_edit:
            with ui.element("div").classes("nm-helped"):
                self._button("Add the first panel", "add", self._add, "nm-first", "unelevated")
                self._button("Suggest some", "auto_awesome", self._suggest, "nm-second", "flat")

    def _draw_buttons(self) -> None:
        if self._may_edit:
            self._button("Add panel", "add", self._add, "nm-first", "unelevated")
        with ui.button(icon="more_vert", color=None) as more:
            more.props('flat round dense aria-label="More of this dashboard"')
            with ui.menu().props("auto-close"):
                ui.menu_item("Copy link", self._copy_link)
                ui.menu_item("Export as JSON", self._export)
                if self._may_edit:
                    ui.menu_item("Change title", self._retitle)
                    ui.menu_item("Delete dashboard", self._delete)

    def _button(self, word: str, icon: str, do: Any, look: str, props: str) -> None:
        button = ui.button(word, icon=icon, on_click=do, color=None)
        button.classes(look).props(f"{props} no-caps")

    # Actions of buttons

    def _add(self) -> None:
        open_panel_form(self._console, None, self._bar.range, self._changes.add)

    async def _suggest(self) -> None:
        try:
            await self._changes.suggest()
        except NilometerError as error:
            tell_problem(error)

    def _retitle(self) -> None:
        open_title_form(self._dashboard.title, self._changes.retitle)

    def _export(self) -> None:
        text = json.dumps(self._dashboard.to_json(), indent=2, ensure_ascii=False)
        ui.download.content(text, f"{self._dashboard.name}.json", "application/json")

    def _copy_link(self) -> None:
        path = address_with(dashboard_address(self._dashboard.name), self._bar.address)
        ui.run_javascript(f"navigator.clipboard?.writeText(location.origin + {json.dumps(path)})")
        tell_done("The link is copied. Anyone with a token of scope read can open it.")

    async def _delete(self) -> None:
        name = self._dashboard.name
        meaning = "Its panels are deleted; the queries and streams that they show are kept."
        if not await confirmed(f"Delete {self._dashboard.title}?", meaning, "Delete it"):
            return
        try:
            await self._console.service.dashboards.remove(name, self._visitor.asker)
        except NilometerError as error:
            tell_problem(error)
            return
        ui.navigate.to(DASHBOARDS)
