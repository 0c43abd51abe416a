"""Runs a server until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from pyspark.sql import SparkSession

from nilometer.database import Database, connect
from nilometer.errors import InputError, NilometerError, SessionError, in_one_line
from nilometer.garbage import collect_as_usual
from nilometer.model.events import event
from nilometer.model.secrets import read_secrets_in
from nilometer.model.served_at import announced_at
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.types.allowed_files import allow_files
from nilometer.server.app import make_app
from nilometer.server.config import ServerConfig
from nilometer.server.console.pages import all_pages
from nilometer.server.guards import is_loopback
from nilometer.server.notify import notify
from nilometer.server.orderly_server import OrderlyServer
from nilometer.server.pg.listener import PgListener
from nilometer.server.protocol import protocol_for
from nilometer.server.scopes import EVERYTHING
from nilometer.server.server_log import ServerLog
from nilometer.server.service import Service
from nilometer.server.sessions import Sessions
from nilometer.server.settings import ServerSettings
from nilometer.server.statement_log import StatementLog
from nilometer.server.tokens import Tokens
from nilometer.spark.priority import give_way
from nilometer.spark.shared_folders import require_shared
from nilometer.spark.workers import require_workers
from nilometer.upkeep.catalog_place import settle_catalog
from nilometer.upkeep.logs_place import logs_of
from nilometer.version import VERSION

_LOG: Final = logging.getLogger("nilometer.server")

_SWITCH_SECONDS: Final = 0.001
"""How long a thread that plans a statement may run before another may answer a request."""

_LOOK_SECONDS: Final = 1.0
_MISSED: Final = 2
"""How often in a row Spark must fail to answer to count as lost."""


@dataclass(frozen=True)
class DatabasePlace:
    """The location of the served database."""

    folder: Path
    catalog: str | None = None
    logs: str | None = None


def run_server(
    place: DatabasePlace,
    config: ServerConfig,
    say: Callable[[str], None],
    *,
    spark: Callable[[], SparkSession],
    log: ServerLog,
    stopping: Callable[[], None] = lambda: None,
) -> None:
    """Serve a database until SIGTERM or Ctrl-C; `say` gets a line for the screen at a time.

    `spark` waits for a session that is starting: the server's own, which it stops. `stopping` is
    called at the first signal. `log` is written once the database is open.
    """
    collect_as_usual()
    settings = config.settings
    require_safe(settings)
    with ExitStack() as stack:
        stack.callback(log.close)
        stack.callback(_tell, "stopped", "the server has stopped")
        listening = stack.enter_context(_listen(settings, settings.port, "--port"))
        pg = None
        if settings.pg_port is not None:
            pg = stack.enter_context(_listen(settings, settings.pg_port, "--pg-port"))
        session = stack.enter_context(_own_spark(spark))
        say(f"opening {place.folder} …")
        folder = place.folder.expanduser().absolute()
        require_workers(session)
        require_shared(session, [place.logs or logs_of(folder)])
        database = stack.enter_context(_open(session, place, config))
        log.open(place.folder.expanduser().absolute())
        catalog = stack.enter_context(
            SensorCatalog.open(settle_catalog(place.folder.expanduser(), place.catalog))
        )
        tokens = Tokens(catalog)
        first = tokens.create_first()
        service = Service(database, settings, StatementLog(config.log.slow_seconds))
        stack.callback(service.close)
        sessions = Sessions(tokens)
        address = _address(settings, listening)
        stack.enter_context(announced_at(place.folder.expanduser(), address))
        for line in _greeting(address, pg, first, sessions):
            say(line)
        started = {"version": VERSION, "address": address, "database": str(place.folder)}
        words = "nilometer {version} listens at {address} over {database}".format(**started)
        _tell("started", words, pid=os.getpid(), **started)
        server = _Server(service, config, tokens, sessions, stopping, log, pg)
        with _signals_ignored_after():
            server.run([listening])
        say("stopping …")
        if server.lost is not None:
            _LOG.error("%s", in_one_line(server.lost), extra=event("lost"))
            raise server.lost


def _tell(name: str, words: str, **fields: Any) -> None:
    _LOG.info("%s", words, extra=event(name, **fields))


def require_safe(settings: ServerSettings) -> None:
    """Refuse to listen beyond this machine without encryption, unless explicitly allowed."""
    if (settings.certificate is None) != (settings.key is None):
        raise InputError("--certificate and --key belong together", hint="give both, or neither")
    for file in (settings.certificate, settings.key):
        if file is not None and not file.is_file():
            raise InputError(f"there is no file {file}")
    if is_loopback(settings.host) or settings.certificate or settings.allow_insecure:
        return
    raise InputError(
        f"tokens would cross the network to {settings.host} unencrypted",
        hint="give --certificate and --key, or pass --insecure if something else encrypts",
    )


class _Server(OrderlyServer):
    """Uvicorn, set up for one service; queries are restarted once it answers."""

    def __init__(
        self,
        service: Service,
        config: ServerConfig,
        tokens: Tokens,
        sessions: Sessions,
        stopping: Callable[[], None],
        log: ServerLog,
        pg: socket.socket | None = None,
    ) -> None:
        settings = config.settings
        pages = all_pages(config.pages, lambda error: _LOG.error("%s", in_one_line(error)))
        super().__init__(
            uvicorn.Config(
                make_app(service, tokens, sessions, pages, log.tell_rest),
                http=protocol_for(settings),
                log_config=None,
                access_log=config.log.access,
                server_header=False,
                ssl_certfile=settings.certificate,
                ssl_keyfile=settings.key,
                timeout_graceful_shutdown=max(1, round(settings.stop_seconds)),
                ws_max_size=settings.max_body_bytes,
            ),
            stopping,
        )
        self._service = service
        self._pg = pg
        self._pg_listener = None if pg is None else PgListener(service, tokens, _tls(settings))
        self._spark_log = log.spark.file
        self.lost: NilometerError | None = None
        """Why the server ends although nobody stopped it."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._pg is not None and self._pg_listener is not None:
            await self._pg_listener.start(self._pg)
        notify("READY=1", "STATUS=serving")
        self._resuming = asyncio.create_task(self._resume())
        self._watching = asyncio.create_task(self._watch())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.is_closing = True
        notify("STOPPING=1", "STATUS=stopping")
        if self._pg_listener is not None:
            await self._pg_listener.close()
        await super().shutdown(sockets)

    async def _resume(self) -> None:
        try:
            names = await self._service.resume()
            words = "queries resumed: %d"
            _LOG.info(words, len(names), extra=event("resumed", queries=len(names)))
        except NilometerError as error:
            _LOG.error("%s", in_one_line(error), extra=event("resume_failed"))
        except Exception:  # the server is ready anyway, and its log says why the queries are not
            _LOG.exception("queries could not be started again", extra=event("resume_failed"))

    async def _watch(self) -> None:
        """End the server when it has lost Spark or its catalog: it must be restarted."""
        missed = 0
        while missed < _MISSED and self._service.lost is None:
            await asyncio.sleep(_LOOK_SECONDS)
            missed = 0 if await self._service.has_spark() else missed + 1
            notify("WATCHDOG=1")
        self.lost = self._service.lost or SessionError(
            "Spark has terminated, so the server stops",
            detail="memory may have run out, or somebody has ended Java",
            hint="start it again: queries resume where they were; Spark's last output is in "
            f"{self._spark_log}",
        )
        self.should_exit = True


