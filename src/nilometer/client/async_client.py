"""`nilometer.AsyncClient`: the same as `Client`, for asyncio."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

import httpx
import pyarrow as pa

from nilometer.client import calls
from nilometer.client.calls import Call
from nilometer.client.connection import (
    http_options,
    listening_timeout,
    reply_of,
    request_of,
    unreachable,
)
from nilometer.client.downloads import Download, download_of
from nilometer.client.followed_results import FollowedResults
from nilometer.client.following import FollowState, LostError, OnBase, OnReconnect
from nilometer.client.rows import Answer, Page, Rows, polars_of
from nilometer.client.time_range import time_range
from nilometer.errors import NotFoundError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_Value = TypeVar("_Value")
_Item = TypeVar("_Item", dict[str, Any], pa.RecordBatch)


class AsyncClient:
    """A Nilometer server; see `Client` for the arguments and methods.

    This prints every row of a new query, as it comes:

        async with nm.AsyncClient("http://127.0.0.1:8642", token) as client:
            query = await client.query("SELECT * FROM Readings")
            async for row in query.follow():
                print(row)
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        verify: bool | str | ssl.SSLContext = True,
    ) -> None:
        self._http = httpx.AsyncClient(**http_options(url, token, timeout, verify))

    async def execute(
        self, statement: str, *, parameters: Mapping[str, object] | None = None, **values: object
    ) -> Rows:
        """Run one statement; returns its rows and its message.

        parameters, values  what `:name` stands for in the statement, by its name.
        """
        return await self.run(calls.execute(statement, {**(parameters or {}), **values}))

    async def query(
        self, text: str, *, name: str | None = None, temporary: bool | None = None
    ) -> AsyncQuery:
        """An existing query, by its name, or a new one that runs a SELECT over streams."""
        return AsyncQuery(self, await self.run(calls.find_or_create(text, name, temporary)))

    async def queries(self) -> list[dict[str, Any]]:
        """All named queries with their status."""
        return await self.run(calls.list_of("queries"))

    async def back_up(self, destination: str | None = None) -> dict[str, Any]:
        """Have the server back up its database to where its configuration allows."""
        return await self.run(calls.back_up(destination))

    async def put_dashboard(self, name: str, dashboard: Mapping[str, Any]) -> dict[str, Any]:
        """Store a dashboard of the console: its title and panels, as exported."""
        return await self.run(calls.put_dashboard(name, dashboard))

    async def streams(self) -> list[dict[str, Any]]:
        """All streams and sensor tables with their status."""
        return await self.run(calls.list_of("streams"))

    async def sensors(self) -> list[dict[str, Any]]:
        """The sensors that queries currently need."""
        return await self.run(calls.list_of("sensors"))

    async def try_sensor(
        self, stream: str, sensor: str | None = None, *, seconds: float = 5.0, rows: int = 5
    ) -> dict[str, Any]:
        """Have the server read one sensor for a while, to see what it sends; nothing is stored."""
        return await self.run(calls.try_sensor(stream, sensor, seconds, rows))

    async def explain(
        self,
        statement: str,
        *,
        form: str = "text",
        parameters: Mapping[str, object] | None = None,
        **values: object,
    ) -> str:
        """What a query would do; `form` is text, or dot for Graphviz."""
        all_values = {**(parameters or {}), **values}
        return await self.run(calls.explain(statement, form, all_values))

    async def download(
        self,
        name: str,
        path: str | Path,
        *,
        form: str | None = None,
        start: str | datetime | None = None,
        end: str | datetime | None = None,
        columns: Sequence[str] = (),
        per: Sequence[str] = (),
        bucket: str | None = None,
        points: int | None = None,
        answer: bool = False,
    ) -> Path:
        """Download rows of a query or stream to a file, written wholly or not at all; its path.

        form        csv, jsonl, arrow (an IPC stream) or parquet; without, by the file's name.
        start, end  only rows with times in this closed range, in UTC unless they name a zone.
        columns     only these; with bucket or points, the relevant columns of numbers.
        bucket      such as "1 minute": the minimum, maximum and mean of every minute.
        points      this many rows that look the same in a chart, by the values of one column.
        per         columns that distinguish series, with bucket or points.
        answer      for a changelog query: the answer, not its changes.

        `await client.download("mean", "mean.parquet", bucket="1 minute")` is a row a minute.
        """
        download = download_of(name, path, form, start, end, columns, per, bucket, points, answer)
        *first, last = download.calls
        for call in first:
            with suppress(NotFoundError):
                return await self._save(call, download)
        return await self._save(last, download)

    async def _save(self, call: Call[None], download: Download) -> Path:
        try:
            async with self._http.stream(**request_of(call)) as response:
                if not response.is_success:
                    call.finish(reply_of(response, await response.aread()))
                with download.writing() as file:
                    async for piece in response.aiter_bytes():
                        file.write(piece)
        except (httpx.TransportError, httpx.StreamError) as error:
            raise unreachable(error, self._http.base_url) from error
        return download.path

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run(self, call: Call[_Value]) -> _Value:
        """Send one request."""
        try:
            response = await self._http.request(**request_of(call))
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error
        return call.finish(reply_of(response, response.content))

    async def listen(self, state: FollowState) -> AsyncGenerator[bytes, None]:
        """Yield what arrives over one connection; raises LostError when it ends."""
        request = self._http.build_request(**request_of(state.call()), timeout=listening_timeout())
        try:
            response = await self._http.send(request, stream=True)
            async with aclosing(response):
                content = b"" if response.status_code == httpx.codes.OK else await response.aread()
                state.check(reply_of(response, content))
                async for data in response.aiter_raw():
                    yield data
        except (httpx.TransportError, httpx.StreamError) as error:
            raise LostError(unreachable(error, self._http.base_url)) from None
        raise state.ended()


