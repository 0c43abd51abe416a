"""Alerts: which of them fire, their history, and forms to create, silence and delete one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Final

from nicegui import ui

from nilometer.alerts.groups import shown_key
from nilometer.alerts.kept import Notification
from nilometer.alerts.rule import AlertState
from nilometer.alerts.status import AlertStatus, GroupStatus
from nilometer.errors import NilometerError
from nilometer.log.clock import now_micros
from nilometer.model.time import format_duration
from nilometer.server.console.access import Console
from nilometer.server.console.alert_form import (
    alert_sources,
    open_alert_form,
    open_silence_form,
)
from nilometer.server.console.alert_statements import drop_alert, silence_alert
from nilometer.server.console.card_list import CardList, ListWords, NamedCard
from nilometer.server.console.drawing import NOTHING, Drawing, Shape, shape, table
from nilometer.server.console.figures import count_text
from nilometer.server.console.form_dialog import tell_done
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.query_actions import tell_problem
from nilometer.server.console.styles import add_styles
from nilometer.server.console.wording import ALERTS, instant_words, length_words, state_words
from nilometer.server.scopes import Scope

_EVERY: Final = 2.0
_WORDS: Final = ListWords("alert", "Alerts", "Nothing is watched yet.", Scope.WRITE)
_MOST_GROUPS: Final = 20
_MOST_LINES: Final = 50


def add_alerts_page(console: Console) -> None:
    """`/console/alerts`."""

    @console_page("/console/alerts")
    async def alerts_page() -> None:
        add_styles()
        with page_frame("Alerts", console):
            shown = AlertList(console)
        await shown.refresh()
        ui.timer(_EVERY, shown.refresh, immediate=False)


class AlertList:
    """All alerts, in the current place; those that fire come first."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._order: list[str] = []
        self._list: CardList[_AlertRow] = CardList(console, _WORDS, self._ask)

    async def refresh(self) -> None:
        """Show their current state."""
        try:
            alerts = {one.name: one for one in await self._console.service.alerts()}
        except NilometerError:  # the server is stopping
            return
        self._list.keep(alerts, lambda name: _AlertRow(self._console, alerts[name], self.refresh))
        for name, status in alerts.items():
            await self._list.cards[name].show(status)
        order = sorted(alerts, key=lambda name: (_RANK[alerts[name].state], name.lower()))
        if order != self._order:
            self._order = order
            for place, name in enumerate(order):
                self._list.cards[name].card.move(target_index=place)

    async def _ask(self) -> None:
        try:
            sources = await alert_sources(self._console)
        except NilometerError as error:
            tell_problem(error)
            return
        if not sources:
            ui.notify("There are no streams or queries to watch yet.")
            return
        open_alert_form(self._console, sources, self._created)

    async def _created(self, message: str) -> None:
        tell_done(message)
        await self.refresh()


_RANK: Final = {
    AlertState.FIRING: 0,
    AlertState.NO_DATA: 1,
    AlertState.PENDING: 2,
    AlertState.OK: 3,
}


