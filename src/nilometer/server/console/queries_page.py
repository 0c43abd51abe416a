"""All queries: how they are doing, and start, stop, drop."""

from __future__ import annotations

from nicegui import ui

from nilometer.database.query_status import QueryStatus
from nilometer.errors import NilometerError
from nilometer.server.console.access import Console
from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.query_list import QueryRow
from nilometer.server.console.styles import add_styles

_EVERY = 1.0
_MOST = 200


def add_queries_page(console: Console) -> None:
    """`/console/queries`."""

    @console_page("/console/queries")
    async def queries_page() -> None:
        add_styles()
        with page_frame("Queries", console):
            shown = QueryList(console)
        await shown.refresh()
        ui.timer(_EVERY, shown.refresh, immediate=False)


class QueryList:
    """The queries, in the current place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[str, QueryRow] = {}
        self._summary = Drawing(shape("div"))
        self._list = ui.element("ul").classes("nm-queries")
        with ui.element("div").classes("nm-card nm-empty") as self._empty:
            ui.label("No query is kept here yet.").classes("nm-title")
            ui.label("A query that is kept runs on when you close the browser.")
            ui.link("Write the first one", "/").classes("nm-link-button")
        self._empty.set_visibility(False)

    async def refresh(self) -> None:
        """Show how they are doing now."""
        try:
            found = await self._console.service.queries()
        except NilometerError:  # the server is stopping
            return
        found = sorted(found, key=lambda one: (one.is_temporary, one.name.lower()))
        self._empty.set_visibility(not found)
        self._summary.show(_summary(found))
        found = found[:_MOST]
        if [one.name for one in found] != list(self._rows):
            self._build(found)
        for one in found:
            await self._show(one)

    def _build(self, found: list[QueryStatus]) -> None:
        """Other cards, since there are other queries."""
        names = {one.name for one in found}
        for name in set(self._rows) - names:
            self._rows.pop(name).card.delete()
        with self._list:
            for one in found:
                if one.name not in self._rows:
                    self._rows[one.name] = QueryRow(self._console, one, self.refresh)
        self._rows = {one.name: self._rows[one.name] for one in found}
        for place, row in enumerate(self._rows.values()):
            row.card.move(target_index=place)

    async def _show(self, status: QueryStatus) -> None:
        try:
            samples = await self._console.service.health(status.name)
        except NilometerError:  # dropped meanwhile
            return
        if (row := self._rows.get(status.name)) is not None:
            row.show(status, samples)


def _summary(found: list[QueryStatus]) -> Shape:
    phases = [str(one.phase) for one in found]
    told = ", ".join(f"{phases.count(one)} {one}" for one in dict.fromkeys(phases))
    more = f"; the first {_MOST} are shown" if len(found) > _MOST else ""
    many = f"{len(found)} {'query' if len(found) == 1 else 'queries'}"
    return shape("p", f"{many}: {told}{more}" if found else "", class_="nm-soft nm-summary")
