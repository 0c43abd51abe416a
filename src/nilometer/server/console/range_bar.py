"""Chooses the time range of a whole page, and how often the page is refreshed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.kernels.json_values import iso_time
from nilometer.log.clock import now_micros
from nilometer.model.time import read_instant
from nilometer.server.console.live_elements import TOGGLE
from nilometer.server.dashboards.time_range import ALL, DEFAULT, PRESETS, TimeRange, between

REFRESH: Final = {"off": 0.0, "1s": 1.0, "2s": 2.0, "5s": 5.0, "10s": 10.0, "30s": 30.0, "1m": 60.0}
"""Seconds between two refreshes, by their words in addresses."""
USUAL: Final = "2s"
_WORDS: Final = {"off": "off"} | {one: f"every {one}" for one in REFRESH if one != "off"}
_HELP: Final = "Drag along a chart to zoom in."


class RangeBar:
    """In the current place; reports when something else is chosen."""

    def __init__(
        self, chosen: TimeRange, every: str, changed: Callable[[], Awaitable[None]]
    ) -> None:
        self.range = chosen
        self._last_live = chosen if chosen.is_live else DEFAULT
        self._changed = changed
        names = {name: words for name, (words, _) in PRESETS.items()} | {ALL: "All"}
        with ui.element("div").classes("nm-ranges").props('role=group aria-label="Range of time"'):
            self._presets = ui.toggle(names, value=None, on_change=self._pick).classes("nm-toggle")
            self._presets.props(f'{TOGGLE} aria-label="Last"')
            self._between = ui.button("From … to", icon="date_range", color=None)
            with self._between.classes("nm-second").props("flat no-caps"), ui.menu() as self._menu:
                self._draw_instants()
            out = ui.button(icon="zoom_out", color=None, on_click=self._widen)
            with out.classes("nm-second").props('flat no-caps aria-label="Zoom out"'):
                ui.tooltip(f"Twice as long. {_HELP}")
            self._live = ui.button("Back to live", icon="play_arrow", color=None)
            self._live.on_click(self._go_live)
            self._live.classes("nm-first").props("unelevated no-caps dense")
            self._words = ui.label().classes("nm-range-words nm-soft").props("role=status")
            ui.element("div").classes("nm-grow")
            self._every = ui.select(_WORDS, value=every, label="Refresh", on_change=self._changed)
            self._every.props("dense outlined options-dense").classes("nm-every")
        self._show()

    @property
    def every(self) -> float:
        """Seconds between two refreshes; 0: only the first."""
        return REFRESH[str(self._every.value)]

    @property
    def address(self) -> dict[str, str]:
        """What an address says about the choice."""
        choice = {} if self.range == DEFAULT else self.range.address
        every = str(self._every.value)
        return choice | ({} if every == USUAL else {"refresh": every})

    async def choose(self, wanted: TimeRange) -> None:
        """Show another range."""
        if wanted == self.range:
            return
        if self.range.is_live:
            self._last_live = self.range
        self.range = wanted
        self._show()
        await self._changed()

    def _show(self) -> None:
        at = self.range
        preset = at.address.get("range")
        known = preset if preset in PRESETS or preset == ALL else None
        self._presets.value = known
        self._live.visible = not at.is_live
        self._words.text = "" if known is not None else at.words

    async def _pick(self) -> None:
        chosen = self._presets.value
        if chosen == ALL:
            await self.choose(TimeRange())
        elif chosen is not None:
            await self.choose(TimeRange(PRESETS[str(chosen)][1]))

    async def _widen(self) -> None:
        await self.choose(self.range.widened(now_micros()))

    async def _go_live(self) -> None:
        await self.choose(self._last_live)

    def _draw_instants(self) -> None:
        with ui.element("div").classes("nm-instants"):
            start = ui.input("From (UTC)", placeholder="2026-01-31 12:00").props("dense outlined")
            end = ui.input("To (UTC)", placeholder="2026-01-31 13:00").props("dense outlined")
            problem = ui.label().classes("nm-bad nm-small").props("role=alert")

            async def apply() -> None:
                try:
                    chosen = between(read_instant(start.value or ""), read_instant(end.value or ""))
                except (NilometerError, OverflowError):
                    problem.text = "Write both instants as 2026-01-31 12:00."
                    return
                problem.text = ""
                self._menu.close()
                await self.choose(chosen)

            show = ui.button("Show", on_click=apply, color=None)
            show.classes("nm-first").props("unelevated no-caps")

        def fill() -> None:
            now = now_micros()
            interval = self.range.at(now)
            first = now - 3_600_000_000 if interval.start is None else interval.start
            start.value, end.value = (_minute(one) for one in (first, min(interval.end, now)))

        self._menu.on("show", fill)


def _minute(micros: int) -> str:
    return iso_time(micros)[:19].replace("T", " ")
