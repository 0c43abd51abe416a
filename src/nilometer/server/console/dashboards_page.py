"""All dashboards, and a form for new ones."""

from __future__ import annotations

from typing import Final

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.model.dashboard import Dashboard
from nilometer.server.console.access import Console
from nilometer.server.console.dashboard_forms import (
    dashboard_address,
    open_import_form,
    open_new_form,
)
from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.server.console.frame import console_page, page_frame, static_address
from nilometer.server.console.styles import add_styles
from nilometer.server.console.wording import instant_words
from nilometer.server.scopes import Scope

DASHBOARDS: Final = "/console/dashboards"
_EVERY: Final = 5.0


def add_dashboards_page(console: Console) -> None:
    """`/console/dashboards`."""

    @console_page(DASHBOARDS)
    async def dashboards_page() -> None:
        add_styles()
        ui.add_head_html(f'<link rel="stylesheet" href="{static_address("dashboards.css")}">')
        with page_frame("Dashboards", console):
            shown = DashboardList(console)
        await shown.refresh()
        ui.timer(_EVERY, shown.refresh, immediate=False)


class DashboardList:
    """The list, in the current place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._may_edit = console.visitor().may(Scope.WRITE)
        with ui.element("div").classes("nm-row") as self._tools:
            self._count = ui.label().classes("nm-soft").props("role=status")
            ui.element("div").classes("nm-grow")
            if self._may_edit:
                self._button("Import", "upload", self._import, "nm-second", "flat")
                self._button("New dashboard", "add", self._new, "nm-first", "unelevated")
        self._list = Drawing(shape("ul"))
        with ui.element("div").classes("nm-card nm-empty") as self._empty:
            self._draw_empty()
        self._empty.set_visibility(False)

    async def refresh(self) -> None:
        """Show the current dashboards."""
        try:
            dashboards = await self._console.service.dashboards.all()
        except NilometerError:  # the server is stopping
            return
        self._empty.set_visibility(not dashboards)
        self._tools.set_visibility(bool(dashboards))
        self._count.text = (
            "1 dashboard" if len(dashboards) == 1 else f"{len(dashboards)} dashboards"
        )
        self._list.show(shape("ul", *map(_card, dashboards), class_="nm-boards"))

    def _draw_empty(self) -> None:
        ui.icon("dashboard").classes("nm-empty-icon")
        ui.label("There are no dashboards yet.").classes("nm-title")
        ui.label("A dashboard shows queries and streams side by side, for one range of time.")
        if not self._may_edit:
            ui.label("Anyone with a token of scope write can create one.")
            return
        with ui.element("div").classes("nm-helped"):
            self._button(
                "Make one of all queries and streams",
                "auto_awesome",
                self._make,
                "nm-first",
                "unelevated",
            )
            self._button("Start with an empty one", "add", self._new, "nm-second", "flat")
            self._button("Import", "upload", self._import, "nm-second", "flat")

    def _button(self, word: str, icon: str, do: object, look: str, props: str) -> None:
        button = ui.button(word, icon=icon, on_click=do, color=None)  # type: ignore[arg-type]
        button.classes(look).props(f"{props} no-caps")

    def _new(self) -> None:
        open_new_form(self._console)

    def _make(self) -> None:
        open_new_form(self._console, with_panels=True)

    def _import(self) -> None:
        open_import_form(self._console)


def _card(dashboard: Dashboard) -> Shape:
    many = "1 panel" if len(dashboard.panels) == 1 else f"{len(dashboard.panels)} panels"
    link = shape("a", dashboard.title, href=dashboard_address(dashboard.name))
    facts = f"{many} · changed {instant_words(dashboard.changed)} UTC"
    return shape(
        "li",
        shape("h2", link, class_="nm-title"),
        shape("p", facts, class_="nm-small nm-soft nm-facts"),
        class_="nm-card nm-board",
    )
