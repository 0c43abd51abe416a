"""What a page of an application may read: results of queries, stored, newest and to come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

import pyarrow as pa
from nicegui import background_tasks, ui
from sqlglot import exp

from nilometer.errors import (
    InputError,
    LogGapError,
    NilometerError,
    ResultsGoneError,
    UnknownNameError,
    in_one_line,
)
from nilometer.server.results.query_results import QueryResults
from nilometer.server.scopes import Asker, Scope
from nilometer.server.service import Service

_LOOK_SECONDS: Final = 0.5
"""How soon a query is found that is created while a page waits for it."""


class PageResults:
    """Reads results for one page, for as long as someone reads."""

    def __init__(self, service: Service, visitor: str) -> None:
        self._service = service
        self._visitor = visitor

    async def follow(
        self, query: str, *, newest: int, at_once: int = 500
    ) -> AsyncGenerator[pa.Table, None]:
        """The newest rows of a query, at most `newest`, then new rows as they come, until closed.

        A query that does not exist yet, or was dropped, is waited for. Whoever falls behind by more
        than `at_once` rows gets the newest next, and never those between.
        """
        while True:
            results = await self._open(query)
            try:
                with self._service.followers.one(query, self._visitor):
                    async with aclosing(_newest_first(results, newest, at_once)) as tables:
                        async for rows in tables:
                            yield rows
            except (ResultsGoneError, LogGapError):
                await asyncio.sleep(_LOOK_SECONDS)

    def feed(
        self,
        query: str,
        take: Callable[[pa.Table], None],
        trouble: Callable[[str], None],
        *,
        newest: int,
        at_once: int = 500,
    ) -> None:
        """Pass what `follow` reads to `take`, until the page being built is closed.

        `trouble` is called with one line that says why no more will come.
        """

        async def run() -> None:
            try:
                tables = self.follow(query, newest=newest, at_once=at_once)
                async with aclosing(tables) as results:
                    async for rows in results:
                        take(rows)
            except NilometerError as error:
                trouble(in_one_line(error))

        if (task := background_tasks.create(run(), name=f"page of {query}")) is not None:
            ui.context.client.on_delete(task.cancel)

    async def stored(self, query: str, column: str, value: int) -> pa.Table:
        """The stored rows of a query that have this number in a column."""
        condition = exp.column(column, quoted=True).eq(exp.Literal.number(value))
        tree = exp.select("*").from_(exp.table_(query, quoted=True)).where(condition)
        asker = Asker(self._visitor, frozenset({Scope.READ}))
        return await self._service.ask_past(tree, asker)

    async def _open(self, query: str) -> QueryResults:
        while True:
            try:
                return await self._service.look(lambda: self._service.queries.results(query))
            except (InputError, UnknownNameError):  # it has not started, or does not exist
                await asyncio.sleep(_LOOK_SECONDS)


async def _newest_first(
    results: QueryResults, newest: int, at_once: int
) -> AsyncGenerator[pa.Table, None]:
    while True:
        page = await results.latest(newest)
        if page.rows.num_rows:
            yield page.rows
        async with aclosing(results.follow(page.next, max_rows=at_once)) as chunks:
            async for chunk in chunks:
                if chunk.rows.num_rows >= at_once:
                    break
                if chunk.rows.num_rows:
                    yield chunk.rows
