"""The chart of a query's results, and the choice of what it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
from nicegui import ui

from nilometer.server.console.chart_points import MOST_LINES, Drawable, Lines, matches
from nilometer.server.console.chart_points import Choice as Chosen
from nilometer.server.console.live_elements import CHART_MATCHES, CHART_POINTS, TOGGLE, LiveChart

_LINES: Final = "Lines"
_MATCHES: Final = "Matches"
_NOTHING: Final = "—"


class ResultChart:
    """Lines of numbers over time, or a timeline of matches."""

    def __init__(
        self,
        begin_anew: Callable[[], None],
        label: str = "Chart of the results",
        empty: str = "These results have no numbers to draw.",
    ) -> None:
        """`begin_anew` is called when something else is to be shown.

        `label`: what the chart is; `empty`: what it says if nothing can be drawn.
        """
        self._drawable = Drawable((), (), ())
        self._lines = Lines(Chosen((), None))
        with ui.element("div").classes("nm-choices"):
            self._form = ui.toggle([_LINES, _MATCHES], value=_LINES).classes("nm-toggle")
            self._form.props(f'{TOGGLE} aria-label="Kind of chart"')
            self._values = ui.select([], multiple=True, label="values").classes("nm-choice")
            self._key = ui.select([_NOTHING], value=_NOTHING, label="a line for each")
            self._key.classes("nm-choice")
        self._empty = ui.label(empty).classes("nm-empty")
        self._chart = LiveChart(label)
        self._more = ui.label().classes("nm-soft nm-small nm-more")
        for one in (self._form, self._values, self._key):
            if one is not self._form:
                one.props("dense outlined options-dense")
            one.visible = False
            one.on_value_change(begin_anew)
        self._empty.visible = self._more.visible = False

    def offer(self, schema: pa.Schema) -> None:
        """Offer what results with these columns can show."""
        self._drawable = drawable = Drawable.of(schema)
        first = drawable.first_choice(schema)
        self._form.set_visibility(bool(drawable.lanes and drawable.values))
        self._form.value = _MATCHES if drawable.lanes else _LINES
        self._values.set_options(list(drawable.values), value=list(first.values))
        self._key.set_options([_NOTHING, *drawable.keys], value=first.key or _NOTHING)

    def begin(self) -> None:
        """Draw the current choice from scratch."""
        drawable, is_timeline = self._drawable, self._is_timeline
        key = None if self._key.value == _NOTHING else self._key.value
        self._lines = Lines(Chosen(tuple(self._values.value or ()), key))
        self._values.visible = not is_timeline and len(drawable.values) > 1
        self._key.visible = not is_timeline and bool(drawable.keys)
        self._empty.visible = not is_timeline and not drawable.values
        self._chart.visible = not self._empty.visible
        self._chart.begin(drawable.lanes if is_timeline else ())
        self._more.visible = False

    def add(self, rows: pa.Table) -> None:
        """Continue with new rows."""
        if self._is_timeline:
            newest = rows.slice(max(0, rows.num_rows - CHART_MATCHES))
            if new_matches := matches(newest, self._drawable.lanes):
                self._chart.add_matches(new_matches)
        elif self._lines.choice.values:
            self._add_points(rows)

    def _add_points(self, rows: pa.Table) -> None:
        # Rows that are there at first are drawn as if they had just come in.
        is_new = not self._lines.colours
        points = self._lines.points(rows, CHART_POINTS) if is_new else self._lines.points(rows)
        if points:
            self._chart.add_points(points, self._lines.colours)
            self._tell_others()

    def _tell_others(self) -> None:
        others = len(self._lines.others)
        self._more.visible = others > 0
        if others:
            drawn = f"{len(self._lines.own)} values of {self._lines.choice.key} have a line"
            self._more.text = f"{drawn} (at most {MOST_LINES}); {others} others share one."

    @property
    def _is_timeline(self) -> bool:
        return bool(self._drawable.lanes) and self._form.value == _MATCHES
