"""The sensor network: drawn, and as a table with a filter; what could not be stored."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.server.console.access import Console
from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.network_drawing import draw_network
from nilometer.server.console.sensor_network import SensorNetwork, build_network
from nilometer.server.console.sensor_table import SensorTable
from nilometer.server.console.styles import add_styles
from nilometer.server.console.wording import SENSORS, state_words

_EVERY: Final = 1.5
_NOTE: Final = "Point at something, or go to it with Tab, to read more."
_MOST_STREAMS: Final = 100


def add_sensors_page(console: Console) -> None:
    """`/console/sensors`."""
    look = SharedLook(console)

    @console_page("/console/sensors")
    async def sensors_page() -> None:
        add_styles()
        with page_frame("Sensors", console):
            shown = SensorsView(console, look)
        await shown.refresh()
        ui.timer(_EVERY, shown.refresh, immediate=False)


class SharedLook:
    """The network as it was a moment ago, the same for all who look: many pages cost as one."""

    def __init__(self, console: Console) -> None:
        self._service = console.service
        self._lock = asyncio.Lock()
        self._until = 0.0
        self._network = SensorNetwork((), (), (), {})

    async def network(self) -> SensorNetwork:
        """What is there and how it is doing."""
        async with self._lock:
            if time.monotonic() >= self._until:
                self._network = await self._look()
                self._until = time.monotonic() + _EVERY * 0.9
        return self._network

    async def _look(self) -> SensorNetwork:
        service = self._service
        return build_network(
            await service.declarations(),
            await service.sensors(),
            await service.streams(),
            await service.queries(),
            await service.deliveries(),
        )


class SensorsView:
    """What is on the page, in the current place."""

    def __init__(self, console: Console, look: SharedLook) -> None:
        self._look = look
        with ui.element("section").classes("nm-card nm-pad") as self._drawn:
            Drawing(_legend())
            with ui.element("div").classes("nm-scroll"):
                self._drawing = Drawing(shape("svg"), _NOTE)
        self._table = SensorTable(console)
        with ui.element("div").classes("nm-card nm-empty") as self._empty:
            ui.label("There are no sensors yet.").classes("nm-title")
            ui.label("CREATE STREAM and CREATE SENSOR TABLE declare them.")
            ui.link("Declare the first one", "/").classes("nm-link-button")
        self._empty.set_visibility(False)

    async def refresh(self) -> None:
        """Show what is there now."""
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
    """As much as can be drawn; the table has the rest."""
    streams, queries = network.streams[:_MOST_STREAMS], network.queries[:_MOST_STREAMS]
    drawn = {one.name for one in streams} | {one.name for one in queries}
    reads = {
        name: tuple(one for one in network.reads[name] if one in drawn)
        for name in (one.name for one in queries)
    }
    return SensorNetwork(streams, queries, network.deliveries[:_MOST_STREAMS], reads)


def _legend() -> Shape:
    words = {"waiting": "waiting to try again", "idle": "idle, nobody reads it"}
    states = (
        state_words(kind, words.get(str(state), str(state))) for state, kind in SENSORS.items()
    )
    return shape("p", *states, class_="nm-legend")
