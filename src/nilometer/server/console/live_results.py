"""The results of a query as they come: figures, a chart, and a table of the newest rows."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, Final

import pyarrow as pa
from nicegui import background_tasks, ui

from nilometer.database.query_status import QueryPhase
from nilometer.errors import InputError, NilometerError, in_one_line
from nilometer.log.clock import now_micros
from nilometer.server.console.chart_points import DIFF, TIME
from nilometer.server.console.live_elements import TABLE_ROWS, TOGGLE, LiveTable
from nilometer.server.console.result_chart import ResultChart
from nilometer.server.console.result_figures import ResultFigures
from nilometer.server.console.table_rows import in_order, table_columns, table_rows
from nilometer.server.results.chunk import Chunk
from nilometer.server.results.offset import Offset
from nilometer.server.results.query_results import CHANGELOG, QueryResults
from nilometer.server.service import Service

REFRESH_SECONDS: Final = 0.4
AT_ONCE: Final = 2000
"""Rows that one refresh takes; whoever falls further behind is shown only the newest."""
_FIRST_LOOK_SECONDS: Final = 0.3
_PATIENCE_SECONDS: Final = 60.0
_ANSWER: Final = "Current answer"
_CHANGES: Final = "Changes"
_LOOKING: Final = "Looking for results …"
_WAITING: Final = "Waiting for the first rows …"
_STOPPED: Final = "It is stopped. Rows appear here when it is started."
_EMPTY: Final = "The answer is empty at present."


def live_results(
    service: Service, name: str, visitor: str, *, is_alone: bool = True
) -> LiveResults:
    """Draw the results of a named query here, and keep them current while the page is open.

    `is_alone`: nothing else on the page says how the query is doing.
    """
    return LiveResults(service, name, visitor, is_alone)


class LiveResults:
    """The view of one query's results; ends with the page, or when it is closed."""

    def __init__(self, service: Service, name: str, visitor: str, is_alone: bool) -> None:
        self.name = name
        self._is_alone = is_alone
        self._visitor = visitor
        self._service = service
        self._results: QueryResults | None = None
        self._is_paused = False
        self._is_stale = False
        self._shows_answer = False
        with ui.element("section").classes("nm-results").props('aria-label="Results"'):
            self._draw()
        tasks = [background_tasks.create(one()) for one in (self._run, self._figures.keep)]
        self._tasks: list[asyncio.Task[Any]] = [one for one in tasks if one is not None]
        ui.context.client.on_delete(self.close)

    def close(self) -> None:
        """Stop following; what is shown stays."""
        for task in self._tasks:
            task.cancel()

    def _draw(self) -> None:
        with ui.element("div").classes("nm-bar"):
            self._figures = ResultFigures(
                self._service, self.name, now_micros, is_alone=self._is_alone
            )
            ui.element("div").classes("nm-grow")
            self._form = ui.toggle([_ANSWER, _CHANGES], value=_ANSWER).props(
                f'{TOGGLE} aria-label="What the table shows"'
            )
            self._form.classes("nm-toggle").on_value_change(self._begin_anew)
            self._form.visible = False
            self._pause = ui.button("Pause", icon="pause", color=None, on_click=self._turn_pause)
            self._pause.props("flat dense no-caps").classes("nm-quiet")
        self._notice = ui.label().classes("nm-notice").props("role=status")
        self._notice.visible = False
        with ui.element("div").classes("nm-both"):
            with ui.element("div").classes("nm-half"):
                self._chart = ResultChart(self._begin_anew)
            with ui.element("div").classes("nm-half"):
                self._table = LiveTable("Newest rows", _LOOKING)

    async def _run(self) -> None:
        try:
            self._results = await self._open()
            if self._results.emits == CHANGELOG:
                self._form.visible = self._shows_answer = True
            self._chart.offer(self._results.schema)
            with self._service.followers.one(self.name, self._visitor):
                await self._follow(self._results)
        except NilometerError as error:
            self._say(in_one_line(error))

    async def _open(self) -> QueryResults:
        """The results, once the query has started to write them."""
        deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        while True:
            try:
                return await self._service.look(lambda: self._service.queries.results(self.name))
            except InputError:
                if asyncio.get_running_loop().time() > deadline:
                    raise
            await asyncio.sleep(_FIRST_LOOK_SECONDS)

    async def _follow(self, results: QueryResults) -> None:
        while True:
            offset = await self._show_newest(results)
            async with aclosing(results.follow(offset, max_rows=AT_ONCE)) as chunks:
                async for chunk in chunks:
                    is_behind = chunk.rows.num_rows >= AT_ONCE
                    if is_behind and not self._is_paused:
                        self._say(
                            "Rows arrive faster than they can be shown: these are the newest."
                        )
                    if is_behind or (self._is_stale and not self._is_paused):
                        break
                    await self._show(results, chunk)
                    await asyncio.sleep(REFRESH_SECONDS)
            await asyncio.sleep(REFRESH_SECONDS)

    async def _show_newest(self, results: QueryResults) -> Offset:
        """Start the table and the chart with the newest rows; later ones are added to them."""
        page = await results.latest(TABLE_ROWS)
        if not self._is_paused:
            self._is_stale = False
            columns = table_columns(self._shown_schema(results))
            await self._table.begin(columns, await self._waiting())
            self._chart.begin()
            await self._show(results, page)
        return page.next

    async def _waiting(self) -> str:
        """What a table without rows says."""
        if self._shows_answer:
            return _LOOKING
        status = await self._service.queries.status(self.name)
        return _STOPPED if status.phase is QueryPhase.STOPPED else _WAITING

    async def _show(self, results: QueryResults, chunk: Chunk) -> None:
        if self._is_paused:
            self._is_stale = self._is_stale or chunk.rows.num_rows > 0
            return
        if chunk.rows.num_rows:
            self._chart.add(chunk.rows)
        if self._shows_answer:
            answer = await results.answer(TABLE_ROWS)
            self._figures.instant = answer.instant
            await self._table.replace(table_rows(in_order(answer.rows)), _EMPTY)
        elif chunk.rows.num_rows:
            await self._table.add(
                table_rows(chunk.rows.slice(max(0, chunk.rows.num_rows - TABLE_ROWS)))
            )

    def _shown_schema(self, results: QueryResults) -> pa.Schema:
        if not self._shows_answer:
            return results.schema
        return pa.schema([one for one in results.schema if one.name not in (TIME, DIFF)])

    def _begin_anew(self) -> None:
        self._shows_answer = self._form.visible and self._form.value == _ANSWER
        self._is_stale = True

    def _turn_pause(self) -> None:
        self._is_paused = not self._is_paused
        self._pause.text = "Go on" if self._is_paused else "Pause"
        self._pause.props(f"icon={'play_arrow' if self._is_paused else 'pause'}")

    def _say(self, text: str) -> None:
        self._notice.text = text
        self._notice.visible = True
