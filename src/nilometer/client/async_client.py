"""`nilometer.AsyncClient`: the same as `Client`, for asyncio."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from datetime import datetime
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
from nilometer.client.following import FollowState, LostError, OnReconnect
from nilometer.client.rows import Answer, Page, Rows

if TYPE_CHECKING:
    import pandas as pd

_Value = TypeVar("_Value")
_Item = TypeVar("_Item", dict[str, Any], pa.RecordBatch)


class AsyncClient:
    """A Nilometer server; see `Client` for the arguments and methods.

    >>> async with nm.AsyncClient("http://127.0.0.1:8642", token) as client:  # doctest: +SKIP
    ...     query = await client.query("SELECT * FROM Readings")
    ...     async for row in query.follow():
    ...         print(row)
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
        """Run one statement: its rows, and what it says that it did.

        parameters, values  what `:name` stands for in the statement, by its name.
        """
        return await self.run(calls.execute(statement, {**(parameters or {}), **values}))

    async def query(
        self, text: str, *, name: str | None = None, temporary: bool | None = None
    ) -> AsyncQuery:
        """A query: one that is there, by its name, or a SELECT over streams that is started."""
        return AsyncQuery(self, await self.run(calls.find_or_create(text, name, temporary)))

    async def queries(self) -> list[dict[str, Any]]:
        """All named queries, and how they are doing."""
        return await self.run(calls.list_of("queries"))

    async def streams(self) -> list[dict[str, Any]]:
        """All streams and sensor tables, and how they are doing."""
        return await self.run(calls.list_of("streams"))

    async def sensors(self) -> list[dict[str, Any]]:
        """The sensors that some query needs at present."""
        return await self.run(calls.list_of("sensors"))

    async def explain(
        self,
        statement: str,
        *,
        form: str = "text",
        parameters: Mapping[str, object] | None = None,
        **values: object,
    ) -> str:
        """What a query would do; `form` is text, or dot for Graphviz."""
        given = {**(parameters or {}), **values}
        return await self.run(calls.explain(statement, form, given))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run(self, call: Call[_Value]) -> _Value:
        """Ask one thing."""
        try:
            response = await self._http.request(**request_of(call))
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error
        return call.finish(reply_of(response, response.content))

    async def listen(self, state: FollowState) -> AsyncGenerator[bytes, None]:
        """What comes over one connection; raises LostError when it ends."""
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
    ) -> AsyncFollowing[dict[str, Any]]: ...

    @overload
    def follow(
        self,
        start: str = ...,
        *,
        batches: Literal[True],
        patience: float | None = ...,
        on_reconnect: OnReconnect | None = ...,
    ) -> AsyncFollowing[pa.RecordBatch]: ...

    def follow(
        self,
        start: str = "now",
        *,
        batches: bool = False,
        patience: float | None = None,
        on_reconnect: OnReconnect | None = None,
    ) -> AsyncFollowing[Any]:
        """Iterate over the rows as they come, each once, whatever happens to the connection."""
        state = FollowState(self.name, start, patience=patience, on_reconnect=on_reconnect)
        return AsyncFollowing(self._client, state, batches)

    async def page(self, start: str = "start", *, limit: int = 1000) -> Page:
        """Stored rows after an offset, from the "start", or the "latest" ones."""
        return await self._client.run(calls.page(self.name, start, limit))

    async def answer(self, *, limit: int = 10_000) -> Answer:
        """The current answer of a changelog query, with the offset from which to follow it."""
        return await self._client.run(calls.answer(self.name, limit))

    async def to_arrow(self, *, limit: int | None = None, start: str = "start") -> pa.Table:
        """The rows that are stored now, at most so many."""
        pages, tables = calls.Pages(self.name, start, limit), []
        while (call := pages.next()) is not None:
            page = await self._client.run(call)
            pages.got(page)
            tables.append(page.table)
        return pa.concat_tables(tables)

    async def to_pandas(self, *, limit: int | None = None, start: str = "start") -> pd.DataFrame:
        """The rows that are stored now, at most so many."""
        return (await self.to_arrow(limit=limit, start=start)).to_pandas()

    async def status(self) -> dict[str, Any]:
        """How the query is doing."""
        return await self._client.run(calls.status(self.name))

    async def health(self) -> list[dict[str, Any]]:
        """How it has been doing for the last minutes, a sample per micro-batch."""
        return await self._client.run(calls.health(self.name))

    async def stop(self) -> None:
        """Stop it until it is started again."""
        await self._client.run(calls.stop(self.name))

    async def start(self) -> None:
        """Let it go on where it was."""
        await self._client.run(calls.start(self.name))

    async def drop(self) -> None:
        """Forget it and its results."""
        await self._client.run(calls.drop(self.name))


class AsyncFollowing(AsyncIterator[_Item]):
    """The results of a query as they come; reconnects by itself and goes on at its offset."""

    def __init__(self, client: AsyncClient, state: FollowState, batches: bool) -> None:
        self._client = client
        self._state = state
        self._take = state.batches if batches else state.rows
        self._items: AsyncGenerator[_Item, None] = self._follow()

    @property
    def offset(self) -> str:
        """The place after all rows that were yielded: give it to `follow` to go on there."""
        return self._state.offset

    @property
    def watermark(self) -> datetime | None:
        """No row that follows has an earlier time; None if that is not known."""
        return self._state.watermark

    @property
    def phase(self) -> str | None:
        """What the query does, if that has changed since: running, stopped, failed, restarting."""
        return self._state.phase

    async def __anext__(self) -> _Item:
        return await anext(self._items)

    async def close(self) -> None:
        """Follow no more."""
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
