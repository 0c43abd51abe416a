"""`nilometer.Client`: a server, used from plain Python."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload
from weakref import WeakSet

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
from nilometer.client.follow_rows import Following
from nilometer.client.following import FollowState, LostError, OnBase, OnReconnect
from nilometer.client.live import LiveAnswer
from nilometer.client.rows import Answer, Page, Rows, polars_of
from nilometer.client.time_range import time_range
from nilometer.errors import NotFoundError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_Value = TypeVar("_Value")


class Client:
    """A Nilometer server.

    url      its address, such as "http://127.0.0.1:8642".
    token    what `nilometer tokens create` printed.
    timeout  seconds that a statement may take.
    verify   for https: False accepts any certificate, a path names the certificates to trust.

    This prints every row of a new query, as it comes:

        with nm.Client("http://127.0.0.1:8642", token) as client:
            for row in client.query("SELECT * FROM Readings").follow():
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
        self._http = httpx.Client(**http_options(url, token, timeout, verify))
        self._live: WeakSet[LiveAnswer] = WeakSet()

    def execute(
        self, statement: str, *, parameters: Mapping[str, object] | None = None, **values: object
    ) -> Rows:
        """Run one statement; returns its rows and its message.

        parameters, values  what `:name` stands for in the statement, by its name.
        """
        return self.run(calls.execute(statement, {**(parameters or {}), **values}))

    def query(self, text: str, *, name: str | None = None, temporary: bool | None = None) -> Query:
        """An existing query, by its name, or a new one that runs a SELECT over streams.

        Without a name a SELECT is temporary: it is dropped when nobody follows it for a while.
        """
        return Query(self, self.run(calls.find_or_create(text, name, temporary)))

    def queries(self) -> list[dict[str, Any]]:
        """All named queries with their status."""
        return self.run(calls.list_of("queries"))

    def back_up(self, destination: str | None = None) -> dict[str, Any]:
        """Have the server back up its database to where its configuration allows."""
        return self.run(calls.back_up(destination))

    def put_dashboard(self, name: str, dashboard: Mapping[str, Any]) -> dict[str, Any]:
        """Store a dashboard of the console: its title and panels, as exported."""
        return self.run(calls.put_dashboard(name, dashboard))

    def streams(self) -> list[dict[str, Any]]:
        """All streams and sensor tables with their status."""
        return self.run(calls.list_of("streams"))

    def sensors(self) -> list[dict[str, Any]]:
        """The sensors that queries currently need."""
        return self.run(calls.list_of("sensors"))

    def try_sensor(
        self, stream: str, sensor: str | None = None, *, seconds: float = 5.0, rows: int = 5
    ) -> dict[str, Any]:
        """Have the server read one sensor for a while, to see what it sends; nothing is stored."""
        return self.run(calls.try_sensor(stream, sensor, seconds, rows))

    def explain(
        self,
        statement: str,
        *,
        form: str = "text",
        parameters: Mapping[str, object] | None = None,
        **values: object,
    ) -> str:
        """What a query would do; `form` is text, or dot for Graphviz."""
        all_values = {**(parameters or {}), **values}
        return self.run(calls.explain(statement, form, all_values))

    def download(
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

        `client.download("mean", "mean.parquet", bucket="1 minute")` is a file of a row a minute.
        """
        download = download_of(name, path, form, start, end, columns, per, bucket, points, answer)
        *first, last = download.calls
        for call in first:
            with suppress(NotFoundError):
                return self._save(call, download)
        return self._save(last, download)

    def _save(self, call: Call[None], download: Download) -> Path:
        try:
            with self._http.stream(**request_of(call)) as response:
                if not response.is_success:
                    call.finish(reply_of(response, response.read()))
                with download.writing() as file:
                    for piece in response.iter_bytes():
                        file.write(piece)
        except (httpx.TransportError, httpx.StreamError) as error:
            raise unreachable(error, self._http.base_url) from error
        return download.path

    def close(self) -> None:
        """Close the connections, and the live answers that need them."""
        for live in list(self._live):
            live.close()
        self._http.close()

    def keep_live(self, query: Query, newest: int, patience: float | None) -> LiveAnswer:
        """Register a live answer, which ends with this client at the latest."""
        live = LiveAnswer(self, query, newest, patience)
        self._live.add(live)
        return live

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, call: Call[_Value]) -> _Value:
        """Send one request."""
        try:
            response = self._http.request(**request_of(call))
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error
        return call.finish(reply_of(response, response.content))

    def listen(
        self, state: FollowState, opened: Callable[[httpx.Response], None] | None = None
    ) -> Generator[bytes, None, None]:
        """Yield what arrives over one connection; raises LostError when it ends.

        `opened` is called with the response before its content is read.
        """
        request = self._http.build_request(**request_of(state.call()), timeout=listening_timeout())
        try:
            response = self._http.send(request, stream=True)
            with closing(response):
                if opened is not None:
                    opened(response)
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
        """append, or changelog: then rows have `_diff`, the copies added or retracted."""

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
        on_base: OnBase | None = ...,
    ) -> Following[dict[str, Any]]: ...

    @overload
    def follow(
        self,
        start: str = ...,
        *,
        batches: Literal[True],
        patience: float | None = ...,
        on_reconnect: OnReconnect | None = ...,
        on_base: OnBase | None = ...,
    ) -> Following[pa.RecordBatch]: ...

    def follow(
        self,
        start: str = "now",
        *,
        batches: bool = False,
        patience: float | None = None,
        on_reconnect: OnReconnect | None = None,
        on_base: OnBase | None = None,
    ) -> Following[Any]:
        """Iterate over the rows as they arrive, each once, whatever happens to the connection.

        start         "now", "start" (the oldest row that is kept), or an offset.
        batches       Arrow record batches instead of rows, which are dicts.
        patience      seconds without a connection after which it gives up; None: never.
        on_reconnect  is called with the error and the pause when the connection was lost.
        on_base       is called when changes were deleted before they were received: discard all
                      received ones; the answer that replaces them follows. Without it
                      LogGapError is raised.
        """
        state = FollowState(
            self.name, start, patience=patience, on_reconnect=on_reconnect, on_base=on_base
        )
        return Following(self._client, state, batches)

    def live(self, *, newest: int = 1000, patience: float | None = None) -> LiveAnswer:
        """A live answer: the current answer of a changelog query, or the newest rows.

        newest    how many rows are kept of append results.
        patience  seconds without a connection after which it gives up; None: never.

        It is used in a block, such as `with client.query("mean").live() as live: live.wait()`.
        """
        return self._client.keep_live(self, newest, patience)

    def page(self, start: str = "start", *, limit: int = 1000) -> Page:
        """Stored rows after an offset, from the "start", or the "latest" ones."""
        return self._client.run(calls.page(self.name, start, limit))

    def answer(self, *, limit: int = 10_000) -> Answer:
        """The current answer of a changelog query, with the offset from which to follow it."""
        return self._client.run(calls.answer(self.name, limit))

    def to_arrow(
        self,
        *,
        limit: int | None = None,
        start: str | datetime = "start",
        end: str | datetime | None = None,
    ) -> pa.Table:
        """The rows that are stored now.

        limit  at most this many rows.
        start  "start", "latest", an offset, or an instant: only rows with times from then on.
        end    only rows with times up to this instant; in UTC unless it names a zone.
        """
        call = time_range(self.name, start, end, limit)
        if call is not None:
            return self._client.run(call)
        return pa.concat_tables(page.table for page in self._pages(str(start), limit))

    def to_pandas(
        self,
        *,
        limit: int | None = None,
        start: str | datetime = "start",
        end: str | datetime | None = None,
    ) -> pd.DataFrame:
        """The same as a pandas DataFrame."""
        return self.to_arrow(limit=limit, start=start, end=end).to_pandas()

    def to_polars(
        self,
        *,
        limit: int | None = None,
        start: str | datetime = "start",
        end: str | datetime | None = None,
    ) -> pl.DataFrame:
        """The same as a polars DataFrame."""
        return polars_of(self.to_arrow(limit=limit, start=start, end=end))

    def status(self) -> dict[str, Any]:
        """The status of the query."""
        return self._client.run(calls.status(self.name))

    def health(self) -> list[dict[str, Any]]:
        """The health of the query in the last minutes, a sample per micro-batch."""
        return self._client.run(calls.health(self.name))

    def stop(self) -> None:
        """Stop the query until it is started again."""
        self._client.run(calls.stop(self.name))

    def start(self) -> None:
        """Resume the query where it stopped."""
        self._client.run(calls.start(self.name))

    def drop(self) -> None:
        """Drop the query and its results."""
        self._client.run(calls.drop(self.name))

    def _pages(self, start: str, limit: int | None) -> Iterator[Page]:
        pages = calls.Pages(self.name, start, limit)
        while (call := pages.next()) is not None:
            page = self._client.run(call)
            pages.note_page(page)
            yield page
