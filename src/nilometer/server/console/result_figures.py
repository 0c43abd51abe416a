"""How a query is doing, in a line of figures."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
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
            self._rate = _figure("rows/s")
            self._total = _figure("rows")
            self._complete = _figure("")

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
        self._rate[0].text = count_text(rate)
        self._total[0].text = count_text(status.result_rows)
        reached = status.watermark if self.instant is None else self.instant
        self._complete[0].text = "" if reached is None else clock_text(reached)
        self._complete[1].text = "" if reached is None else _reached(self.instant, reached, now)


def _reached(instant: int | None, reached: int, now: int) -> str:
    behind = span_text(max(0, now - reached))
    return f"UTC: {'complete up to' if instant is None else 'the answer at'} then, {behind} ago"


def _figure(words: str) -> tuple[ui.label, ui.label]:
    with ui.element("div"):
        return ui.label().classes("nm-figure"), ui.label(words).classes("nm-soft nm-small")
