"""Health of a query over the last minutes: small live charts, and its streams as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicegui import ui

from nilometer.database.query_status import HealthSample
from nilometer.server.console.drawing import Drawing, Shape, shape, table
from nilometer.server.console.figures import count_text
from nilometer.server.console.glossary import term
from nilometer.server.console.wording import instant_words, known_lag, length_words

_MOST_POINTS: Final = 150
_SPAN: Final = 600_000
"""Ten minutes, in milliseconds."""
_BYTES: Final = "bytes"
_TEXT: Final = "#7b8f98"
_GRID: Final = "rgba(123, 143, 152, 0.22)"

_GAP: Final = 30_000
"""A line is broken where there was nothing for longer than this, in milliseconds."""

Value = Callable[[HealthSample], float | None]
Point = tuple[int, float | None]
"""Milliseconds since 1970, and a value."""


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    name: str
    color: str
    value: Value


@dataclass(frozen=True)
class ChartKind:
    """What a chart shows."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    term: str | None = None
    """The word in its title that may need explaining."""


def _lag(sample: HealthSample) -> float | None:
    lag = known_lag(sample.watermark_lag)
    return None if lag is None else lag / 1e6


def _buffered(sample: HealthSample) -> float:
    return sum(one.buffered for one in sample.streams.values())


CHARTS: Final = (
    ChartKind(
        "Rows per second",
        "rows/s",
        (
            Line("in", "#1c9bb3", lambda one: one.input_rows_per_second),
            Line("out", "#e8890c", lambda one: one.output_rows_per_second),
        ),
    ),
    ChartKind(
        "How long a micro-batch takes",
        "s",
        (Line("took", "#1c9bb3", lambda one: one.batch_millis / 1000),),
        "micro-batch",
    ),
    ChartKind("Watermark behind the clock", "s", (Line("lag", "#7c6cf0", _lag),), "watermark"),
    ChartKind(
        "Rows kept because they may still count", "rows", (Line("kept", "#3a9d5d", _buffered),)
    ),
    ChartKind("State", _BYTES, (Line("state", "#3a9d5d", lambda one: one.state_bytes),), "state"),
    ChartKind(
        "Late rows, dropped so far",
        "rows",
        (Line("late", "#d6453d", lambda one: one.late_rows),),
        "late row",
    ),
)


class HealthCharts:
    """Charts in the current place; `show` gives them points."""

    def __init__(self) -> None:
        with ui.element("div").classes("nm-charts"):
            self._charts = [self._chart(kind) for kind in CHARTS]
        self._streams = Drawing(_streams(None, 0)).classes("nm-scroll")

    def show(self, samples: Sequence[HealthSample], now: int, lag: int | None) -> None:
        """Show these samples, oldest first, over the last ten minutes, and the lag up to now."""
        shown = thinned(samples)
        behind = known_lag(lag)
        for kind, chart in zip(CHARTS, self._charts, strict=True):
            chart.options["xAxis"] |= {"min": now // 1000 - _SPAN, "max": now // 1000}
            for line, series in zip(kind.lines, chart.options["series"], strict=True):
                series["data"] = line_points(shown, line.value)
                if line.value is _lag and behind is not None:
                    series["data"].append((now // 1000, behind / 1e6))
            chart.update()
        self._streams.show(_streams(samples[-1] if samples else None, now))

    def _chart(self, kind: ChartKind) -> ui.echart:
        with ui.element("section").classes("nm-card nm-gauge").props("role=group"):
            with ui.element("div").classes("nm-gauge-head"):
                title = kind.title if kind.term is None else term(kind.term, kind.title)
                Drawing(shape("h3", title, class_="nm-small"))
                ui.label("" if kind.unit == _BYTES else kind.unit).classes("nm-small nm-soft")
            return ui.echart(_options(kind)).classes("nm-echart")


def thinned(samples: Sequence[HealthSample]) -> Sequence[HealthSample]:
    """At most as many samples as a chart shows, including the last one."""
    step = -(-len(samples) // _MOST_POINTS) or 1
    return samples[(len(samples) - 1) % step :: step] if samples else samples


def line_points(samples: Sequence[HealthSample], value: Value) -> list[Point]:
    """The points of a line, with a gap where there was no micro-batch for a long time."""
    points: list[Point] = []
    for one in samples:
        at = one.time // 1000
        if points and at - points[-1][0] > _GAP and value is not _lag:
            points.append((points[-1][0] + 1, None))
        points.append((at, _rounded(value(one))))
    return points


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _options(kind: ChartKind) -> dict[str, Any]:
    label = {"color": _TEXT, "fontSize": 11, "hideOverlap": True}
    axis = {"axisLabel": label, "axisTick": {"show": False}}
    return {
        "animation": False,
        "useUTC": True,
        "textStyle": {"fontFamily": "Roboto, system-ui, sans-serif"},
        "grid": {"left": 8, "right": 14, "top": 30, "bottom": 4, "containLabel": True},
        "tooltip": {
            "trigger": "axis",
            "confine": True,
            "renderMode": "richText",
            ":valueFormatter": _value_format(kind),
        },
        "legend": {
            "show": len(kind.lines) > 1,
            "top": 0,
            "right": 8,
            "icon": "roundRect",
            "itemWidth": 14,
            "itemHeight": 4,
            "textStyle": {"color": _TEXT},
        },
        "xAxis": axis
        | {"type": "time", "splitNumber": 4, "axisLine": {"lineStyle": {"color": _GRID}}},
        "yAxis": axis
        | {
            "type": "value",
            "axisLabel": label | _axis_format(kind),
            "minInterval": 1 if kind.unit == "rows" else 0,
            "min": 0,
            "splitNumber": 3,
            "splitLine": {"lineStyle": {"color": _GRID}},
        },
        "series": [_series(line) for line in kind.lines],
    }


def _axis_format(kind: ChartKind) -> dict[str, str]:
    """Sizes are labelled with their own units; other units stand above the chart."""
    return {":formatter": _value_format(kind)} if kind.unit == _BYTES else {}


def _value_format(kind: ChartKind) -> str:
    """The JavaScript that formats a value: a size in a fitting unit, else with a few digits."""
    if kind.unit != _BYTES:
        return f"(v) => v == null ? '—' : `${{Number(v.toPrecision(4))}} {kind.unit}`"
    return (
        "(v) => v == null ? '—' : v < 1024 ? `${v} bytes` : v < 1048576 ? "
        "`${(v / 1024).toFixed(1)} kB` : `${(v / 1048576).toFixed(1)} MB`"
    )


def _series(line: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "type": "line",
        "showSymbol": False,
        "itemStyle": {"color": line.color},
        "lineStyle": {"color": line.color, "width": 2},
        "areaStyle": {"opacity": 0.12},
        "data": [],
    }


def _streams(sample: HealthSample | None, now: int) -> Shape:
    """Each stream after the last micro-batch."""
    headings = ("Stream", "Rows", "Late", "Without time", "Shed", "Buffered", "Watermark", "Behind")
    if sample is None or not sample.streams:
        return shape("p", "No micro-batch has finished yet.", class_="nm-soft nm-pad")
    rows = [
        (
            name,
            count_text(one.rows),
            count_text(one.late),
            count_text(one.without_time),
            count_text(one.shed),
            count_text(one.buffered),
            instant_words(one.watermark),
            length_words(None if one.watermark is None else max(0, now - one.watermark)),
        )
        for name, one in sample.streams.items()
        if not one.is_internal
    ]
    return table(headings, rows)