class AsyncQuery:
    """A query on a server; see `Query` for the arguments."""

    def __init__(self, client: AsyncClient, status: dict[str, Any]) -> None:
        self._client = client
        self.name: str = status["name"]
        self.statement: str = status["statement"]
        self.emits: str = status["emits"]

    def __repr__(self) -> str:
        return f"<AsyncQuery {self.name}: {self.statement}>"

    @overload
    def follow(
        self,
        start: str = ...,
        *,
        batches: Literal[False] = ...,
        patience: float | None = ...,
        on_reconnect: OnReconnect | None = ...,
        on_base: OnBase | None = ...,
    ) -> AsyncFollowing[dict[str, Any]]: ...

    @overload
    def follow(
        self,
        start: str = ...,
        *,
        batches: Literal[True],
        patience: float | None = ...,
        on_reconnect: OnReconnect | None = ...,
        on_base: OnBase | None = ...,
    ) -> AsyncFollowing[pa.RecordBatch]: ...

    def follow(
        self,
        start: str = "now",
        *,
        batches: bool = False,
        patience: float | None = None,
        on_reconnect: OnReconnect | None = None,
        on_base: OnBase | None = None,
    ) -> AsyncFollowing[Any]:
        """Iterate over the rows as they arrive, each once, whatever happens to the connection."""
        state = FollowState(
            self.name, start, patience=patience, on_reconnect=on_reconnect, on_base=on_base
        )
        return AsyncFollowing(self._client, state, batches)

    async def page(self, start: str = "start", *, limit: int = 1000) -> Page:
        """Stored rows after an offset, from the "start", or the "latest" ones."""
        return await self._client.run(calls.page(self.name, start, limit))

    async def answer(self, *, limit: int = 10_000) -> Answer:
        """The current answer of a changelog query, with the offset from which to follow it."""
        return await self._client.run(calls.answer(self.name, limit))

    async def to_arrow(
        self,
        *,
        limit: int | None = None,
        start: str | datetime = "start",
        end: str | datetime | None = None,
    ) -> pa.Table:
        """The rows that are stored now; see `Query.to_arrow`."""
        call = time_range(self.name, start, end, limit)
        if call is not None:
            return await self._client.run(call)
        pages, tables = calls.Pages(self.name, str(start), limit), []
        while (wanted := pages.next()) is not None:
            page = await self._client.run(wanted)
            pages.note_page(page)
            tables.append(page.table)
        return pa.concat_tables(tables)

    async def to_pandas(
        self,
        *,
        limit: int | None = None,
        start: str | datetime = "start",
        end: str | datetime | None = None,
    ) -> pd.DataFrame:
        """The same as a pandas DataFrame."""
        return (await self.to_arrow(limit=limit, start=start, end=end)).to_pandas()

    async def to_polars(
        self,
        *,
        limit: int | None = None,
        start: str | datetime = "start",
        end: str | datetime | None = None,
    ) -> pl.DataFrame:
        """The same as a polars DataFrame."""
        return polars_of(await self.to_arrow(limit=limit, start=start, end=end))

    async def status(self) -> dict[str, Any]:
        """The status of the query."""
        return await self._client.run(calls.status(self.name))

    async def health(self) -> list[dict[str, Any]]:
        """The health of the query in the last minutes, a sample per micro-batch."""
        return await self._client.run(calls.health(self.name))

    async def stop(self) -> None:
        """Stop the query until it is started again."""
        await self._client.run(calls.stop(self.name))

    async def start(self) -> None:
        """Resume the query where it stopped."""
        await self._client.run(calls.start(self.name))

    async def drop(self) -> None:
        """Drop the query and its results."""
        await self._client.run(calls.drop(self.name))


class AsyncFollowing(FollowedResults, AsyncIterator[_Item]):
    """The results of a query as they arrive; reconnects by itself and resumes at its offset."""

    def __init__(self, client: AsyncClient, state: FollowState, batches: bool) -> None:
        super().__init__(state)
        self._client = client
        self._take = state.batches if batches else state.rows
        self._items: AsyncGenerator[_Item, None] = self._follow()

    async def __anext__(self) -> _Item:
        return await anext(self._items)

    async def close(self) -> None:
        """Stop following."""
        await self._items.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _follow(self) -> AsyncGenerator[Any, None]:
        while True:
            try:
                async with aclosing(self._client.listen(self._state)) as connection:
                    async for data in connection:
                        for item in self._take(data):
                            yield item
            except LostError as lost:
                await asyncio.sleep(self._state.lost(lost.why))
