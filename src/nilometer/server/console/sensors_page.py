"""The sensor network: drawn, and as a table with a filter; what could not be stored."""

from __future__ import annotations

from typing import Final

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.server.console.access import Console
from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.server.console.form_dialog import tell_done
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.network_drawing import PATH, draw_network
from nilometer.server.console.sensor_network import SensorNetwork
from nilometer.server.console.sensor_table import Chosen, SensorTable
from nilometer.server.console.shared_look import SharedLook
from nilometer.server.console.stream_forms import open_stream_form
from nilometer.server.console.styles import add_styles
from nilometer.server.console.wording import SENSORS, state_words
from nilometer.server.scopes import Scope

_EVERY: Final = 1.5
_NOTE: Final = "Point at something, or go to it with Tab, to read more."
_MOST_STREAMS: Final = 100


def add_sensors_page(console: Console, look: SharedLook) -> None:
    """`/console/sensors`; its address says what is selected."""

    @console_page(PATH)
    async def sensors_page(
        words: str = "", state: str = "", stream: str = "", page: str = ""
    ) -> None:
        add_styles()
        with page_frame("Sensors", console):
            shown = SensorsView(console, look, Chosen(words, state, stream, page))
        await shown.refresh()
        ui.timer(_EVERY, shown.refresh, immediate=False)


class SensorsView:
    """The content of the page, in the current place."""

    def __init__(self, console: Console, look: SharedLook, chosen: Chosen) -> None:
        self._look = look
        self._console = console
        if console.visitor().may(Scope.ADMIN):
            with ui.element("div").classes("nm-row nm-end"):
                new = ui.button("Add a stream", icon="add", color=None, on_click=self._ask)
                new.classes("nm-first").props("unelevated no-caps")
        with ui.element("section").classes("nm-card nm-pad") as self._drawn:
            Drawing(_legend())
            with ui.element("div").classes("nm-scroll"):
                self._drawing = Drawing(shape("svg"), _NOTE)
        self._table = SensorTable(console, chosen)
        with ui.element("div").classes("nm-card nm-empty") as self._empty:
            ui.label("There are no sensors yet.").classes("nm-title")
            ui.label("CREATE STREAM and CREATE SENSOR TABLE declare them.")
            ui.link("Declare the first one", "/").classes("nm-link-button")
        self._empty.set_visibility(False)

    def _ask(self) -> None:
        open_stream_form(self._console, self._created)

    async def _created(self, message: str) -> None:
        tell_done(message)
        self._look.forget()
        await self.refresh()

    async def refresh(self) -> None:
        """Show the current state."""
        try:
            network = await self._look.network()
        except NilometerError:  # the server is stopping
            return
        has_some = bool(network.streams or network.queries)
        self._empty.set_visibility(not has_some)
        self._drawn.set_visibility(has_some)
        if has_some:
            self._drawing.show(draw_network(_within_reason(network)))
        self._table.show(network)


def _within_reason(network: SensorNetwork) -> SensorNetwork:
    """As many as can be drawn; the table has the rest."""
    streams, queries = network.streams[:_MOST_STREAMS], network.queries[:_MOST_STREAMS]
    drawn = {one.name for one in streams} | {one.name for one in queries}
    reads = {
        name: tuple(one for one in network.reads[name] if one in drawn)
        for name in (one.name for one in queries)
    }
    return SensorNetwork(streams, queries, network.deliveries[:_MOST_STREAMS], reads)


def _legend() -> Shape:
    explained = {"waiting": "waiting to try again", "idle": "idle, nobody reads it"}
    states = (
        state_words(kind, explained.get(str(state), str(state))) for state, kind in SENSORS.items()
    )
    words = shape("a", "What do the words mean?", href="/console/glossary", class_="nm-link")
    return shape("p", *states, words, class_="nm-legend")
