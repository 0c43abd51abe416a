"""All sensors as a table with a filter, one page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.server.console.access import Console
from nilometer.server.console.address_state import keep_in_address, known_or, page_number
from nilometer.server.console.dead_letters import show_letters
from nilometer.server.console.drawing import Drawing, Shape, shape, shortened, table
from nilometer.server.console.figures import count_text
from nilometer.server.console.network_drawing import PATH
from nilometer.server.console.pager import Pager
from nilometer.server.console.query_actions import tell_problem
from nilometer.server.console.sensor_network import NetworkSensor, SensorNetwork
from nilometer.server.console.wording import SENSORS, instant_words, rate_words, state_words

_ALL: Final = "all"
_URGENT: Final = ("bad", "warn", "busy", "good", "done", "idle")
_HEADINGS: Final = (
    "Sensor",
    "Stream",
    "State",
    "Last reading",
    "Time (UTC)",
    "Rate",
    "Readings",
    "Dead letters",
    "Errors",
    "Last error",
)


@dataclass(frozen=True)
class Chosen:
    """What an address selects; empty: all, the first page."""

    words: str = ""
    state: str = ""
    stream: str = ""
    page: str = ""


class SensorTable:
    """The filter and the table, in the current place."""

    def __init__(self, console: Console, chosen: Chosen) -> None:
        self._console = console
        self._network = SensorNetwork((), (), (), {})
        with ui.element("section").classes("nm-card").props("id=sensors") as self._card:
            with ui.element("div").classes("nm-bar nm-filters"):
                states = [_ALL, *map(str, SENSORS)]
                state = known_or(chosen.state, states, _ALL)
                streams = dict.fromkeys([_ALL, chosen.stream or _ALL])
                self._state = ui.select(
                    states, value=state, label="State", on_change=self._filter_changed
                )
                self._stream = ui.select(
                    [*streams], value=[*streams][-1], label="Stream", on_change=self._filter_changed
                )
                self._words = ui.input(
                    "Name, reading or error", value=chosen.words, on_change=self._filter_changed
                )
                for field in (self._state, self._stream, self._words):
                    field.props("dense outlined options-dense")
                ui.element("div").classes("nm-grow")
                self._letters = ui.button("Dead letters", on_click=self._show_letters, color=None)
                self._letters.props("flat no-caps").classes("nm-second")
            self._table = Drawing(shape("div")).classes("nm-scroll")
            page = page_number(chosen.page)
            self._pager = Pager("sensor", "sensors", self._turned, page=page)

    def show(self, network: SensorNetwork) -> None:
        """Show the sensors that pass the filter."""
        self._network = network
        self._card.set_visibility(bool(network.streams))
        names = [_ALL, *(one.name for one in network.streams)]
        if names != self._stream.options:
            chosen = self._stream.value if self._stream.value in names else _ALL
            self._stream.set_options(names, value=chosen)
        letters = sum(one.status.dead_letters for one in network.streams if one.status is not None)
        self._letters.set_text(f"Dead letters ({count_text(letters)})")
        self._letters.set_enabled(letters > 0)
        self._draw()

    def _filter_changed(self) -> None:
        self._pager.begin()
        self._turned()

    def _turned(self) -> None:
        """Something else was selected; the address keeps it for when the page is reloaded."""
        self._draw()
        state, stream = str(self._state.value), str(self._stream.value)
        chosen = {
            "words": str(self._words.value or ""),
            "state": "" if state == _ALL else state,
            "stream": "" if stream == _ALL else stream,
            "page": self._pager.page_in_address,
        }
        keep_in_address(PATH, chosen)

    def _draw(self) -> None:
        sensors = [one for stream in self._network.streams for one in stream.sensors]
        passing = sorted(filter(self._passes, sensors), key=_urgency)
        self._table.show(sensors_as_table(self._pager.page_of(passing, len(sensors))))

    def _passes(self, sensor: NetworkSensor) -> bool:
        if self._state.value not in (_ALL, sensor.state):
            return False
        if self._stream.value not in (_ALL, sensor.stream):
            return False
        words = str(self._words.value or "").lower()
        texts = (sensor.name, sensor.last_value or "", sensor.last_error or "", sensor.address)
        return any(words in one.lower() for one in texts)

    async def _show_letters(self) -> None:
        """Show the last dead letters of the chosen stream, or of all that have any."""
        chosen = [
            one.name
            for one in self._network.streams
            if self._stream.value in (_ALL, one.name)
            and one.status is not None
            and one.status.dead_letters
        ]
        try:
            letters = [await self._console.service.dead_letters(name) for name in chosen]
        except NilometerError as error:
            tell_problem(error)
            return
        show_letters(
            [row for one in letters if one.rows is not None for row in one.rows.to_pylist()]
        )


def _urgency(sensor: NetworkSensor) -> int:
    """A sort key: sensors in trouble come first, those that nobody needs last."""
    return _URGENT.index(SENSORS[sensor.state])


def sensors_as_table(sensors: Sequence[NetworkSensor]) -> Shape:
    """Sensors with everything known about them."""
    if not sensors:
        return shape("p", "No sensor matches the filter.", class_="nm-empty")
    return table(_HEADINGS, map(_row, sensors))


def _row(one: NetworkSensor) -> Sequence[Shape | str]:
    return (
        shape("span", one.name, title=one.address),
        one.stream,
        state_words(SENSORS[one.state], one.state),
        shortened(one.last_value or "—", 120),
        shape("span", instant_words(one.last_time), class_="nm-nowrap"),
        rate_words(one.rate) if one.readings else "—",
        count_text(one.readings),
        count_text(one.dead_letters),
        count_text(one.errors),
        shortened(one.last_error or "—", 200),
    )
