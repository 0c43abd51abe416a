"""The chart of a stream's recent readings: the newest that are kept, and new ones."""

from __future__ import annotations

import asyncio
from typing import Final

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.server.console.result_chart import ResultChart
from nilometer.server.results.recent_readings import RecentReadings
from nilometer.server.service import Service

_MOST: Final = 1000
"""Readings that one refresh takes."""
_NONE_YET: Final = "No readings are kept at present: they are drawn as they come."


class StreamChart:
    """A chart in the current place; continues when refreshed."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self._name = name
        self._readings: RecentReadings | None = None
        self._is_stale = True
        self._looking = asyncio.Lock()
        with ui.element("div").classes("nm-half nm-readings"):
            self._chart = ResultChart(
                self._begin_anew,
                "Chart of recent readings",
                "Its readings have no numbers to draw.",
            )
            self._none = ui.label(_NONE_YET).classes("nm-soft nm-small nm-more")

    async def refresh(self) -> None:
        """Draw what has come since the last time."""
        async with self._looking:
            try:
                await self._draw()
            except NilometerError:  # it has no log yet, or no longer
                self._readings = None

    async def _draw(self) -> None:
        if self._readings is None:
            self._readings = await self._service.streams.readings(self._name)
            self._chart.offer(self._readings.schema)
            self._is_stale = True
        if self._is_stale:
            self._is_stale = False
            self._readings.begin_anew()
            self._chart.begin()
        readings = self._readings
        rows = await self._service.look(lambda: readings.take(_MOST))
        if rows.num_rows:
            self._none.visible = False
            self._chart.add(rows)

    def _begin_anew(self) -> None:
        self._is_stale = True
