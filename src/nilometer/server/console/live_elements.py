"""A table and a chart that get what is new, not everything again; drawn in the browser."""

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
"""Seconds for which a slow browser is waited for."""


TOGGLE: Final = "unelevated dense no-caps toggle-color=chosen toggle-text-color=chosen"
"""Properties of a choice between views; its colours come from our style sheet."""


class LiveTable(ui.element, component="static/live_table.js"):
    """The newest rows, as text."""

    def __init__(self, label: str, waiting: str) -> None:
        super().__init__()
        self._props.update({"label": label, "waiting": waiting, "most": TABLE_ROWS})

    async def begin(self, columns: Sequence[dict[str, Any]], waiting: str) -> None:
        """Show these columns, and no rows; what is said for as long as there are none."""
        # What is awaited overtakes what is not: all calls of a table are.
        await _shown(self.run_method("begin", columns, waiting, timeout=_PATIENCE))

    async def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Rows that came, the oldest first; returns when the browser shows them."""
        await _shown(self.run_method("add", rows, timeout=_PATIENCE))

    async def replace(self, rows: Sequence[Sequence[Any]], empty: str) -> None:
        """These rows, and no others, or what is said if there are none.

        Returns when the browser shows them.
        """
        await _shown(self.run_method("replace", rows, empty, timeout=_PATIENCE))


class LiveChart(ui.element, component="static/live_chart.js"):
    """Lines over time, or results as lines between the times of their streams."""

    def __init__(self, label: str) -> None:
        super().__init__()
        sizes = {"points": CHART_POINTS, "matches": CHART_MATCHES}
        self._props.update({"label": label, **sizes})

    def begin(self, lanes: Sequence[str] = ()) -> None:
        """Show nothing; with lanes: a timeline of matches."""
        self.run_method("begin", list(lanes))

    def add_points(self, points: Points, colours: Mapping[str, int]) -> None:
        """Go on with the lines of these names; each has the colour of this number."""
        lines = [(name, colours[name], more) for name, more in points]
        self.run_method("add_points", lines, now_micros() // 1000)

    def add_matches(self, matches: Sequence[Sequence[float]]) -> None:
        """The times of each result, one for each lane."""
        self.run_method("add_matches", matches, now_micros() // 1000)


async def _shown(answer: Awaitable[Any]) -> None:
    """Wait for the browser, so that nothing piles up before one that is slow or has gone."""
    with suppress(TimeoutError):
        await answer
