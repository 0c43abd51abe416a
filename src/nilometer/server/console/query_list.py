"""One query in the list of queries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from nicegui import ui

from nilometer.database.query_status import MOVED, EngineChoice, HealthSample, QueryStatus
from nilometer.log.clock import now_micros
from nilometer.server.console.access import Console
from nilometer.server.console.drawing import Drawing, Shape, shape, shortened
from nilometer.server.console.figures import count_text
from nilometer.server.console.glossary import TERMS, term
from nilometer.server.console.query_actions import QueryActions
from nilometer.server.console.recent_rate import rate_in, rate_out, recent_rate
from nilometer.server.console.wording import (
    PHASES,
    bytes_words,
    instant_words,
    known_lag,
    length_words,
    rate_words,
    state_words,
)

_SHOWN: Final = 60
_ENGINES: Final[Mapping[str, tuple[str, str]]] = {
    EngineChoice.OWN: ("own engine", "it has its own Spark streaming query"),
    MOVED: ("moved", "it took more than its share of a micro-batch: it has an engine of its own"),
}
_WIDE, _HIGH = 140, 36
_TERMS: Final = {"state": "state", "watermark behind": "watermark"}


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
                    self._actions.show(status)
            text = shortened(" ".join(status.text.split()), 400)
            ui.label(text).classes("nm-mono nm-soft nm-oneline")
            with ui.element("div").classes("nm-query-foot"):
                self._figures = Drawing(query_figures(status, (), now_micros()))
                self._spark = Drawing(sparkline((), now_micros()))
            self._problem = Drawing(query_problem(status))

    def show(self, status: QueryStatus, samples: Sequence[HealthSample]) -> None:
        """Show how it is doing now."""
        self._head.show(query_head(status))
        self._actions.show(status)
        self._figures.show(query_figures(status, samples, now_micros()))
        self._spark.show(sparkline(samples, now_micros()))
        self._problem.show(query_problem(status))


def query_address(name: str) -> str:
    """The page of a query."""
    return f"/console/queries/{quote(name, safe='')}"


def query_head(status: QueryStatus, *, is_linked: bool = True) -> Shape:
    """Its name, engine and what it emits; a list explains words by pointing, a page by a mark."""
    name: Shape | str = status.name
    emits: Shape | str = term(status.emits)
    if is_linked:
        name = shape("a", status.name, href=query_address(status.name))
        emits = status.emits
    chips = [shape("span", emits, class_="nm-chip", title=TERMS[status.emits])]
    if status.is_temporary:
        text = TERMS["temporary query"]
        chips.append(shape("span", "temporary", class_="nm-chip", title=text))
    if status.engine in _ENGINES:
        words, why = _ENGINES[status.engine]
        chips.append(shape("span", words, class_="nm-chip", title=why))
    phase = state_words(PHASES[status.phase], str(status.phase))
    return shape("div", shape("h2", name, class_="nm-title"), phase, *chips, class_="nm-row")


def query_figures(
    status: QueryStatus, samples: Sequence[HealthSample], now: int, *, has_help: bool = False
) -> Shape:
    """What it has done, and what it uses; with help, the words are explained."""
    behind = known_lag(None if status.watermark is None else max(0, now - status.watermark))
    figures = [
        ("results", count_text(status.result_rows)),
        ("out", _rate_words(recent_rate(samples, rate_out, now))),
        ("in", _rate_words(recent_rate(samples, rate_in, now))),
        ("stored", bytes_words(status.result_bytes)),
        ("state", bytes_words(status.state_bytes)),
        ("watermark behind", length_words(behind)),
        ("rows behind", "—" if status.rows_behind is None else count_text(status.rows_behind)),
    ]
    if status.dead_letters and not has_help:  # where there is help, advice says more about them
        figures.append(("rows left out", count_text(status.dead_letters)))
    drawn = (
        shape("div", shape("b", value), _label(name) if has_help else shape("span", name))
        for name, value in figures
    )
    return shape("div", *drawn, class_="nm-figures")


def _label(figure: str) -> Shape:
    word = _TERMS.get(figure)
    return shape("span", figure) if word is None else term(word, figure)


def _rate_words(rate: float | None) -> str:
    return "—" if rate is None else rate_words(rate)


def query_problem(status: QueryStatus) -> Shape:
    """Why it makes no progress: its last error, and when it is tried again."""
    if status.stalled is not None:
        message = shape("div", f"It is stalled: {status.stalled.cause}.", class_="nm-what")
        return shape("div", message, class_="nm-problem nm-waits", role="alert")
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


def sparkline(samples: Sequence[HealthSample], now: int) -> Shape:
    """Results per second of the last micro-batches, up to now: silence is a gap at the end."""
    shown = samples[-_SHOWN:]
    rates = [one.output_rows_per_second for one in shown]
    highest = max(rates, default=0.0) or 1.0
    first = min((one.time for one in shown), default=now)
    span = max(1, now - first)
    points = [
        (
            min(_WIDE, (one.time - first) / span * _WIDE),
            _HIGH - 3 - one.output_rows_per_second / highest * (_HIGH - 6),
        )
        for one in shown
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"0,{_HIGH} {line} {points[-1][0]:.1f},{_HIGH}" if points else ""
    label = f"results per second, at most {rate_words(max(rates, default=0.0))}"
    return shape(
        "svg",
        shape("polygon", points=area, class_="area"),
        shape("polyline", points=line),
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        width=_WIDE,
        height=_HIGH,
        role="img",
        aria_label=label,
        class_="nm-svg nm-spark",
    )
