"""Health of a query over the last minutes: small charts that move, and its streams as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicegui import ui

from nilometer.database.query_status import HealthSample
from nilometer.server.console.drawing import Drawing, Shape, shape, table
from nilometer.server.console.figures import count_text
from nilometer.server.console.wording import instant_words, length_words

_MOST_POINTS: Final = 150
_SPAN: Final = 600_000
"""Ten minutes, in milliseconds."""
_TEXT: Final = "#7b8f98"
_GRID: Final = "rgba(123, 143, 152, 0.22)"

Value = Callable[[HealthSample], float | None]


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    name: str
    color: str
    value: Value
    is_limit: bool = False


@dataclass(frozen=True)
class ChartKind:
    """What a chart shows."""

    title: str
    unit: str
    lines: tuple[Line, ...]


def _lag(sample: HealthSample) -> float | None:
    return None if sample.watermark_lag is None else sample.watermark_lag / 1e6


def _kept(sample: HealthSample) -> float:
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
        "Micro-batch against its budget",
        "ms",
        (
            Line("took", "#1c9bb3", lambda one: one.batch_millis),
            Line("budget", "#d6453d", lambda one: one.budget_millis, is_limit=True),
        ),
    ),
    ChartKind("Watermark behind the clock", "s", (Line("lag", "#7c6cf0", _lag),)),
    ChartKind("Rows kept because they may still count", "rows", (Line("kept", "#3a9d5d", _kept),)),
    ChartKind("State", "kB", (Line("state", "#3a9d5d", lambda one: one.state_bytes / 1024),)),
    ChartKind(
        "Late rows, dropped so far", "rows", (Line("late", "#d6453d", lambda one: one.late_rows),)
    ),
)


class HealthCharts:
    """Charts in the current place; `show` gives them points."""

    def __init__(self) -> None:
        with ui.element("div").classes("nm-charts"):
            self._charts = [self._chart(kind) for kind in CHARTS]
        self._streams = Drawing(_streams(None)).classes("nm-scroll")

    def show(self, samples: Sequence[HealthSample], now: int) -> None:
        """Show these, oldest first, over the ten minutes before an instant."""
        kept = thinned(samples)
        for kind, chart in zip(CHARTS, self._charts, strict=True):
            chart.options["xAxis"] |= {"min": now // 1000 - _SPAN, "max": now // 1000}
            for line, series in zip(kind.lines, chart.options["series"], strict=True):
                series["data"] = [(one.time // 1000, _rounded(line.value(one))) for one in kept]
            chart.update()
        self._streams.show(_streams(samples[-1] if samples else None))

    def _chart(self, kind: ChartKind) -> ui.echart:
        with ui.element("section").classes("nm-card nm-gauge").props("role=group"):
            with ui.element("div").classes("nm-gauge-head"):
                Drawing(shape("h3", kind.title, class_="nm-small"))
                ui.label(kind.unit).classes("nm-small nm-soft")
            return ui.echart(_options(kind)).classes("nm-echart")


def thinned(samples: Sequence[HealthSample]) -> Sequence[HealthSample]:
    """At most so many of them as a chart shows, the last one among them."""
    step = -(-len(samples) // _MOST_POINTS) or 1
    return samples[(len(samples) - 1) % step :: step] if samples else samples


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _options(kind: ChartKind) -> dict[str, Any]:
    axis = {
        "axisLabel": {"color": _TEXT, "fontSize": 11, "hideOverlap": True},
        "axisTick": {"show": False},
    }
    return {
        "animation": False,
        "textStyle": {"fontFamily": "Roboto, system-ui, sans-serif"},
        "grid": {"left": 8, "right": 14, "top": 30, "bottom": 4, "containLabel": True},
        "tooltip": {"trigger": "axis", "confine": True, "renderMode": "richText"},
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
            "min": 0,
            "splitNumber": 3,
            "splitLine": {"lineStyle": {"color": _GRID}},
        },
        "series": [_series(line) for line in kind.lines],
    }


def _series(line: Line) -> dict[str, Any]:
    style = {"color": line.color, "width": 2, "type": "dashed" if line.is_limit else "solid"}
    series: dict[str, Any] = {
        "name": line.name,
        "type": "line",
        "showSymbol": False,
        "itemStyle": {"color": line.color},
        "lineStyle": style,
        "data": [],
    }
    return series if line.is_limit else series | {"areaStyle": {"opacity": 0.12}}


def _streams(sample: HealthSample | None) -> Shape:
    """Each stream after the last micro-batch."""
    headings = ("Stream", "Rows", "Late", "Without time", "Buffered", "Watermark", "Behind")
    if sample is None or not sample.streams:
        return shape("p", "No micro-batch has finished yet.", class_="nm-soft nm-pad")
    rows = [
        (
            name,
            count_text(one.rows),
            count_text(one.late),
            count_text(one.without_time),
            count_text(one.buffered),
            instant_words(one.watermark),
            length_words(None if one.watermark is None else max(0, sample.time - one.watermark)),
        )
        for name, one in sample.streams.items()
        if not one.is_internal
    ]
    return table(headings, rows)
