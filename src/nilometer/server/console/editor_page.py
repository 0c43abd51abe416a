"""The first page: write a statement, run it, watch its results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from nicegui import background_tasks, ui

from nilometer.errors import NilometerError
from nilometer.sensors.declaration import Declaration
from nilometer.server.console.access import Console
from nilometer.server.console.examples import examples
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.guide import GUIDED_COOKIE, Guide
from nilometer.server.console.keep_dialog import KeepDialog
from nilometer.server.console.live_results import LiveResults, live_results
from nilometer.server.console.outcome import show_executed, show_failure, show_heading, show_plan
from nilometer.server.console.run_statement import Explained, Ran, Started, run_statements
from nilometer.server.console.statement_editor import StatementEditor
from nilometer.server.scopes import SERVER, Scope

_HELP: Final = "Ctrl+Enter runs · Ctrl+Space completes · Escape, then Tab leaves the editor"


def add_editor_page(console: Console) -> None:
    """`/`."""

    @console_page("/")
    async def editor_page() -> None:
        with page_frame("Query", console):
            page = EditorPage(console)
            await page.fill()


class EditorPage:
    """One visitor's editor, and the query that it runs."""

    def __init__(self, console: Console) -> None:
        self._service = console.service
        self._visitor = console.visitor()
        self._started: Started | None = None
        self._results: LiveResults | None = None
        is_new = GUIDED_COOKIE not in ui.context.client.request.cookies
        with ui.element("div").classes("nm-work" if is_new else "nm-work nm-alone"):
            with ui.element("section").classes("nm-card nm-writing"):
                self._draw_tools()
                self._editor = StatementEditor(console, self.run)
                ui.label(_HELP).classes("nm-help nm-soft nm-small").props("id=editor-help")
            self._guide = Guide(console, self._editor.write, self.run, self._streams)
            self._guide_wanted = is_new
        self._outcome = ui.element("section").classes("nm-card nm-outcome").props("id=outcome")
        self._keep = KeepDialog(self._keep_as)
        ui.context.client.on_delete(self._leave)

    async def fill(self) -> None:
        """Fill in what needs the database."""
        for one in examples(await self._streams()):
            with self._menu, ui.menu_item(on_click=lambda one=one: self._editor.write(one.text)):
                ui.label(one.title)
        with self._outcome:
            self._draw_nothing()
        if self._guide_wanted:
            await self._guide.draw()

    async def run(self) -> None:
        """Run the text."""
        text = self._editor.text
        if not text:
            ui.notify("Write a statement first, or pick an example.")
            return
        self._run.props("loading")
        try:
            await self._end_run()
            await self._run_all(text)
        except NilometerError as error:
            if not self._outcome.is_deleted:
                self._editor.tell_refusal(error)
        finally:
            if not self._outcome.is_deleted:
                self._run.props(remove="loading")

    async def _run_all(self, text: str) -> None:
        """Show the result of each statement as soon as it is done."""
        ended: Ran | None = None
        async with aclosing(run_statements(self._service, text, self._visitor.asker)) as done:
            async for ran in done:
                if self._outcome.is_deleted:
                    return  # the visitor has left the page
                is_refused = ran.count == 1 and isinstance(ran.outcome, NilometerError)
                if ran.number == 1 and not is_refused:
                    self._outcome.clear()
                with self._outcome:
                    await self._show(ran)
                ended = ran
        if isinstance(ended, Ran) and not isinstance(ended.outcome, NilometerError):
            ui.run_javascript(
                "document.getElementById('outcome').scrollIntoView({block: 'nearest'})"
            )
        await self._editor.refresh_names()
        if self._started is not None and self._guide_wanted:
            await self._guide.running()

    async def _show(self, ran: Ran) -> None:
        done = ran.outcome
        if ran.count > 1:
            show_heading(ran)
        if isinstance(done, NilometerError):
            self._editor.tell_refusal(done)
            if ran.count > 1:
                show_failure(ran, done)
        elif isinstance(done, Started):
            self._show_started(done)
        elif isinstance(done, Explained):
            show_plan(done.text)
        else:
            await show_executed(done)

    def _draw_tools(self) -> None:
        with ui.element("div").classes("nm-bar"):
            self._run = ui.button("Run", icon="play_arrow", color=None, on_click=self.run)
            self._run.classes("nm-first").props("unelevated no-caps")
            self._stop = ui.button("Stop", icon="stop", color=None, on_click=self._stop_run)
            self._stop.classes("nm-second").props("unelevated no-caps")
            self._keep_button = ui.button(
                "Keep as …", icon="bookmark_add", color=None, on_click=self._ask_name
            )
            self._keep_button.classes("nm-second").props("unelevated no-caps")
            self._stop.visible = self._keep_button.visible = False
            ui.element("div").classes("nm-grow")
            with ui.button("Examples", icon="lightbulb", color=None).classes(
                "nm-quiet nm-examples"
            ) as button:
                button.props("flat no-caps aria-haspopup=menu aria-label=Examples")
                self._menu = ui.menu().props("auto-close")

    def _draw_nothing(self) -> None:
        with ui.element("div").classes("nm-empty"):
            ui.icon("show_chart").classes("nm-empty-icon")
            ui.label("Results appear here.").classes("nm-title")
            ui.label("A query over streams runs for as long as you watch it.")

    def _show_started(self, started: Started) -> None:
        self._started = started
        self._results = live_results(self._service, started.name, self._visitor.asker.name)
        self._stop.visible = self._keep_button.visible = True
        refusal = self._visitor.refusal(Scope.WRITE)
        if refusal is not None:
            self._keep_button.disable()
            with self._keep_button:
                ui.tooltip(refusal)

    async def _stop_run(self) -> None:
        """Stop the query; its results stay visible."""
        if self._started is None:
            return
        self._stop.visible = False
        try:
            await self._service.queries.stop(self._started.name, self._visitor.asker)
        except NilometerError as error:
            self._editor.tell_refusal(error)

    async def _end_run(self) -> None:
        """Drop the query that was started here, before another one starts."""
        if self._results is not None:
            self._results.close()
        ended, self._started, self._results = self._started, None, None
        self._stop.visible = self._keep_button.visible = False
        if ended is not None:
            background_tasks.create(self._drop(ended.name))

    async def _drop(self, name: str) -> None:
        try:
            await self._service.queries.drop(name, SERVER)
        except NilometerError:
            return  # it was already dropped

    async def _leave(self) -> None:
        if self._started is not None:
            await self._drop(self._started.name)

    def _ask_name(self) -> None:
        if self._started is not None:
            self._keep.ask(self._started.text)

    async def _keep_as(self, name: str, text: str) -> None:
        """Create a named query to replace the temporary one; raises if that fails."""
        await self._service.queries.create(text, self._visitor.asker, name=name)
        await self._end_run()
        self._outcome.clear()
        with self._outcome:
            with ui.element("div").classes("nm-bar nm-done").props("role=status"):
                ui.icon("check_circle").classes("nm-good")
                ui.label(f"{name} is kept: it runs until it is stopped.")
                ui.link("See how it is doing", f"/console/queries/{name}")
            self._results = live_results(self._service, name, self._visitor.asker.name)

    async def _streams(self) -> Sequence[Declaration]:
        return [one.declaration for one in await self._service.streams.declarations()]
