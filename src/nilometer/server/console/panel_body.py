"""The content of a panel: a chart, figures, a table, or why there is nothing to see."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from nicegui import events, ui

from nilometer.errors import NilometerError
from nilometer.model.dashboard import PanelKind
from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.server.console.live_elements import LiveTable
from nilometer.server.console.table_rows import table_columns, table_rows
from nilometer.server.dashboards.panel_picture import Picture
from nilometer.server.dashboards.time_range import Interval, TimeRange, between

Zoom = Callable[[TimeRange], Awaitable[None]]
_NOTHING: Final = "There are no rows in this range of time."
_WIDE: Final = 160.0
_HIGH: Final = 34.0


class PanelChart(ui.element, component="static/panel_chart.js"):
    """A chart that is redrawn when its picture changes."""

    def __init__(self, label: str, zoom: Zoom | None) -> None:
        super().__init__()
        self._props.update({"label": label, "picture": {}})
        if zoom is not None:

            async def ranged(event: events.GenericEventArguments) -> None:
                start, end = (round(float(event.args[one]) * 1000) for one in ("start", "end"))
                await zoom(between(start, end))

            self.on("range", ranged)

    def show(self, values: dict[str, Any]) -> None:
        """Draw these values from now on."""
        self._props["picture"] = values
        self.update()

    def go_on(self, at: Interval) -> None:
        """Nothing is new, but time has moved on."""
        if at.start is not None:
            self.run_method("move", at.start / 1000, at.end / 1000)


class PanelBody:
    """The content of one panel, in the current place."""

    def __init__(self, kind: PanelKind, title: str, zoom: Zoom | None) -> None:
        self._columns = ""
        with ui.element("div").classes("nm-pane-body"):
            self._chart = PanelChart(title, zoom)
            self._table = LiveTable(title, "") if kind is PanelKind.TABLE else None
            self._drawn = Drawing(shape("div", "Looking …", class_="nm-pane-empty"))
            self._drawn.classes("nm-tiles-place")
            self._note = ui.label().classes("nm-small nm-soft nm-pane-note")
        self._note.visible = False
        self._only(self._drawn)

    async def show(self, picture: Picture) -> None:
        """Show a picture."""
        self._note.visible = picture.left_out > 0
        self._note.text = f"{picture.left_out} more have no place here."
        if picture.is_empty:
            self._drawn.show(shape("div", _NOTHING, class_="nm-pane-empty", role="status"))
            self._only(self._drawn)
        elif picture.rows is not None and self._table is not None:
            self._only(self._table)
            columns = table_columns(picture.rows.schema)
            if json.dumps(columns) != self._columns:
                self._columns = json.dumps(columns)
                await self._table.begin(columns, _NOTHING)
            await self._table.replace(table_rows(picture.rows), _NOTHING)
        elif picture.kind is PanelKind.STAT:
            self._drawn.show(tiles(picture.values["figures"], picture.values["unit"]))
            self._only(self._drawn)
        else:
            self._chart.show(picture.values)
            self._only(self._chart)

    def move(self, at: Interval) -> None:
        """Nothing is new, but time has moved on."""
        if self._chart.visible:
            self._chart.go_on(at)

    def fail(self, error: NilometerError) -> None:
        """Say why nothing can be shown."""
        parts = [shape("div", error.message, class_="nm-what")]
        parts += [
            shape("div", one, class_="nm-small nm-detail")
            for one in (error.detail, error.hint and f"Hint: {error.hint}")
            if one
        ]
        self._note.visible = False
        self._drawn.show(shape("div", *parts, class_="nm-problem", role="alert"))
        self._only(self._drawn)

    def _only(self, shown: ui.element) -> None:
        for one in (self._chart, self._table, self._drawn):
            if one is not None:
                one.set_visibility(one is shown)


def tiles(figures: list[dict[str, Any]], unit: str) -> Shape:
    """Figures, each with its name and how it is computed."""
    return shape("div", *(_tile(one, unit) for one in figures), class_="nm-tiles")


def _tile(figure: dict[str, Any], unit: str) -> Shape:
    number: list[Shape | str] = [shown_number(figure["value"])]
    if unit:
        number.append(shape("small", unit))
    parts = [shape("b", *number), shape("span", str(figure["name"]))]
    points = [(x, y) for x, y in figure["points"] if y is not None]
    if len(points) > 1:
        parts.append(_spark(points))
    return shape("div", *parts, class_="nm-tile")


def _spark(points: list[tuple[float, float]]) -> Shape:
    first, last = points[0][0], points[-1][0]
    low, high = min(y for _, y in points), max(y for _, y in points)
    wide, tall = (last - first) or 1.0, (high - low) or 1.0
    placed = [
        ((x - first) / wide * _WIDE, _HIGH - 3 - (y - low) / tall * (_HIGH - 6)) for x, y in points
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    return shape(
        "svg",
        shape("polygon", points=f"0,{_HIGH} {line} {_WIDE},{_HIGH}", class_="area"),
        shape("polyline", points=line, vector_effect="non-scaling-stroke"),
        viewBox=f"0 0 {_WIDE:g} {_HIGH:g}",
        preserveAspectRatio="none",
        aria_hidden="true",
        class_="nm-svg nm-spark",
    )


def shown_number(value: float) -> str:
    """A number with as many digits as people read at a glance.

    >>> shown_number(1234567), shown_number(3.14159), shown_number(2e-7), shown_number(1234.56)
    ('1 234 567', '3.142', '2e-07', '1 234.6')
    """
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}".replace(",", " ")
    if 1000 <= abs(value) < 1e9:
        return f"{value:,.1f}".replace(",", " ")
    return f"{value:.4g}"
