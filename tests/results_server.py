"""Results of queries over HTTP without Spark: logs that a test writes, and a real web server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa
import uvicorn
from fastapi import FastAPI, Request

from nilometer.database.query_status import QueryLimits, QueryPhase, QueryStatus
from nilometer.errors import ForbiddenError, NotFoundError, UnauthorizedError
from nilometer.kernels.net_changes import net_changes
from nilometer.log.delete import delete_log
from nilometer.log.layout import DIFF, TIME, TIMESTAMP, LogLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.writer import LogWriter
from nilometer.sensors.catalog.stored_tokens import StoredToken
from nilometer.server.access import Caller, find_caller
from nilometer.server.error_shape import add_error_shape
from nilometer.server.limits import Followers
from nilometer.server.results.query_results import QueryResults
from nilometer.server.results.stored_results import StoredResults
from nilometer.server.routes.results import results_router
from nilometer.server.scopes import Scope
from nilometer.server.served_queries import ServedQueries
from nilometer.server.service import Service
from nilometer.server.settings import ServerSettings
from tests.patience import LONG

TOKEN = "nm_test"
CHANGES = pa.schema([("k", pa.string()), ("n", pa.int64()), (TIME, TIMESTAMP), (DIFF, pa.int64())])
ROWS = pa.schema([("n", pa.int64()), ("x", pa.float64()), (TIME, TIMESTAMP)])
QUICK = LogOptions(fsync=Fsync.NEVER)

_Result = TypeVar("_Result")


class StoredQueries:
    """Queries whose results a test writes; the routes take this for a Service and its queries."""

    known = ServedQueries.known
    is_closing = False
    token: StoredToken | None = StoredToken("test", "", frozenset({"read"}), 0, None)
    """None: it has been revoked."""

    def __init__(self, folder: Path, max_followers: int = 500) -> None:
        self.folder = folder
        self.settings = ServerSettings(max_followers=max_followers, max_rows=10_000)
        self.followers = Followers(max_followers, max_followers)
        self.phases: dict[str, tuple[QueryPhase, str | None]] = {}
        self.stored = StoredResults(self.log_of)
        self.queries = self
        self._threads = ThreadPoolExecutor(2)

    def create(self, name: str, schema: pa.Schema = ROWS, options: LogOptions = QUICK) -> LogWriter:
        """A query, and the writer of its results."""
        self.phases[name] = (QueryPhase.RUNNING, None)
        layout = LogLayout(schema, TIME, changes=DIFF in schema.names)
        return LogWriter.open(self.log_of(name), layout, options, net=net_changes)

    def drop(self, name: str) -> None:
        del self.phases[name]
        delete_log(self.log_of(name))

    def log_of(self, name: str) -> str:
        return str(self.folder / name)

    def results(self, name: str) -> QueryResults:
        return self.stored.of(name)

    async def status(self, name: str) -> QueryStatus:
        if name not in self.phases:
            raise NotFoundError(f"there is no query {name}")
        phase, error = self.phases[name]
        return QueryStatus(
            name, "SELECT", "append", phase, 0, 0, error, 0, None, False, QueryLimits(), 0, 0, 0, 0
        )

    async def look(self, work: Callable[[], _Result]) -> _Result:
        return work()

    def close(self) -> None:
        self.stored.close()
        self._threads.shutdown()


def _caller_of(queries: StoredQueries) -> Callable[[Request], Caller]:
    def find(request: Request) -> Caller:
        given = request.headers.get("authorization")
        if given == "Bearer nm_nothing":
            raise ForbiddenError("this needs the scope read")
        if given != f"Bearer {TOKEN}":
            raise UnauthorizedError("the token is not valid")
        return Caller("test", frozenset({Scope.READ}), lambda: queries.token)

    find.__annotations__["request"] = Request
    return find


def results_app(queries: StoredQueries) -> FastAPI:
    """The routes of results over stored queries."""
    app = FastAPI()
    app.dependency_overrides[find_caller] = _caller_of(queries)
    add_error_shape(app)
    app.include_router(results_router(cast(Service, queries)))
    return app


class WebServer:
    """An application on a port of this machine; it can be cut off and started again."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.starts = 0
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        config = uvicorn.Config(
            self._make(), port=self.port, log_level="critical", timeout_graceful_shutdown=0
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        self._server, self._thread = server, thread
        self.starts += 1

    def cut(self) -> None:
        """Cut all connections in the middle of whatever they carry."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(LONG)
        assert not self._thread.is_alive()
        self._server = self._thread = None


@contextmanager
def serving(queries: StoredQueries) -> Iterator[WebServer]:
    """A web server for the results of stored queries."""
    server = WebServer(lambda: results_app(queries))
    server.start()
    try:
        yield server
    finally:
        server.cut()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def numbered(first: int, count: int) -> pa.RecordBatch:
    """Rows n = first …, each at the microsecond of its number."""
    numbers = pa.array(range(first, first + count), pa.int64())
    halves = pa.array([n / 2 for n in range(first, first + count)])
    return pa.RecordBatch.from_arrays([numbers, halves, numbers.cast(TIMESTAMP)], schema=ROWS)


def changes(*rows: tuple[str | None, int, int, int]) -> pa.RecordBatch:
    """Changes (k, n, time, diff)."""
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    arrays = [
        pa.array(columns[0], pa.string()),
        pa.array(columns[1], pa.int64()),
        pa.array(columns[2], pa.int64()).cast(TIMESTAMP),
        pa.array(columns[3], pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=CHANGES)
