"""Runs a server until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from pyspark.sql import SparkSession

from nilometer.database import Database, connect
from nilometer.database.home import CATALOG_FILE
from nilometer.errors import InputError, NilometerError, SessionError, in_one_line
from nilometer.model.secrets import read_secrets_in
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.types.allowed_files import allow_files
from nilometer.server.app import make_app
from nilometer.server.config import ServerConfig
from nilometer.server.console.pages import all_pages
from nilometer.server.guards import is_loopback
from nilometer.server.protocol import protocol_for
from nilometer.server.scopes import EVERYTHING
from nilometer.server.service import Service
from nilometer.server.sessions import Sessions
from nilometer.server.settings import ServerSettings
from nilometer.server.tokens import Tokens
from nilometer.spark.priority import give_way

log = logging.getLogger("nilometer.server")

_SWITCH_SECONDS: Final = 0.001
"""After which time a thread that plans a statement lets another one answer a request."""

_LOST_IN_PY4J: Final = "Exception while sending command."
"""What Py4J says, with a traceback, of every call to a Java that has ended."""
_LOOK_SECONDS: Final = 1.0
_MISSED: Final = 2
"""So often in a row Spark has not answered when it is taken for lost."""


@dataclass(frozen=True)
class DatabasePlace:
    """Where the database is that is served."""

    folder: Path
    catalog: str | None = None
    logs: str | None = None


def run_server(
    place: DatabasePlace,
    config: ServerConfig,
    say: Callable[[str], None],
    *,
    spark: Callable[[], SparkSession],
    stopping: Callable[[], None] = lambda: None,
) -> None:
    """Serve a database until SIGTERM or Ctrl-C; `say` gets a line for the screen at a time.

    `spark` waits for a session that is starting: the server's own, which it stops. `stopping` is
    called at the first signal.
    """
    settings = config.settings
    require_safe(settings)
    with ExitStack() as stack:
        listening = stack.enter_context(_listen(settings))
        session = stack.enter_context(_own_spark(spark))
        say(f"opening {place.folder} …")
        database = stack.enter_context(_open(session, place, config))
        catalog = stack.enter_context(
            SensorCatalog.open(place.catalog or place.folder.expanduser() / CATALOG_FILE)
        )
        tokens = Tokens(catalog)
        first = tokens.create_first()
        service = Service(database, settings)
        stack.callback(service.close)
        sessions = Sessions(tokens)
        for line in _greeting(settings, listening, first, sessions):
            say(line)
        server = _Server(service, config, tokens, sessions, stopping)
        with _signals_ignored_after():
            server.run([listening])
        say("stopping …")
        if server.lost is not None:
            raise server.lost


def require_safe(settings: ServerSettings) -> None:
    """Refuse to listen beyond this machine without encryption, unless told so."""
    if (settings.certificate is None) != (settings.key is None):
        raise InputError("--certificate and --key belong together", hint="give both, or neither")
    for file in (settings.certificate, settings.key):
        if file is not None and not file.is_file():
            raise InputError(f"there is no file {file}")
    if is_loopback(settings.host) or settings.certificate or settings.allow_insecure:
        return
    raise InputError(
        f"tokens would cross the network to {settings.host} unencrypted",
        hint="give --certificate and --key, or say --insecure if something else encrypts",
    )


class _Server(uvicorn.Server):
    """Uvicorn, set up for one service; queries are started again once it answers."""

    def __init__(
        self,
        service: Service,
        config: ServerConfig,
        tokens: Tokens,
        sessions: Sessions,
        stopping: Callable[[], None],
    ) -> None:
        settings = config.settings
        pages = all_pages(config.pages, lambda error: log.warning("%s", in_one_line(error)))
        super().__init__(
            uvicorn.Config(
                make_app(service, tokens, sessions, pages),
                http=protocol_for(settings),
                log_config=None,
                access_log=False,
                server_header=False,
                ssl_certfile=settings.certificate,
                ssl_keyfile=settings.key,
                timeout_graceful_shutdown=max(1, round(settings.stop_seconds)),
                ws_max_size=settings.most_body_bytes,
            )
        )
        self._service = service
        self._stopping = stopping
        self.lost: NilometerError | None = None
        """Why the server ends though nobody has stopped it."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order, however often it is asked: it takes `stop_seconds` at most."""
        if not self.should_exit:  # uvicorn takes a second Ctrl-C for leave to cut followers short
            self._stopping()
            super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._resuming = asyncio.create_task(self._resume())
        self._watching = asyncio.create_task(self._watch())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.is_closing = True
        await super().shutdown(sockets)

    async def _resume(self) -> None:
        try:
            await self._service.resume()
        except NilometerError as error:
            log.warning("%s", in_one_line(error))
        except Exception:  # the server is ready all the same, and its log says why they are not
            log.exception("queries could not be started again")

    async def _watch(self) -> None:
        """End the server when it has lost Spark or its catalog: it is to be started anew."""
        missed = 0
        while missed < _MISSED and self._service.lost is None:
            await asyncio.sleep(_LOOK_SECONDS)
            missed = 0 if await self._service.has_spark() else missed + 1
        self.lost = self._service.lost or SessionError(
            "Spark has ended, and the server with it",
            detail="memory may have run out, or somebody has ended Java",
            hint="start it again: queries go on where they were. NILOMETER_SPARK_LOG=spark.log "
            "keeps what Spark says",
        )
        self.should_exit = True


