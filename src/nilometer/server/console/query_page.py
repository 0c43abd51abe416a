"""One query: its text, its results, windows, plan and health."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nicegui import ui

from nilometer.database.limits import shown_size
from nilometer.database.query_status import OnError, QueryLimits, QueryStatus
from nilometer.errors import NilometerError, NotFoundError
from nilometer.log.clock import now_micros
from nilometer.model.dashboard import SourceKind
from nilometer.model.time import duration_words
from nilometer.server.console.access import Console
from nilometer.server.console.address_state import keep_in_address, known_or
from nilometer.server.console.advice import Advice, advise, left_out, uneven
from nilometer.server.console.constraint_graph import constraint_graph
from nilometer.server.console.dashboard_forms import add_to_dashboard
from nilometer.server.console.download_dialog import download_button
from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.server.console.figures import count_text
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.health_charts import HealthCharts
from nilometer.server.console.highlighted_sql import highlighted_sql
from nilometer.server.console.live_results import live_results
from nilometer.server.console.plan_tree import plan_tree
from nilometer.server.console.query_actions import QueryActions
from nilometer.server.console.query_list import (
    query_address,
    query_figures,
    query_head,
    query_problem,
)
from nilometer.server.console.styles import add_styles
from nilometer.server.console.wording import instant_words
from nilometer.server.scopes import Scope
from nilometer.sql.explain.picture import QueryPicture
from nilometer.sql.parse.query_text import names_read
from nilometer.sql.statements import read_query

_EVERY: Final = 1.0
_FIRST: Final = "results"
_TABS: Final = {
    _FIRST: "table_rows",
    "windows": "hub",
    "plan": "account_tree",
    "health": "monitor_heart",
}


def add_query_page(console: Console) -> None:
    """`/console/queries/{name}`."""

    @console_page("/console/queries/{name}")
    async def query_page(name: str, tab: str = "") -> None:
        add_styles()
        with page_frame("Queries", console) as content:
            try:
                status = await console.service.queries.status(name)
            except NilometerError as error:
                _draw_missing(error)
                return
            shown = QueryView(console, status, known_or(tab, _TABS, _FIRST), content)
        await shown.refresh()
        ui.timer(_EVERY, shown.refresh, immediate=False)


def _draw_missing(error: NilometerError) -> None:
    with ui.element("div").classes("nm-card nm-empty"):
        ui.label(error.message).classes("nm-title")
        if error.hint:
            ui.label(error.hint)
        ui.link("All queries", "/console/queries").classes("nm-link-button")


class QueryView:
    """The content of the page of a query, in the current place."""

    def __init__(
        self, console: Console, status: QueryStatus, tab: str, content: ui.element
    ) -> None:
        self._console = console
        self._visitor = console.visitor()
        self._name = status.name
        self._text = status.text
        self._reads = names_read(read_query(status.text))
        self._content = content
        self._health: HealthCharts | None = None
        self._is_gone = False
        self._draw_head(status)
        self._draw_tabs(status, tab)

    async def refresh(self) -> None:
        """Show how the query is doing now."""
        if self._is_gone:
            return
        service = self._console.service
        try:
            status = await service.queries.status(self._name)
            samples = await service.queries.health(self._name)
            streams = [
                one for one in await service.streams.all() if one.name.lower() in self._reads
            ]
        except NotFoundError as error:
            self._leave(error)
            return
        except NilometerError:  # the server is stopping, or the catalog does not answer
            return
        self._head.show(query_head(status, is_linked=False))
        self._actions.show(status)
        self._figures.show(query_figures(status, samples, now_micros(), has_help=True))
        self._problem.show(query_problem(status))
        self._advice.show(
            _advice(
                [
                    *advise(samples, streams, is_stalled=status.stalled is not None),
                    *uneven(status),
                    *left_out(status),
                ]
            )
        )
        if self._health is not None and self._tabs.value == "health":
            self._health.show(samples, now_micros(), status.lag)

    def _leave(self, error: NotFoundError) -> None:
        """The query was dropped."""
        self._is_gone = True
        self._content.clear()
        with self._content:
            _draw_missing(error)

    def _draw_head(self, status: QueryStatus) -> None:
        with ui.element("section").classes("nm-card nm-query"):
            with ui.element("div").classes("nm-query-head"):
                self._head = Drawing(query_head(status, is_linked=False))
                with ui.element("div").classes("nm-row nm-query-buttons"):
                    self._actions = QueryActions(self._console, status.name, self.refresh)
                    download_button(self._console, "query", status.name)
                    if self._visitor.may(Scope.WRITE):
                        add_to_dashboard(self._console, status.name, SourceKind.QUERY)
            Drawing(highlighted_sql(status.text)).classes("nm-sql-box")
            self._figures = Drawing(query_figures(status, (), now_micros(), has_help=True))
            Drawing(_facts(status))
            self._problem = Drawing(query_problem(status))
            self._advice = Drawing(_advice([]))

    def _draw_tabs(self, status: QueryStatus, tab: str) -> None:
        """Tabs, one visible at a time; the others stay, so that results keep coming."""
        self._drawn = {tab}
        self._places: dict[str, ui.element] = {}
        with ui.element("section").classes("nm-card nm-tabs"):
            with ui.tabs(on_change=self._turn).props("no-caps align=left inline-label") as tabs:
                for name, icon in _TABS.items():
                    ui.tab(name, label=name.capitalize(), icon=icon)
            for name in _TABS:
                place = ui.element("div").classes("nm-panel").props("role=tabpanel")
                place._props["aria-label"] = name
                place.set_visibility(name == tab)
                self._places[name] = place
        self._tabs = tabs
        with self._places[tab]:
            if tab == _FIRST:
                self._draw_results()
            else:
                ui.timer(0, lambda: self._draw(tab), once=True)
        tabs.set_value(tab)

    async def _turn(self) -> None:
        """Another tab was chosen; its content is built the first time."""
        chosen = str(self._tabs.value)
        keep_in_address(query_address(self._name), {"tab": "" if chosen == _FIRST else chosen})
        for name, place in self._places.items():
            place.set_visibility(name == chosen)
        if chosen not in self._drawn:
            self._drawn.add(chosen)
            await self._draw(chosen)
        await self.refresh()

    async def _draw(self, tab: str) -> None:
        draw = {"windows": constraint_graph, "plan": plan_tree}.get(tab)
        with self._places[tab]:
            if draw is not None:
                await self._draw_picture(draw)
            elif tab == "health":
                self._health = HealthCharts()
            else:
                self._draw_results()

    def _draw_results(self) -> None:
        live_results(self._console.service, self._name, self._visitor.asker.name, is_alone=False)

    async def _draw_picture(self, draw: Callable[[QueryPicture], None]) -> None:
        try:
            draw(await self._console.service.picture(self._text, self._visitor.asker))
        except NilometerError as error:
            Drawing(shape("div", error.message, class_="nm-problem", role="alert"))


def _facts(status: QueryStatus) -> Shape:
    """What does not change while the query runs."""
    facts = [f"created {instant_words(status.created)} UTC", *_limits(status.limits)]
    return shape("p", " · ".join(facts), class_="nm-small nm-soft nm-facts")


def _limits(limits: QueryLimits) -> list[str]:
    texts = []
    if limits.results is not None:
        texts.append(f"at most {shown_size(limits.results)} of results")
    if limits.state is not None:
        texts.append(f"at most {shown_size(limits.state)} of state")
    if limits.history is not None:
        texts.append(f"results are kept for {duration_words(limits.history)}")
    if limits.shed is not None:
        by = "" if limits.shed_by is None else f", by {limits.shed_by}"
        texts.append(f"sheds rows when more than {count_text(limits.shed)} wait{by}")
    if limits.on_error is OnError.STOP:
        texts.append("a row that cannot be computed stops it")
    return texts or ["no limits"]


def _advice(advice: list[Advice]) -> Shape:
    items = (
        shape("li", shape("b", one.message), shape("div", one.hint, class_="nm-small nm-soft"))
        for one in advice
    )
    return shape("ul", *items, class_="nm-advice", role="status")
