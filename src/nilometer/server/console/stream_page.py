"""One stream or sensor table: its columns, how it is doing, its sensors, and who reads it."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from nicegui import ui

from nilometer.errors import NilometerError, NotFoundError
from nilometer.model.dashboard import SourceKind
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.manager.status import StreamStatus
from nilometer.server.console.access import Console
from nilometer.server.console.address_state import address_with
from nilometer.server.console.dashboard_forms import add_to_dashboard
from nilometer.server.console.dead_letters import show_letters
from nilometer.server.console.download_dialog import download_button
from nilometer.server.console.drawing import Drawing, Shape, shape, table
from nilometer.server.console.figures import count_text
from nilometer.server.console.form_dialog import tell_done
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.glossary import term
from nilometer.server.console.network_drawing import PATH
from nilometer.server.console.query_actions import tell_problem
from nilometer.server.console.query_list import query_address
from nilometer.server.console.sensor_network import NetworkStream, SensorNetwork
from nilometer.server.console.sensor_table import sensors_as_table
from nilometer.server.console.shared_look import SharedLook
from nilometer.server.console.stream_chart import StreamChart
from nilometer.server.console.stream_forms import open_sensors_form
from nilometer.server.console.styles import add_styles
from nilometer.server.console.wording import (
    PHASES,
    bytes_words,
    instant_words,
    known_lag,
    length_words,
    rate_words,
    state_words,
)
from nilometer.server.scopes import Scope

_EVERY: Final = 1.5
_MOST_SENSORS: Final = 50


def add_stream_page(console: Console, look: SharedLook) -> None:
    """`/console/streams/{name}`."""

    @console_page("/console/streams/{name}")
    async def stream_page(name: str) -> None:
        add_styles()
        with page_frame("Sensors", console) as content:
            try:
                described = (await console.service.streams.describe(name)).rows
                declarations = (
                    one.declaration for one in await console.service.streams.declarations()
                )
                declared = next(one for one in declarations if one.name.lower() == name.lower())
            except NilometerError as error:
                draw_missing(error)
                return
            shown = StreamView(console, look, declared, described, content)
        await shown.refresh()
        ui.timer(_EVERY, shown.refresh, immediate=False)


def draw_missing(error: NilometerError) -> None:
    """Say that there is no such stream, and link back."""
    with ui.element("div").classes("nm-card nm-empty"):
        ui.label(error.message).classes("nm-title")
        if error.hint:
            ui.label(error.hint)
        ui.link("All sensors", "/console/sensors").classes("nm-link-button")


class StreamView:
    """The content of the page, in the current place."""

    def __init__(
        self,
        console: Console,
        look: SharedLook,
        declared: Declaration,
        described: pa.Table | None,
        content: ui.element,
    ) -> None:
        self._console = console
        self._look = look
        self._declared = declared
        self._name = declared.name
        self._content = content
        self._is_gone = False
        with ui.element("section").classes("nm-card nm-query"):
            with ui.element("div").classes("nm-query-head"):
                self._head = Drawing(shape("div"))
                with ui.element("div").classes("nm-row nm-query-buttons"):
                    self._draw_buttons()
            self._figures = Drawing(shape("div"))
            self._problem = Drawing(shape("div"))
            self._backlog = Drawing(shape("div"))
            self._unshipped = Drawing(shape("div"))
            self._readers = Drawing(shape("div"))
        with ui.element("section").classes("nm-card").props('aria-label="Recent readings"'):
            self._chart = StreamChart(console.service, self._name)
        with ui.element("section").classes("nm-card nm-pad"):
            Drawing(_described(described)).classes("nm-scroll")
        with ui.element("section").classes("nm-card"):
            self._sensors = Drawing(shape("div")).classes("nm-scroll")

    def _draw_buttons(self) -> None:
        visitor = self._console.visitor()
        if visitor.may(Scope.ADMIN) and self._declared.is_sensor_table:
            add = ui.button("Add sensors", icon="add", color=None, on_click=self._ask)
            add.props("flat no-caps dense").classes("nm-second nm-action")
        if visitor.may(Scope.WRITE):
            add_to_dashboard(self._console, self._name, SourceKind.STREAM)
        download_button(self._console, "stream", self._name)
        self._letters = ui.button("Dead letters", on_click=self._show_letters, color=None)
        self._letters.props("flat no-caps dense").classes("nm-second nm-action")

    def _ask(self) -> None:
        open_sensors_form(self._console, self._declared, self._created)

    async def _created(self, message: str) -> None:
        tell_done(message)
        self._look.forget()
        await self.refresh()

    async def refresh(self) -> None:
        """Show how the stream is doing now."""
        if self._is_gone:
            return
        try:
            network = await self._look.network()
            if find_stream(network, self._name) is None:  # it may be newer than the snapshot
                self._look.forget()
                network = await self._look.network()
            alerts = await self._console.service.alerts()
        except NilometerError:  # the server is stopping
            return
        stream = find_stream(network, self._name)
        if stream is None:
            self._is_gone = True
            self._content.clear()
            with self._content:
                draw_missing(NotFoundError(f"there is no stream {self._name}"))
            return
        self._head.show(_head(stream))
        self._figures.show(stream_figures(stream))
        self._problem.show(_problem(stream))
        self._backlog.show(backlog_note(stream.status))
        self._unshipped.show(unshipped_note(stream.status))
        watching = [one.name for one in alerts if one.definition.source == stream.name]
        self._readers.show(_readers(network, stream, watching))
        self._sensors.show(_sensors(stream))
        letters = 0 if stream.status is None else stream.status.dead_letters
        self._letters.set_text(f"Dead letters ({count_text(letters)})")
        self._letters.set_enabled(letters > 0)
        await self._chart.refresh()

    async def _show_letters(self) -> None:
        try:
            rows = (await self._console.service.dead_letters(self._name)).rows
        except NilometerError as error:
            tell_problem(error)
            return
        show_letters([] if rows is None else rows.to_pylist())


def _sensors(stream: NetworkStream) -> Shape:
    """Its first sensors; the table of all sensors has the others."""
    if not stream.sensors:
        return shape("p", "It has no sensors yet.", class_="nm-empty")
    shown = sensors_as_table(stream.sensors[:_MOST_SENSORS])
    if len(stream.sensors) <= _MOST_SENSORS:
        return shown
    label = f"All {count_text(len(stream.sensors))} sensors"
    to = address_with(PATH, {"stream": stream.name}) + "#sensors"
    return shape("div", shown, shape("p", shape("a", label, href=to, class_="nm-link nm-pad")))


def find_stream(network: SensorNetwork, name: str) -> NetworkStream | None:
    """A stream by its name, in any case."""
    return next((one for one in network.streams if one.name.lower() == name.lower()), None)


def _head(stream: NetworkStream) -> Shape:
    kind = "stream" if stream.named_by is None else "sensor table"
    chips = (shape("span", one, class_="nm-chip") for one in (term(kind), stream.stream_type))
    return shape("div", shape("h2", stream.name, class_="nm-title"), *chips, class_="nm-row")


def stream_figures(stream: NetworkStream) -> Shape:
    """How many rows have come, and up to when they are complete."""
    status = stream.status
    sensors = len(stream.sensors)
    figures = [("lately", rate_words(stream.rate)), (_of(sensors, "sensor"), count_text(sensors))]
    if status is not None:
        figures += [
            ("rows so far", count_text(status.rows)),
            ("stored", bytes_words(status.stored_bytes)),
            (_of(status.readers, "reader"), count_text(status.readers)),
            ("UTC watermark", instant_words(status.watermark)),
            ("watermark behind", length_words(known_lag(status.lag))),
        ]
    drawn = (shape("div", shape("b", value), _label(name)) for name, value in figures)
    return shape("div", *drawn, class_="nm-figures")


def _of(number: int, thing: str) -> str:
    return thing if number == 1 else f"{thing}s"


def _label(figure: str) -> Shape:
    return term("watermark", figure) if "watermark" in figure else shape("span", figure)


def _problem(stream: NetworkStream) -> Shape:
    status = stream.status
    if status is None:
        return shape("div")
    text = status.error or silence_words(status)
    if status.full and status.error is None:
        text = "its log has no room: sensors wait until somebody has read"
    if text is None:
        return shape("div")
    kind = "nm-problem" if status.error or status.full else "nm-problem nm-waits"
    return shape("div", shape("div", text, class_="nm-what"), class_=kind, role="alert")


def backlog_note(status: StreamStatus | None) -> Shape:
    """That readings arrived late, and what happened to their times; or nothing."""
    if status is None or not status.backlog:
        return shape("div")
    text = (
        f"{count_text(status.backlog)} readings had been kept at their source while nobody "
        "listened, and arrived together: their time is that of their arrival."
    )
    return shape("p", text, class_="nm-small nm-soft nm-facts", role="status")


def unshipped_note(status: StreamStatus | None) -> Shape:
    """How many rows are on the way to the object store, and since when; or nothing."""
    if status is None or not status.unshipped:
        return shape("div")
    rows = "1 row is" if status.unshipped == 1 else f"{count_text(status.unshipped)} rows are"
    text = f"{rows} on the server's disk, on the way to the object store"
    if status.unshipped_since is not None:
        text += f", the oldest since {instant_words(status.unshipped_since)} UTC"
    return shape("p", f"{text}.", class_="nm-small nm-soft nm-facts", role="status")


def silence_words(status: StreamStatus) -> str | None:
    """Which of its sensors are silent, and what that holds up; None: none of them is."""
    if not status.silent and status.held_by is None:
        return None
    parts = []
    if status.silent_since is not None:
        parts.append(f"nothing has come since {instant_words(status.silent_since)} UTC")
    elif status.silent:
        parts.append(f"{count_text(status.silent)} of {count_text(status.sensors)} sensors silent")
    if status.held_by is not None and status.held_by != status.name:
        parts.append(f"the watermark is held by the sensor {status.held_by}")
    return "; ".join(parts) or None


def _readers(network: SensorNetwork, stream: NetworkStream, alerts: list[str]) -> Shape:
    """The queries that read it, with their states, and the alerts that watch it."""
    queries = [one for one in network.queries if stream.name in network.reads[one.name]]
    if not queries and not alerts:
        return shape("p", "No query reads it: its sensors are idle.", class_="nm-soft nm-facts")
    links: list[Shape | str] = ["Read by"]
    for name in alerts:
        links.append(shape("a", f"alert {name}", href="/console/alerts", class_="nm-link"))
    for one in queries:
        link = shape("a", one.name, href=query_address(one.name), class_="nm-link")
        state = state_words(PHASES[one.phase], str(one.phase))
        links.append(shape("span", link, state, class_="nm-pair"))
    return shape("div", *links, class_="nm-row nm-small")


def _described(rows: pa.Table | None) -> Shape:
    if rows is None:
        return shape("div")
    cells = ([_text(value) for value in row.values()] for row in rows.to_pylist())
    return table([name.replace("_", " ").capitalize() for name in rows.schema.names], cells)


def _text(value: object) -> str:
    return "—" if value is None else str(value)