class _AlertRow(NamedCard):
    """One alert, with its actions, and its history on request."""

    def __init__(
        self, console: Console, status: AlertStatus, changed: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(console, status.name, changed)
        with self.card:
            self._head = self.draw_head(alert_head(status), self._draw_buttons)
            self._rule = Drawing(alert_rule(status))
            self._problem = Drawing(_problem(status))
            self._groups = Drawing(alert_groups(status)).classes("nm-scroll")
            self._history = Drawing(shape("div")).classes("nm-scroll nm-alert-history")
        self._history.set_visibility(False)

    def _draw_buttons(self) -> None:
        self.button("History", "history", self._turn)
        may = self.visitor.may(Scope.WRITE)
        self._silence = self.button("Silence", "notifications_paused", self._ask_silence)
        self._sound = self.button("End silence", "notifications_active", self._end_silence)
        self._drop = self.button("Delete", "delete_outline", self._delete)
        for one in (self._silence, self._sound, self._drop):
            one.visible = may

    async def show(self, status: AlertStatus) -> None:
        """Show its current state."""
        self._head.show(alert_head(status))
        self._rule.show(alert_rule(status))
        self._problem.show(_problem(status))
        self._groups.show(alert_groups(status))
        if self.visitor.may(Scope.WRITE):
            is_silenced = status.silenced_until is not None
            self._silence.visible, self._sound.visible = not is_silenced, is_silenced
        if self._history.visible:
            await self._show_history()

    async def _turn(self) -> None:
        self._history.set_visibility(not self._history.visible)
        if self._history.visible:
            await self._show_history()

    async def _show_history(self) -> None:
        try:
            notifications = await self.console.service.alert_history(self.name, _MOST_LINES)
        except NilometerError:  # it was dropped, or the server is stopping
            return
        self._history.show(alert_history(notifications))

    def _ask_silence(self) -> None:
        open_silence_form(self.console, self.name, self.done)

    async def _end_silence(self) -> None:
        await self.run(silence_alert(self.name, ""))

    async def _delete(self) -> None:
        lost = "Its history and its delivery are deleted with it."
        await self.delete(drop_alert(self.name), lost)


def alert_head(status: AlertStatus) -> Shape:
    """Its name, its state, since when, and its source."""
    state = state_words(ALERTS[status.state], str(status.state))
    since = f"for {length_words(max(0, now_micros() - status.since))}"
    parts = [
        shape("h2", status.name, class_="nm-title"),
        state,
        shape("span", since, title=f"since {instant_words(status.since)} UTC", class_="nm-small"),
        shape("span", f"on {status.definition.source}", class_="nm-small nm-soft"),
    ]
    if status.silenced_until is not None:
        until = f"silenced until {instant_words(status.silenced_until)} UTC"
        parts.append(shape("span", until, class_="nm-small nm-warn"))
    return shape("div", *parts, class_="nm-row")


def alert_rule(status: AlertStatus) -> Shape:
    """What it is waiting for."""
    one = status.definition
    parts = [f"{'has no data' if one.condition is None else 'fires'} when {one.sentence}"]
    if one.clear is not None:
        parts.append(f"clears when {' '.join(one.clear.split())}")
    if one.per:
        parts.append(f"for each {', '.join(one.per)}")
    if one.rule.no_data is not None and one.condition is not None:
        parts.append(f"no data after {format_duration(one.rule.no_data)}")
    if status.delivery is not None:
        parts.append(f"delivered by {status.delivery}")
    return shape("p", " · ".join(parts), class_="nm-small nm-soft nm-facts")


def alert_groups(status: AlertStatus) -> Shape:
    """Its groups: the worst ones, and the number of others."""
    if not status.definition.per:
        value = status.value
        text = "Nothing has arrived yet." if value is None else f"last value: {_fields(value)}"
        return shape("p", text, class_="nm-small nm-facts")
    rows = [_group(one) for one in status.groups[:_MOST_GROUPS]]
    if not rows:
        return shape("p", "Nothing has arrived yet.", class_="nm-small nm-soft nm-facts")
    drawn = table(("Group", "State", "Since (UTC)", "Last value"), rows)
    left = len(status.groups) - len(rows)
    more = shape("p", f"and {count_text(left)} more", class_="nm-small nm-soft nm-facts")
    return shape("div", drawn, more) if left else drawn


def alert_history(lines: list[Notification]) -> Shape:
    """The events of its history, newest first."""
    if not lines:
        return shape("p", "It has not reported anything yet.", class_="nm-small nm-soft nm-facts")
    rows = [
        (
            instant_words(one.time),
            state_words(ALERTS[AlertState(one.state)], one.state),
            shown_key(one.key or "") or NOTHING,
            NOTHING if one.value is None else _fields(one.value),
            "yes" if one.silenced else NOTHING,
        )
        for one in lines
    ]
    drawn = table(("Time (UTC)", "State", "Group", "Value", "Silenced"), rows)
    return shape("div", shape("h3", "Event", class_="nm-small nm-soft nm-facts"), drawn)


def _group(one: GroupStatus) -> tuple[Shape | str, ...]:
    state = state_words(ALERTS[one.state], str(one.state))
    value = NOTHING if one.value is None else _fields(one.value)
    return shown_key(one.key or ""), state, instant_words(one.since), value


def _fields(text: str) -> str:
    """The fields of an object in readable form: v 51.5, w 3."""
    return ", ".join(f"{name} {_short(value)}" for name, value in json.loads(text).items()) or "—"


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _problem(status: AlertStatus) -> Shape:
    if status.error is None:
        return shape("div")
    message = shape("div", status.error, class_="nm-what")
    return shape("div", message, class_="nm-problem", role="alert")
