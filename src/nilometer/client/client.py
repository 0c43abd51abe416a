"""`nilometer.Client`: a server, used from plain Python."""

from __future__ import annotations

import ssl
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
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


class Client:
    """A Nilometer server.

    url      its address, such as "http://127.0.0.1:8642".
    token    what `nilometer tokens create` printed.
    timeout  seconds that a statement may take.
    verify   of https: False takes any certificate, a path is that of those to be trusted.

    >>> with nm.Client("http://127.0.0.1:8642", token) as client:  # doctest: +SKIP
    ...     for row in client.query("SELECT * FROM Readings").follow():
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
        self._http = httpx.Client(**http_options(url, token, timeout, verify))

    def execute(
        self, statement: str, *, parameters: Mapping[str, object] | None = None, **values: object
    ) -> Rows:
        """Run one statement: its rows, and what it says that it did.

        parameters, values  what `:name` stands for in the statement, by its name.
        """
        return self.run(calls.execute(statement, {**(parameters or {}), **values}))

    def query(self, text: str, *, name: str | None = None, temporary: bool | None = None) -> Query:
        """A query: one that is there, by its name, or a SELECT over streams that is started.

        Without a name a SELECT is temporary: it goes when nobody has followed it for a while.
        """
        return Query(self, self.run(calls.find_or_create(text, name, temporary)))

    def queries(self) -> list[dict[str, Any]]:
        """All named queries, and how they are doing."""
        return self.run(calls.list_of("queries"))

    def streams(self) -> list[dict[str, Any]]:
        """All streams and sensor tables, and how they are doing."""
        return self.run(calls.list_of("streams"))

    def sensors(self) -> list[dict[str, Any]]:
        """The sensors that some query needs at present."""
        return self.run(calls.list_of("sensors"))

    def explain(
        self,
        statement: str,
        *,
        form: str = "text",
        parameters: Mapping[str, object] | None = None,
        **values: object,
    ) -> str:
        """What a query would do; `form` is text, or dot for Graphviz."""
        given = {**(parameters or {}), **values}
        return self.run(calls.explain(statement, form, given))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, call: Call[_Value]) -> _Value:
        """Ask one thing."""
        try:
            response = self._http.request(**request_of(call))
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error
        return call.finish(reply_of(response, response.content))

    def listen(self, state: FollowState) -> Generator[bytes, None, None]:
        """What comes over one connection; raises LostError when it ends."""
        request = self._http.build_request(**request_of(state.call()), timeout=listening_timeout())
        try:
            response = self._http.send(request, stream=True)
            with closing(response):
                content = b"" if response.status_code == httpx.codes.OK else response.read()
                state.check(reply_of(response, content))
                yield from response.iter_raw()
        except (httpx.TransportError, httpx.StreamError) as error:
            raise LostError(unreachable(error, self._http.base_url)) from None
        raise state.ended()


class Query:
    """A query on a server."""

    def __init__(self, client: Client, status: dict[str, Any]) -> None:
        self._client = client
        self.name: str = status["name"]
        self.statement: str = status["statement"]
        self.emits: str = status["emits"]
        """append, or changelog: then rows have `_diff`, the copies that come or go."""

    def __repr__(self) -> str:
        return f"<Query {self.name}: {self.statement}>"

    @overload
    def follow(
        self,
        start: str = ...,
        *,
        batches: Literal[False] = ...,
        patience: float | None = ...,
        on_reconnect: OnReconnect | None = ...,
    ) -> Following[dict[str, Any]]: ...

    @overload
    def follow(
        self,
        start: str = ...,
        *,
        batches: Literal[True],
        patience: float | None = ...,
        on_reconnect: OnReconnect | None = ...,
    ) -> Following[pa.RecordBatch]: ...

    def follow(
        self,
        start: str = "now",
        *,
        batches: bool = False,
        patience: float | None = None,
        on_reconnect: OnReconnect | None = None,
    ) -> Following[Any]:
        """Iterate over the rows as they come, each once, whatever happens to the connection.

        start         "now", "start" (the oldest row that is kept), or an offset.
        batches       Arrow record batches instead of rows, which are dicts.
        patience      seconds without a connection after which it gives up; None: never.
        on_reconnect  is called with the error and the pause when the connection was lost.
        """
        state = FollowState(self.name, start, patience=patience, on_reconnect=on_reconnect)
        return Following(self._client, state, batches)

    def page(self, start: str = "start", *, limit: int = 1000) -> Page:
        """Stored rows after an offset, from the "start", or the "latest" ones."""
        return self._client.run(calls.page(self.name, start, limit))

    def answer(self, *, limit: int = 10_000) -> Answer:
        """The current answer of a changelog query, with the offset from which to follow it."""
        return self._client.run(calls.answer(self.name, limit))

    def to_arrow(self, *, limit: int | None = None, start: str = "start") -> pa.Table:
        """The rows that are stored now, at most so many."""
        return pa.concat_tables(page.table for page in self._pages(start, limit))

    def to_pandas(self, *, limit: int | None = None, start: str = "start") -> pd.DataFrame:
        """The rows that are stored now, at most so many."""
        return self.to_arrow(limit=limit, start=start).to_pandas()

    def status(self) -> dict[str, Any]:
        """How the query is doing."""
        return self._client.run(calls.status(self.name))

    def health(self) -> list[dict[str, Any]]:
        """How it has been doing for the last minutes, a sample per micro-batch."""
        return self._client.run(calls.health(self.name))

    def stop(self) -> None:
        """Stop it until it is started again."""
        self._client.run(calls.stop(self.name))

    def start(self) -> None:
        """Let it go on where it was."""
        self._client.run(calls.start(self.name))

    def drop(self) -> None:
        """Forget it and its results."""
        self._client.run(calls.drop(self.name))

    def _pages(self, start: str, limit: int | None) -> Iterator[Page]:
        pages = calls.Pages(self.name, start, limit)
        while (call := pages.next()) is not None:
            page = self._client.run(call)
            pages.got(page)
            yield page


class Following(Iterator[_Item]):
    """The results of a query as they come; reconnects by itself and goes on at its offset."""

    def __init__(self, client: Client, state: FollowState, batches: bool) -> None:
        self._client = client
        self._state = state
        self._take = state.batches if batches else state.rows
        self._items: Generator[_Item, None, None] = self._follow()

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

    def __next__(self) -> _Item:
        return next(self._items)

    def close(self) -> None:
        """Follow no more."""
        self._items.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _follow(self) -> Generator[Any, None, None]:
        while True:
            try:
                with closing(self._client.listen(self._state)) as connection:
                    for data in connection:
                        yield from self._take(data)
            except LostError as lost:
                time.sleep(self._state.lost(lost.why))
