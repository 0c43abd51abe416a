"""How a query is doing, in a line of figures."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nicegui import ui

from nilometer.database.query_status import QueryPhase, QueryStatus
from nilometer.errors import NilometerError
from nilometer.server.console.figures import clock_text, count_text, span_text
from nilometer.server.service import Service

_EVERY_SECONDS: Final = 1.0
_RATE_LOOKS: Final = 6
"""The rate is that of the last seconds."""
_COLOURS: Final = {
    QueryPhase.RUNNING: "nm-good",
    QueryPhase.RESTARTING: "nm-warn",
    QueryPhase.STOPPED: "nm-soft",
    QueryPhase.FAILED: "nm-bad",
}


class ResultFigures:
    """Phase, rows per second, rows in all, and how far the results are complete."""

    def __init__(self, service: Service, name: str, clock: Callable[[], int]) -> None:
        self._service = service
        self._name = name
        self._clock = clock
        self._seen: deque[tuple[int, int]] = deque(maxlen=_RATE_LOOKS)
        self.instant: int | None = None
        """For which instant an answer is shown; None: none is."""
        self._phase = ui.label("starting").classes("nm-chip nm-phase").props("role=status")
        with ui.element("div").classes("nm-figures"):
            self._rate = _figure(after="rows/s")
            self._total = _figure(after="rows")
            self._reached = _figure()

    async def keep(self) -> None:
        """Look about every second, for as long as the query is there."""
        while True:
            try:
                self._show(await self._service.query(self._name))
            except NilometerError:
                self._phase.text = "gone"
                return
            await asyncio.sleep(_EVERY_SECONDS)

    def _show(self, status: QueryStatus) -> None:
        now = self._clock()
        self._seen.append((now, status.result_rows))
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        rate = (after - before) * 1_000_000 / (last - first) if last > first else 0.0
        self._phase.text = status.phase.value
        self._phase.classes(
            remove=" ".join(_COLOURS.values()), add=_COLOURS[QueryPhase(status.phase)]
        )
        self._rate.number.text = count_text(rate)
        self._total.number.text = count_text(status.result_rows)
        self._show_reached(status.watermark if self.instant is None else self.instant, now)

    def _show_reached(self, reached: int | None, now: int) -> None:
        if reached is None:
            return
        self._reached.before.text = "complete up to" if self.instant is None else "answer as of"
        self._reached.number.text = clock_text(reached)
        self._reached.after.text = f"UTC, {span_text(max(0, now - reached))} ago"


@dataclass(frozen=True)
class _Figure:
    before: ui.label
    number: ui.label
    after: ui.label


def _figure(after: str = "") -> _Figure:
    with ui.element("div"):
        return _Figure(
            ui.label().classes("nm-soft nm-small"),
            ui.label().classes("nm-figure"),
            ui.label(after).classes("nm-soft nm-small"),
        )