def _tls(settings: ServerSettings) -> ssl.SSLContext | None:
    if settings.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(settings.certificate, settings.key)
    return context


@contextmanager
def _listen(settings: ServerSettings, port: int, option: str) -> Iterator[socket.socket]:
    host = settings.host.strip("[]")
    try:
        kind = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(kind[4][:2], family=kind[0], backlog=512)
    except OSError as error:
        raise InputError(
            f"cannot listen at {settings.host}, port {port}",
            detail=error.strerror,
            hint=f"choose another one with {option}",
        ) from None
    with listening:
        yield listening


@contextmanager
def _own_spark(wait: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    """The session once it has started; it is stopped at the end."""
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
        max_queries=config.settings.max_queries,
        delivery_folders=config.delivery_folders,
        stream_defaults=config.streams,
        in_process_bytes=config.settings.in_process_bytes,
        buckets=config.queries.buckets,
    )
    try:
        for name, one in config.functions.items():
            if one.aggregate:
                database.create_aggregate(name, one.function, one.returns)
            else:
                database.create_function(
                    name, one.function, one.returns, by_row=one.by_row, cost=one.cost
                )
        for name, unit in config.units.items():
            database.register_unit(name, unit)
    except BaseException:
        database.close()
        raise
    return database


def _address(settings: ServerSettings, listening: socket.socket) -> str:
    scheme = "http" if settings.certificate is None else "https"
    name = settings.host.strip("[]")
    host = f"[{name}]" if ":" in name else name
    return f"{scheme}://{host}:{listening.getsockname()[1]}"


def _greeting(
    address: str, pg: socket.socket | None, first: str | None, sessions: Sessions
) -> Iterator[str]:
    yield f"listening at {address}"
    yield f"  console  {address}/login?code={sessions.code_for(EVERYTHING)}  (once, for 5 minutes)"
    yield f"  API      {address}/docs"
    if pg is not None:
        host, port = pg.getsockname()[:2]
        yield f"  psql     psql -h {host} -p {port} nilometer  (the password is a token)"
    if first is not None:
        yield f"  token    {first}  (admin; it is not shown again)"
    yield "Ctrl-C stops the server; its queries resume at the next start"


@contextmanager
def _signals_ignored_after() -> Iterator[None]:
    """Uvicorn raises the signal that stopped it again: it must not cut short what follows."""
    before = {
        number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        del before  # a second Ctrl-C would only make stopping take longer
