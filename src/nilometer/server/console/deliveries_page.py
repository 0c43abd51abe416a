"""Deliveries: their state, and forms to create, pause and end them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from nicegui import ui

from nilometer.deliveries.find_units import known_units
from nilometer.deliveries.status import DeliveryState, DeliveryStatus
from nilometer.errors import NilometerError
from nilometer.server.console.access import Console
from nilometer.server.console.card_list import CardList, ListWords, NamedCard
from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.server.console.figures import count_text
from nilometer.server.console.form_dialog import FormDialog, tell_done
from nilometer.server.console.form_statements import (
    change_delivery,
    create_delivery,
    option_lines,
)
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.glossary import term
from nilometer.server.console.query_actions import tell_problem
from nilometer.server.console.query_list import query_address
from nilometer.server.console.styles import add_styles
from nilometer.server.console.wording import DELIVERIES, instant_words, state_words
from nilometer.server.scopes import Scope

_EVERY: Final = 2.0
_WORDS: Final = ListWords("delivery", "Deliveries", "No results are delivered yet.", Scope.ADMIN)
_FIELDS: Final[dict[str, dict[str, str]]] = {
    "webhook": {"url": "https://example.org/in", "secret": "what requests are signed with"},
    "mqtt": {"url": "mqtt://broker", "topic": "plant/hot"},
    "parquet": {"folder": "a folder below the server's"},
    "python": {"function": "the name of a registered function"},
}
"""The fields by unit; others have their options as lines."""
_LABELS: Final = {"url": "URL"}


def add_deliveries_page(console: Console) -> None:
    """`/console/deliveries`."""

    @console_page("/console/deliveries")
    async def deliveries_page() -> None:
        add_styles()
        with page_frame("Deliveries", console):
            shown = DeliveryList(console)
        await shown.refresh()
        ui.timer(_EVERY, shown.refresh, immediate=False)


class DeliveryList:
    """All deliveries, in the current place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._list: CardList[_DeliveryRow] = CardList(console, _WORDS, self._ask)

    async def refresh(self) -> None:
        """Show their current state."""
        try:
            deliveries = {one.name: one for one in await self._console.service.deliveries()}
            alerts = {one.name for one in await self._console.service.alerts()}
        except NilometerError:  # the server is stopping
            return
        self._list.keep(
            deliveries, lambda name: _DeliveryRow(self._console, deliveries[name], self.refresh)
        )
        for name, status in deliveries.items():
            self._list.cards[name].show(status, is_alert=status.query in alerts)

    async def _ask(self) -> None:
        try:
            service = self._console.service
            queries = [one.name for one in await service.queries.all() if not one.is_temporary]
            queries += [one.name for one in await service.alerts()]
        except NilometerError as error:
            tell_problem(error)
            return
        if not queries:
            ui.notify("There are no queries or alerts to deliver from yet.")
            return
        open_delivery_form(self._console, queries, self._created)

    async def _created(self, message: str) -> None:
        tell_done(message)
        await self.refresh()


class _DeliveryRow(NamedCard):
    """One delivery, with its actions."""

    def __init__(
        self, console: Console, status: DeliveryStatus, changed: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(console, status.name, changed)
        with self.card:
            self._head = self.draw_head(delivery_head(status), self._draw_buttons)
            self._figures = Drawing(delivery_figures(status))
            self._problem = Drawing(_problem(status))

    def _draw_buttons(self) -> None:
        self._start = self._button("Start", "play_arrow", "START")
        self._stop = self._button("Pause", "pause", "STOP")
        self._drop = self._button("Delete", "delete_outline", "DROP")
        for one in (self._start, self._stop, self._drop):
            one.visible = self.visitor.may(Scope.ADMIN)

    def show(self, status: DeliveryStatus, *, is_alert: bool) -> None:
        """Show its current state."""
        self._head.show(delivery_head(status, is_alert=is_alert))
        self._figures.show(delivery_figures(status))
        self._problem.show(_problem(status))
        if self.visitor.may(Scope.ADMIN):
            runs = status.state in (DeliveryState.RUNNING, DeliveryState.RETRYING)
            self._start.visible, self._stop.visible = not runs, runs

    def _button(self, word: str, icon: str, verb: str) -> ui.button:
        text = change_delivery(verb, self.name)
        lost = "What was delivered stays where it is; the rest is not delivered."
        do = partial(self.delete, text, lost) if verb == "DROP" else partial(self.run, text)
        button = self.button(word, icon, do)
        with button:
            ui.tooltip(text)
        return button


def delivery_head(status: DeliveryStatus, *, is_alert: bool = False) -> Shape:
    """Its name, its state, its source and its destination."""
    address = "/console/alerts" if is_alert else query_address(status.query)
    link = shape("a", status.query, href=address, class_="nm-link")
    route = shape("span", "of ", link, f" to {status.unit}", class_="nm-small nm-soft")
    state = state_words(DELIVERIES[status.state], str(status.state))
    return shape("div", shape("h2", status.name, class_="nm-title"), state, route, class_="nm-row")


def delivery_figures(status: DeliveryStatus) -> Shape:
    """How much was delivered, and how much was not."""
    lost = [(count_text(status.lost), shape("span", "rows lost"))] if status.lost else []
    figures = [
        (count_text(status.delivered), shape("span", "rows delivered")),
        (count_text(status.lag), term("lag", "rows to go")),
        *lost,
    ]
    drawn = (shape("div", shape("b", value), name) for value, name in figures)
    return shape("div", *drawn, class_="nm-figures")


def _problem(status: DeliveryStatus) -> Shape:
    if status.last_error is None:
        return shape("div")
    again = ""
    if status.next_try is not None:
        again = f"the next attempt is at {instant_words(status.next_try)} UTC"
    parts = (
        shape("div", status.last_error, class_="nm-what"),
        shape("div", again, class_="nm-small nm-soft"),
    )
    kind = "nm-problem" if status.state is DeliveryState.FAILED else "nm-problem nm-waits"
    return shape("div", *parts, class_=kind, role="alert")


def open_delivery_form(
    console: Console, queries: list[str], done: Callable[[str], Awaitable[None]]
) -> None:
    """Open the form of a new delivery."""

    def write() -> str:
        wanted = _FIELDS.get(str(unit.value), {})
        unit_options = {name: str(fields[name].value or "") for name in wanted}
        unit_options |= option_lines(options.value or "")
        return create_delivery(
            name.value or "", str(query.value or ""), str(unit.value), unit_options
        )

    form = FormDialog(console, "New delivery", "Create it", write, done)
    with form.fields():
        name = ui.input("Name", placeholder="alarms")
        query = ui.select(
            queries, value=queries[0], label="Results of", with_input=len(queries) > 9
        )
        unit = ui.select([*known_units()], value="webhook", label="To")
        names = dict.fromkeys(one for wanted in _FIELDS.values() for one in wanted)
        fields = {one: ui.input(_LABELS.get(one, one.capitalize())) for one in names}
        options = ui.textarea("Further options, one on each line: name = value")
        for one in (name, query, unit, *fields.values(), options):
            one.props("dense outlined stack-label")
        options.props("autogrow")
        form.watch(name, query, unit, *fields.values(), options)

        def offer() -> None:
            wanted = _FIELDS.get(str(unit.value), {})
            for key, field in fields.items():
                field.visible = key in wanted
                field.props(f'placeholder="{wanted.get(key, "")}"')

        unit.on_value_change(offer)
        offer()
    form.open()
