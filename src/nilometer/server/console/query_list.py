"""One query in the list of queries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from nicegui import ui

from nilometer.database.query_status import MOVED, EngineChoice, HealthSample, QueryStatus
from nilometer.server.console.access import Console
from nilometer.server.console.drawing import Drawing, Shape, shape, shortened
from nilometer.server.console.figures import count_text
from nilometer.server.console.query_actions import QueryActions
from nilometer.server.console.wording import (
    PHASES,
    bytes_words,
    instant_words,
    length_words,
    rate_words,
    state_words,
)

_SHOWN: Final = 60
_ENGINES: Final[Mapping[str, tuple[str, str]]] = {
    EngineChoice.OWN: ("own engine", "it has a streaming query of Spark of its own"),
    MOVED: ("moved", "it took more than its share of a micro-batch: it has an engine of its own"),
}
_WIDE, _HIGH = 140, 36


class QueryRow:
    """A card that is kept up to date."""

    def __init__(
        self, console: Console, status: QueryStatus, changed: Callable[[], Awaitable[None]]
    ) -> None:
        with ui.element("li").classes("nm-card nm-query") as self.card:
            with ui.element("div").classes("nm-query-head"):
                self._head = Drawing(query_head(status))
                with ui.element("div").classes("nm-row nm-query-buttons"):
                    self._actions = QueryActions(console, status.name, changed)
            text = shortened(" ".join(status.text.split()), 400)
            ui.label(text).classes("nm-mono nm-soft nm-oneline")
            with ui.element("div").classes("nm-query-foot"):
                self._figures = Drawing(query_figures(status, ()))
                self._spark = Drawing(sparkline(()))
            self._problem = Drawing(query_problem(status))

    def show(self, status: QueryStatus, samples: Sequence[HealthSample]) -> None:
        """Say how it is doing now."""
        self._head.show(query_head(status))
        self._actions.show(status)
        self._figures.show(query_figures(status, samples))
        self._spark.show(sparkline(samples))
        self._problem.show(query_problem(status))


def query_address(name: str) -> str:
    """The page of a query."""
    return f"/console/queries/{quote(name, safe='')}"


def query_head(status: QueryStatus, *, is_linked: bool = True) -> Shape:
    """Its name, where it is, what it emits."""
    name: Shape | str = status.name
    if is_linked:
        name = shape("a", status.name, href=query_address(status.name))
    chips = [shape("span", status.emits, class_="nm-chip")]
    if status.is_temporary:
        told = "goes when nobody follows it"
        chips.append(shape("span", "temporary", class_="nm-chip", title=told))
    if status.engine in _ENGINES:
        words, why = _ENGINES[status.engine]
        chips.append(shape("span", words, class_="nm-chip", title=why))
    phase = state_words(PHASES[status.phase], str(status.phase))
    return shape("div", shape("h2", name, class_="nm-title"), phase, *chips, class_="nm-row")


def query_figures(status: QueryStatus, samples: Sequence[HealthSample]) -> Shape:
    """What it has done, and what it takes."""
    last = samples[-1] if samples else None
    figures = [
        ("results", count_text(status.result_rows)),
        ("out", "—" if last is None else rate_words(last.output_rows_per_second)),
        ("in", "—" if last is None else rate_words(last.input_rows_per_second)),
        ("stored", bytes_words(status.result_bytes)),
        ("state", bytes_words(status.state_bytes)),
        ("watermark behind", length_words(None if last is None else last.watermark_lag)),
    ]
    told = (shape("div", shape("b", value), shape("span", name)) for name, value in figures)
    return shape("div", *told, class_="nm-figures")


def query_problem(status: QueryStatus) -> Shape:
    """Its last error, how often it has failed, and when it is tried again."""
    if status.error is None:
        return shape("div")
    parts = [shape("div", status.error, class_="nm-what")]
    if status.failures:
        times = "once" if status.failures == 1 else f"{status.failures} times in a row"
        again = ""
        if status.next_try is not None:
            again = f"; the next attempt is at {instant_words(status.next_try)} UTC"
        parts.append(shape("div", f"it has failed {times}{again}", class_="nm-small nm-soft"))
    return shape("div", *parts, class_="nm-problem", role="alert")


def sparkline(samples: Sequence[HealthSample]) -> Shape:
    """Results per second of the last micro-batches."""
    rates = [one.output_rows_per_second for one in samples[-_SHOWN:]]
    most = max(rates, default=0.0) or 1.0
    step = _WIDE / max(1, len(rates) - 1)
    points = [
        (place * step, _HIGH - 3 - rate / most * (_HIGH - 6)) for place, rate in enumerate(rates)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"0,{_HIGH} {line} {_WIDE},{_HIGH}" if points else ""
    told = f"results per second, at most {rate_words(max(rates, default=0.0))}"
    return shape(
        "svg",
        shape("polygon", points=area, class_="area"),
        shape("polyline", points=line),
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        width=_WIDE,
        height=_HIGH,
        role="img",
        aria_label=told,
        class_="nm-svg nm-spark",
    )
