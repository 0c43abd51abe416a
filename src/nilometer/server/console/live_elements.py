"""A table and a chart that receive only what is new; drawn in the browser."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from nicegui import ui

from nilometer.log.clock import now_micros
from nilometer.server.console.chart_points import Points

TABLE_ROWS: Final = 500
CHART_POINTS: Final = 400
CHART_MATCHES: Final = 150
_PATIENCE: Final = 20.0
"""Seconds to wait for a slow browser."""


TOGGLE: Final = "unelevated dense no-caps toggle-color=chosen toggle-text-color=chosen"
"""Properties of a choice between views; its colours come from our own style sheet."""


class LiveTable(ui.element, component="static/live_table.js"):
    """The newest rows, as text."""

    def __init__(self, label: str, waiting: str) -> None:
        super().__init__()
        self._props.update({"label": label, "waiting": waiting, "most": TABLE_ROWS})

    async def begin(self, columns: Sequence[dict[str, Any]], waiting: str) -> None:
        """Show these columns without rows; `waiting` is shown until there are some."""
        # Awaited calls overtake those that are not: all calls of a table are awaited.
        await _await_browser(self.run_method("begin", columns, waiting, timeout=_PATIENCE))

    async def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add new rows, oldest first; returns when the browser shows them."""
        await _await_browser(self.run_method("add", rows, timeout=_PATIENCE))

    async def replace(self, rows: Sequence[Sequence[Any]], empty: str) -> None:
        """Show exactly these rows, or `empty` if there are none.

        Returns when the browser shows them.
        """
        await _await_browser(self.run_method("replace", rows, empty, timeout=_PATIENCE))


class LiveChart(ui.element, component="static/live_chart.js"):
    """Lines over time, or results as lines between the times of their streams."""

    def __init__(self, label: str) -> None:
        super().__init__()
        sizes = {"points": CHART_POINTS, "matches": CHART_MATCHES}
        self._props.update({"label": label, **sizes})

    def begin(self, lanes: Sequence[str] = ()) -> None:
        """Clear the chart; with lanes, show a timeline of matches."""
        self.run_method("begin", list(lanes))

    def add_points(self, points: Points, colours: Mapping[str, int]) -> None:
        """Continue the lines of these names, each in the colour of this number."""
        lines = [(name, colours[name], more) for name, more in points]
        self.run_method("add_points", lines, now_micros() // 1000)

    def add_matches(self, matches: Sequence[Sequence[float]]) -> None:
        """Add the times of each result, one for each lane."""
        self.run_method("add_matches", matches, now_micros() // 1000)


async def _await_browser(answer: Awaitable[Any]) -> None:
    """Wait for the browser, so that nothing piles up if it is slow or gone."""
    with suppress(TimeoutError):
        await answer