@contextmanager
def _listen(settings: ServerSettings) -> Iterator[socket.socket]:
    host = settings.host.strip("[]")
    try:
        kind = socket.getaddrinfo(host, settings.port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(kind[4][:2], family=kind[0], backlog=512)
    except OSError as error:
        raise InputError(
            f"cannot listen at {settings.host}, port {settings.port}",
            detail=error.strerror,
            hint="choose another one with --port",
        ) from None
    with listening:
        yield listening


@contextmanager
def _own_spark(wait: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    """The session once it has started; it is stopped in the end."""
    for name in ("py4j", "pyspark", "SQLQueryContextLogger", "uvicorn"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: record.msg != _LOST_IN_PY4J)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = wait()
        give_way(spark)
        sys.setswitchinterval(_SWITCH_SECONDS)
        try:
            yield spark
        finally:
            with suppress(Exception):  # it may have ended before us
                spark.stop()


def _open(spark: SparkSession, place: DatabasePlace, config: ServerConfig) -> Database:
    allow_files(config.files)
    read_secrets_in(config.secrets)
    database = connect(
        spark,
        path=place.folder,
        catalog=place.catalog,
        logs=place.logs,
        limits=config.limits,
        most_queries=config.settings.most_queries,
        delivery_folders=config.delivery_folders,
    )
    try:
        for name, one in config.functions.items():
            if one.aggregate:
                database.create_aggregate(name, one.function, one.returns)
            else:
                database.create_function(name, one.function, one.returns, by_row=one.by_row)
        for name, unit in config.units.items():
            database.register_unit(name, unit)
    except BaseException:
        database.close()
        raise
    return database


def _greeting(
    settings: ServerSettings, listening: socket.socket, first: str | None, sessions: Sessions
) -> Iterator[str]:
    scheme = "http" if settings.certificate is None else "https"
    host = f"[{settings.host}]" if ":" in settings.host.strip("[]") else settings.host
    address = f"{scheme}://{host}:{listening.getsockname()[1]}"
    yield f"listening at {address}"
    yield f"  console  {address}/login?code={sessions.code_for(EVERYTHING)}  (once, for 5 minutes)"
    yield f"  API      {address}/docs"
    if first is not None:
        yield f"  token    {first}  (admin; it is not shown again)"
    yield "Ctrl-C stops the server; its queries go on where they were at the next start"


@contextmanager
def _signals_ignored_after() -> Iterator[None]:
    """Uvicorn raises the signal that stopped it once more: it must not cut short what follows."""
    before = {
        number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        del before  # a second Ctrl-C would only make stopping take longer
