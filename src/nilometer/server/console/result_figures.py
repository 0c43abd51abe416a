"""How a query is doing, in a line of figures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from nicegui import ui

from nilometer.database.query_status import HealthSample, QueryPhase, QueryStatus
from nilometer.errors import NilometerError
from nilometer.server.console.figures import count_text, span_text
from nilometer.server.console.recent_rate import rate_out, recent_rate
from nilometer.server.console.wording import PHASES, instant_words, rate_words
from nilometer.server.service import Service

_EVERY_SECONDS: Final = 1.0


class ResultFigures:
    """Phase, rows per second, rows in all, and how far the results are complete.

    On the page of the query itself, only what is not shown above them.
    """

    def __init__(
        self, service: Service, name: str, clock: Callable[[], int], *, is_alone: bool
    ) -> None:
        self._service = service
        self._name = name
        self._clock = clock
        self.instant: int | None = None
        """The instant of the answer that is shown; None: no answer is shown."""
        self._phase = ui.label("starting").classes("nm-chip nm-phase").props("role=status")
        self._phase.visible = is_alone
        with ui.element("div").classes("nm-figures"):
            self._rate = _figure(after="new rows")
            self._total = _figure(after="rows")
            self._reached = _figure()
        for one in (self._rate, self._total):
            one.whole.visible = is_alone

    async def keep(self) -> None:
        """Check about every second, for as long as the query exists."""
        while True:
            try:
                samples = await self._service.queries.health(self._name)
                self._show(await self._service.queries.status(self._name), samples)
            except NilometerError:
                self._phase.text = "gone"
                return
            await asyncio.sleep(_EVERY_SECONDS)

    def _show(self, status: QueryStatus, samples: Sequence[HealthSample]) -> None:
        now = self._clock()
        rate = recent_rate(samples, rate_out, now)
        self._phase.text = status.phase.value
        colours = {kind: f"nm-{kind}" for kind in PHASES.values()}
        self._phase.classes(
            remove=" ".join(colours.values()), add=colours[PHASES[QueryPhase(status.phase)]]
        )
        self._rate.number.text = "—" if rate is None else rate_words(rate)
        self._total.number.text = count_text(status.result_rows)
        self._show_reached(status.watermark if self.instant is None else self.instant, now)

    def _show_reached(self, reached: int | None, now: int) -> None:
        if reached is None:
            return
        self._reached.before.text = "complete up to" if self.instant is None else "answer as of"
        self._reached.number.text = instant_words(reached)
        self._reached.after.text = f"UTC, {span_text(max(0, now - reached))} ago"


@dataclass(frozen=True)
class _Figure:
    whole: ui.element
    before: ui.label
    number: ui.label
    after: ui.label


def _figure(after: str = "") -> _Figure:
    with ui.element("div") as whole:
        return _Figure(
            whole,
            ui.label().classes("nm-soft nm-small"),
            ui.label().classes("nm-figure"),
            ui.label(after).classes("nm-soft nm-small"),
        )
