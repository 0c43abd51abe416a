"""A newcomer's first query, in three steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.sensors.declaration import Declaration
from nilometer.server.console.access import Console
from nilometer.server.console.examples import DEMO_STREAM, first_query
from nilometer.server.scopes import Scope

GUIDED_COOKIE: Final = "nilometer_guided"
_MOST: Final = 6
_HEADS: Final = ("Pick a stream", "Look at the query", "Run it and watch")


class Guide:
    """Leads from a stream to a running query; can be dismissed."""

    def __init__(
        self,
        console: Console,
        write: Callable[[str], None],
        run: Callable[[], Awaitable[None]],
        streams: Callable[[], Awaitable[Sequence[Declaration]]],
    ) -> None:
        self._console = console
        self._write = write
        self._run = run
        self._streams = streams
        self._step = 0
        self._card = ui.element("section").classes("nm-card nm-guide")
        self._card.props('aria-label="Your first query"')

    async def draw(self) -> None:
        """Show the steps in their current state."""
        declared = await self._streams()
        self._card.clear()
        with self._card:
            with ui.element("div").classes("nm-bar"):
                ui.label("Your first query").classes("nm-title").props("role=heading aria-level=2")
                ui.element("div").classes("nm-grow")
                close = ui.button(icon="close", color=None, on_click=self._dismiss)
                close.props('flat round dense size=sm aria-label="Close the guide"')
                close.classes("nm-quiet")
            with ui.element("ol").classes("nm-steps"):
                self._draw_step(0, lambda: self._draw_streams(declared))
                self._draw_step(1, self._draw_query)
                self._draw_step(2, self._draw_run)

    async def running(self) -> None:
        """A query is running: show what comes next."""
        self._step = 2
        await self.draw()

    def _draw_step(self, number: int, content: Callable[[], None]) -> None:
        state = "nm-past" if number < self._step else "nm-now" if number == self._step else ""
        with ui.element("li").classes(state):
            ui.label(_HEADS[number]).classes("nm-step")
            if number == self._step:
                content()

    def _draw_streams(self, declared: Sequence[Declaration]) -> None:
        if not declared:
            self._draw_no_streams()
            return
        ui.label("These streams are there:").classes("nm-soft nm-small")
        with ui.element("div").classes("nm-picks"):
            for one in declared[:_MOST]:
                button = ui.button(color=None, on_click=lambda one=one: self._pick(one)).classes(
                    "nm-pick"
                )
                with button.props("flat no-caps align=left"), ui.element("div"):
                    ui.label(one.name).classes("nm-pick-name")
                    ui.label(_columns(one)).classes("nm-pick-columns")
        if len(declared) > _MOST:
            more = f"and {len(declared) - _MOST} more, on the page of sensors"
            ui.link(more, "/console/sensors").classes("nm-link nm-small")

    def _draw_no_streams(self) -> None:
        ui.label("There are no sensors yet. Start with simulated weather:").classes(
            "nm-soft nm-small"
        )
        button = ui.button(
            "Create a sample stream", icon="add", color=None, on_click=self._create_sample
        )
        button.classes("nm-first").props("unelevated no-caps")
        refusal = self._console.visitor().refusal(Scope.ADMIN)
        if refusal is not None:
            button.disable()
            ui.label(f"You cannot: {refusal}.").classes("nm-small nm-warn")

    def _draw_query(self) -> None:
        ui.label(
            "It is in the editor now. [RANGE 30 SECONDS] is a window: at every instant the query "
            "sees the readings of the last 30 seconds."
        ).classes("nm-soft nm-small")
        with ui.element("div").classes("nm-row"):
            ui.button("Run it", icon="play_arrow", color=None, on_click=self._run).classes(
                "nm-first"
            ).props("unelevated no-caps")
            ui.button("Back", color=None, on_click=self._back).classes("nm-quiet").props(
                "flat no-caps"
            )

    def _draw_run(self) -> None:
        ui.label("Rows and the chart follow the sensors as readings arrive.").classes(
            "nm-soft nm-small"
        )
        ui.label("Then:").classes("nm-soft nm-small")
        with ui.element("ul").classes("nm-small nm-next"):
            for text in (
                "Change the window and run it again.",
                "Join two streams: see Examples.",
                "Keep as … lets it run when you leave.",
            ):
                with ui.element("li"):
                    ui.label(text)
        ui.button("Done", color=None, on_click=self._dismiss).classes("nm-second").props(
            "unelevated no-caps"
        )

    async def _pick(self, declared: Declaration) -> None:
        self._write(first_query(declared))
        self._step = 1
        await self.draw()

    async def _back(self) -> None:
        self._step = 0
        await self.draw()

    async def _create_sample(self) -> None:
        try:
            await self._console.service.execute(DEMO_STREAM, self._console.visitor().asker)
        except NilometerError as error:
            ui.notify(error.message, type="negative")
        await self.draw()

    def _dismiss(self) -> None:
        self._card.visible = False
        ui.run_javascript(
            f"document.cookie='{GUIDED_COOKIE}=yes;path=/;max-age=31536000;samesite=lax'"
        )


def _columns(declared: Declaration) -> str:
    names = [*(declared.static.names if declared.static else ()), *declared.readings.names]
    return ", ".join(names)
