"""How the database is doing: what needs attention, what is stored, when the disk is full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from nicegui import ui

from nilometer.alerts.rule import AlertState
from nilometer.alerts.status import AlertStatus
from nilometer.database.query_status import QueryPhase
from nilometer.deliveries.status import DeliveryState
from nilometer.errors import NilometerError
from nilometer.server.console.access import Console
from nilometer.server.console.drawing import NOTHING, Drawing, Shape, shape, table
from nilometer.server.console.figures import count_text
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.glossary import term
from nilometer.server.console.network_drawing import stream_address
from nilometer.server.console.query_list import query_address
from nilometer.server.console.sensor_network import SensorNetwork
from nilometer.server.console.shared_look import SharedLook
from nilometer.server.console.stream_page import silence_words
from nilometer.server.console.styles import add_styles
from nilometer.server.console.wording import ALERTS, bytes_words, state_words

_EVERY: Final = 5.0
_MOST: Final = 50
_TROUBLED: Final = (QueryPhase.FAILED, QueryPhase.RESTARTING, QueryPhase.STALLED)
_HEADINGS: Final = ("Log", "Kind", "Stored", "May take", "History", "Written per day", "Full in")

Row = dict[str, Any]


def add_health_page(console: Console, look: SharedLook) -> None:
    """`/console/health`."""

    @console_page("/console/health")
    async def health_page() -> None:
        add_styles()
        with page_frame("Health", console):
            shown = HealthView(console, look)
        await shown.refresh()
        ui.timer(_EVERY, shown.refresh, immediate=False)


class HealthView:
    """The content of the page, in the current place."""

    def __init__(self, console: Console, look: SharedLook) -> None:
        self._console = console
        self._look = look
        with ui.element("section").classes("nm-card nm-query"):
            self._figures = Drawing(shape("div"))
            self._troubles = Drawing(shape("div"))
        with ui.element("section").classes("nm-card"):
            self._storage = Drawing(shape("div")).classes("nm-scroll")

    async def refresh(self) -> None:
        """Show the current state of everything."""
        try:
            network = await self._look.network()
            alerts = await self._console.service.alerts()
            rows = (await self._console.service.storage()).rows
        except NilometerError:  # the server is stopping
            return
        assert rows is not None
        *logs, disk = rows.to_pylist()
        self._figures.show(health_figures(network, disk))
        self._troubles.show(health_troubles(network, disk, alerts))
        self._storage.show(storage_table(logs))


def health_figures(network: SensorNetwork, disk: Row) -> Shape:
    """The database in six figures."""
    running = sum(one.phase is QueryPhase.RUNNING for one in network.queries)
    sensors = sum(len(one.sensors) for one in network.streams)
    free = None if disk["limit_bytes"] is None else disk["limit_bytes"] - disk["bytes"]
    figures: list[tuple[str, Shape | str]] = [
        (f"{count_text(running)} of {count_text(len(network.queries))}", "queries running"),
        (count_text(sensors), "sensors"),
        (bytes_words(disk["bytes"]), term("log", "stored")),
        (bytes_words(disk["bytes_per_day"]), "growth per day"),
        (bytes_words(free), "free on the disk"),
        (disk["full_in"] or "not foreseen", "until it is full"),
    ]
    drawn = (shape("div", shape("b", value), _label(name)) for value, name in figures)
    return shape("div", *drawn, class_="nm-figures")


def _label(name: Shape | str) -> Shape:
    return shape("span", name) if isinstance(name, str) else name


def health_troubles(network: SensorNetwork, disk: Row, alerts: Sequence[AlertStatus] = ()) -> Shape:
    """The first of what needs attention, or that nothing does."""
    troubles = [*_disk_troubles(disk), *_alert_troubles(alerts), *_troubles(network)]
    if not troubles:
        return shape("p", state_words("good", "No problems."), class_="nm-facts")
    shown = troubles[:_MOST]
    if len(troubles) > _MOST:
        shown.append(shape("li", f"and {count_text(len(troubles) - _MOST)} more"))
    return shape("ul", *shown, class_="nm-troubles")


def _disk_troubles(disk: Row) -> Iterator[Shape]:
    left = disk["full_in"]
    if left is not None and not left.endswith("days"):
        text = f"The disk is full in {left}, at its current growth rate"
        yield shape("li", state_words("bad", text))


def _alert_troubles(alerts: Sequence[AlertStatus]) -> Iterator[Shape]:
    for alert in alerts:
        count = alert.count(alert.state)
        why = f"{count_text(count)} groups" if alert.definition.per and count > 1 else None
        if alert.state in (AlertState.FIRING, AlertState.NO_DATA):
            kind = ALERTS[alert.state]
            yield _trouble(kind, alert.name, "/console/alerts", str(alert.state), why)
        if alert.error is not None:
            yield _trouble("warn", alert.name, "/console/alerts", "alert", alert.error)


def _troubles(network: SensorNetwork) -> Iterator[Shape]:
    for query in network.queries:
        if query.phase in _TROUBLED:
            kind = "bad" if query.phase is QueryPhase.FAILED else "warn"
            why = query.error or (None if query.stalled is None else query.stalled.cause)
            yield _trouble(kind, query.name, query_address(query.name), str(query.phase), why)
        if (cause := query.bottleneck_text) is not None:
            yield _trouble("warn", query.name, query_address(query.name), "uneven", cause)
    for stream in network.streams:
        status = stream.status
        if status is None:
            continue
        why = status.error or silence_words(status)
        if why is None and status.full:
            why = "its log has no room"
        if why is not None:
            kind = "bad" if status.error or status.full else "warn"
            yield _trouble(kind, stream.name, stream_address(stream.name), "stream", why)
    for delivery in network.deliveries:
        if delivery.state in (DeliveryState.FAILED, DeliveryState.RETRYING):
            kind = "bad" if delivery.state is DeliveryState.FAILED else "warn"
            state, why = str(delivery.state), delivery.last_error
            yield _trouble(kind, delivery.name, "/console/deliveries", state, why)


def _trouble(kind: str, name: str, address: str, state: str, why: str | None) -> Shape:
    link = shape("a", name, href=address, class_="nm-link")
    reason = "" if why is None else f" {why}"
    return shape("li", state_words(kind, state), " ", link, reason)


def storage_table(logs: list[Row]) -> Shape:
    """Every log and how full it is, largest first."""
    if not logs:
        return shape("p", "Nothing is stored yet.", class_="nm-soft nm-pad")
    rows = table(_HEADINGS, (_cells(one) for one in logs[:_MOST]))
    if len(logs) <= _MOST:
        return rows
    more = f"and {count_text(len(logs) - _MOST)} smaller ones: SHOW STORAGE lists them all"
    return shape("div", rows, shape("p", more, class_="nm-soft nm-pad"))


def _cells(one: Row) -> list[Shape | str]:
    link = shape("a", one["name"], href=_address(one["kind"], one["name"]), class_="nm-link")
    limit = one["limit_bytes"]
    share = NOTHING if limit is None else f"{bytes_words(limit)} ({one['bytes'] / limit:.0%} used)"
    daily = NOTHING if one["bytes_per_day"] is None else bytes_words(one["bytes_per_day"])
    full = one["full_in"] or NOTHING
    return [link, one["kind"], bytes_words(one["bytes"]), share, one["history"], daily, full]


def _address(kind: str, name: str) -> str:
    """The page about the owner of a log."""
    if kind == "alert":
        return "/console/alerts"
    return query_address(name) if kind == "query" else stream_address(name)
