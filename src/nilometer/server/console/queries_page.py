"""All queries: how they are doing, and start, stop, drop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nicegui import ui

from nilometer.database.query_status import QueryPhase, QueryStatus
from nilometer.errors import NilometerError
from nilometer.server.console.access import Console
from nilometer.server.console.address_state import keep_in_address, known_or, page_number
from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.pager import Pager
from nilometer.server.console.query_list import QueryRow
from nilometer.server.console.styles import add_styles
from nilometer.sql.parse.query_text import names_read
from nilometer.sql.statements import read_query


@lru_cache(maxsize=10_000)
def _streams(text: str) -> str:
    """What a query reads, as a heading."""
    return ", ".join(sorted(names_read(read_query(text))))


_PATH: Final = "/console/queries"
_EVERY: Final = 1.0
_FEW: Final = 5
_SHORT: Final = 10
_SLOWER: Final = 3
_ALL: Final = "all"
_NO_GROUP: Final = "nothing"
_GROUPS: Final[dict[str, Callable[[QueryStatus], str]]] = {
    _NO_GROUP: lambda _: "",
    "state": lambda one: str(one.phase),
    "streams": lambda one: _streams(one.text),
}


def add_queries_page(console: Console) -> None:
    """`/console/queries`; its address says what is selected."""

    @console_page(_PATH)
    async def queries_page(
        words: str = "", state: str = "", group: str = "", page: str = ""
    ) -> None:
        add_styles()
        with page_frame("Queries", console):
            shown = QueryList(console, Chosen(words, state, group, page))
        await shown.refresh()
        ui.timer(_EVERY, shown.tick, immediate=False)


@dataclass(frozen=True)
class Chosen:
    """What an address selects; empty: all, no filter, the first page."""

    words: str = ""
    state: str = ""
    group: str = ""
    page: str = ""


class QueryList:
    """The queries, a page at a time, in the current place."""

    def __init__(self, console: Console, chosen: Chosen) -> None:
        self._console = console
        self._rows: dict[str, QueryRow] = {}
        self._groups: dict[str, ui.element] = {}
        self._listed: list[str] = []
        self._ticks = 0
        self._summary = Drawing(shape("div"))
        with ui.element("div").classes("nm-bar nm-filters") as self._filters:
            phases = [_ALL, *map(str, QueryPhase)]
            self._words = ui.input(
                "Name or text", value=chosen.words, on_change=self._filter_changed
            )
            self._phase = ui.select(
                phases, value=known_or(chosen.state, phases, _ALL), label="State"
            )
            self._group = ui.select(
                [*_GROUPS], value=known_or(chosen.group, _GROUPS, _NO_GROUP), label="Group by"
            )
            for field in (self._phase, self._group):
                field.on_value_change(self._filter_changed)
            for one in (self._words, self._phase, self._group):
                one.props("dense outlined options-dense")
        self._list = ui.element("ul").classes("nm-queries")
        page = page_number(chosen.page)
        self._pager = Pager("query", "queries", self._turned, page=page)
        with ui.element("div").classes("nm-card nm-empty") as self._empty:
            ui.label("No query is kept here yet.").classes("nm-title")
            ui.label("A kept query keeps running when you close the browser.")
            ui.link("Write the first one", "/").classes("nm-link-button")
        self._empty.set_visibility(False)

    async def _filter_changed(self) -> None:
        self._pager.begin()
        await self._turned()

    async def _turned(self) -> None:
        """Something else was selected; the address keeps it for when the page is reloaded."""
        await self.refresh()
        phase, group = str(self._phase.value), str(self._group.value)
        chosen = {
            "words": str(self._words.value or ""),
            "state": "" if phase == _ALL else phase,
            "group": "" if group == _NO_GROUP else group,
            "page": self._pager.page_in_address,
        }
        keep_in_address(_PATH, chosen)

    async def tick(self) -> None:
        """A second has passed: a long list is refreshed only every third time."""
        self._ticks += 1
        if len(self._rows) <= _SHORT or self._ticks % _SLOWER == 0:
            await self.refresh()

    async def refresh(self) -> None:
        """Show how the queries are doing now."""
        try:
            queries = await self._console.service.queries.all()
        except NilometerError:  # the server is stopping
            return
        self._empty.set_visibility(not queries)
        for bar in (self._filters, self._pager.bar):
            bar.set_visibility(len(queries) > _FEW)
        self._summary.show(_summary(queries))
        grouped = _GROUPS[str(self._group.value)]
        passing = sorted(
            ((grouped(one), one) for one in queries if self._passes(one)),
            key=lambda pair: (pair[0], pair[1].is_temporary, pair[1].name.lower()),
        )
        shown = self._pager.page_of(passing, len(queries))
        self._build(shown)
        try:
            samples = await self._console.service.queries.health_of([one.name for _, one in shown])
        except NilometerError:  # the server is stopping
            return
        for _, one in shown:
            if (row := self._rows.get(one.name)) is not None:
                row.show(one, samples.get(one.name, []))

    def _passes(self, status: QueryStatus) -> bool:
        if self._phase.value not in (_ALL, str(status.phase)):
            return False
        words = str(self._words.value or "").lower()
        return words in status.name.lower() or words in status.text.lower()

    def _build(self, shown: Sequence[tuple[str, QueryStatus]]) -> None:
        """Draw new cards if the queries have changed."""
        groups = list(dict.fromkeys(group for group, _ in shown if group))
        listed = [f"{group} {one.name}" for group, one in shown]
        if listed == self._listed:
            return
        self._listed = listed
        names = {one.name for _, one in shown}
        for name in set(self._rows) - names:
            self._rows.pop(name).card.delete()
        for group in set(self._groups) - set(groups):
            self._groups.pop(group).delete()
        place = 0
        for number, (group, one) in enumerate(shown):
            if group and (number == 0 or shown[number - 1][0] != group):
                self._group_heading(group).move(self._list, place)
                place += 1
            if one.name not in self._rows:
                with self._list:
                    self._rows[one.name] = QueryRow(self._console, one, self.refresh)
            self._rows[one.name].card.move(self._list, place)
            place += 1

    def _group_heading(self, group: str) -> ui.element:
        if group not in self._groups:
            with self._list, ui.element("li").classes("nm-soft nm-group") as heading:
                ui.label(group)
            self._groups[group] = heading
        return self._groups[group]


def _summary(statuses: list[QueryStatus]) -> Shape:
    phases = [str(one.phase) for one in statuses]
    counts = ", ".join(f"{phases.count(one)} {one}" for one in dict.fromkeys(phases))
    many = f"{len(statuses)} {'query' if len(statuses) == 1 else 'queries'}"
    help_ = shape("a", "What do the words mean?", href="/console/glossary", class_="nm-link")
    parts = (f"{many}: {counts} · ", help_) if statuses else ("",)
    return shape("p", *parts, class_="nm-soft nm-summary")
