"""The web application over a database without Spark, for tests of the server itself."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pyarrow as pa
from fastapi import FastAPI

from nilometer.database import Database
from nilometer.database.dashboards import Dashboards
from nilometer.database.home import Home
from nilometer.database.limits import filled
from nilometer.database.measures import Measures
from nilometer.database.past import Past
from nilometer.database.query_status import QueryLimits, QueryPhase, QueryStatus
from nilometer.database.try_sensor import TrialResult, choose_sensor, declared_aside, required_trial
from nilometer.database.units import Units
from nilometer.errors import InputError, NameTakenError, NilometerError
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.execute import execute
from nilometer.sensors.catalog.outcome import Outcome
from nilometer.server.app import make_app
from nilometer.server.scopes import Scope
from nilometer.server.service import Service
from nilometer.server.settings import ServerSettings
from nilometer.server.statement_runner import Values
from nilometer.server.tokens import Tokens
from nilometer.sql.ddl.nodes import AlterQuery, CreateQuery, DatabaseStatement, Show, ShowKind
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.statements import Statement, read_one, read_statements
from tests.patience import LONG


class StoredOnly:
    """A database with a catalog and queries that do nothing; a service takes it for a Database."""

    def __init__(self, catalog: SensorCatalog) -> None:
        self.catalog = catalog
        self.logs = Path(catalog.file or ".").parent / "logs"
        """Where the rows of streams are, for tests that write some."""
        place = SimpleNamespace(catalog=catalog, log_of=lambda name: str(self.logs / name.lower()))
        self.past = Past(cast(Home, place))
        self.dashboards = Dashboards(catalog)
        done = dict.fromkeys(
            ("addJobTag", "removeJobTag", "setInterruptOnCancel", "cancelJobsWithTag"),
            lambda _: None,
        )
        self.spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(**done))
        self.kept: dict[str, QueryStatus] = {}
        self.gate = threading.Event()
        """What statements wait for."""
        self.gate.set()
        self.answer = pa.table({"v": ["<script>alert(1)</script>"]})
        self.failure: Exception | None = None
        self.limits = QueryLimits()
        self.lost: NilometerError | None = None
        self.owners: list[str | None] = []
        """The queries that were created."""
        self.watched: list[Any] = []
        """The state of alerts."""
        self.is_watched = True
        """Whether some query reads the streams."""

    def pretend_spark_lives(self) -> None:
        """Let the server consider itself ready."""
        inner = SimpleNamespace(isStopped=lambda: False)
        self.spark.sparkContext._jsc = SimpleNamespace(sc=lambda: inner)

    def execute(self, statement: str | DatabaseStatement, *, owner: str | None = None) -> Outcome:
        self.gate.wait(LONG)
        if self.failure is not None:
            raise self.failure
        if isinstance(statement, str):
            read = read_one(statement)
            assert not isinstance(read, Statement)
            statement = read
        if isinstance(statement, Show) and statement.what in (
            ShowKind.DEAD_LETTERS,
            ShowKind.STORAGE,
        ):
            return Outcome(f"no {statement.what.lower()}")
        if isinstance(statement, CreateQuery):
            self.owners.append(owner)
            return Outcome("query created")
        if isinstance(statement, AlterQuery):
            return Outcome("query altered")
        return execute(self.catalog, statement)

    def sql(self, text: str, *, parameters: Values | None = None) -> Any:
        read_one(text, Parameters(parameters or {}))
        answer = self.answer
        limited = SimpleNamespace(toArrow=lambda: answer)
        return SimpleNamespace(isStreaming="STREAM" in text, limit=lambda most: limited)

    def explain(self, text: str, *, form: str = "text", parameters: Values | None = None) -> str:
        read_one(text, Parameters(parameters or {}))
        return f"a plan as {form}"

    def create_query(
        self,
        name: str | None,
        statement: Statement,
        *,
        limits: QueryLimits | None,
        fill_limits: bool,
        temporary: bool,
        owner: str,
    ) -> QueryStatus:
        self.owners.append(owner)
        chosen = name or "run_00000000"
        if chosen.lower() in self.kept:
            raise NameTakenError(f"query {chosen} already exists")
        made = QueryStatus(
            chosen, statement.sql, "append", QueryPhase.RUNNING, 0, 0, None, 0, None, temporary,
            filled(limits, self.limits) if limits and fill_limits else limits or QueryLimits(),
            0, 0, None, None,
        )  # fmt: skip
        self.kept[chosen.lower()] = made
        return made

    def query_statuses(self) -> list[QueryStatus]:
        return list(self.kept.values())

    def find_query_status(self, name: str) -> QueryStatus | None:
        return self.kept.get(name.lower())

    def query_health(self, name: str) -> list[Any]:
        return []

    def last_samples(self) -> dict[str, Any]:
        return {}

    def measures(self) -> Measures:
        return Measures()

    def start_query(self, name: str) -> bool:
        return False

    def stop_query(self, name: str) -> bool:
        return True

    def drop_query(self, name: str) -> None:
        del self.kept[name.lower()]

    def queries_of(self, owner: str) -> int:
        return self.owners.count(owner)

    def is_declared(self, name: str) -> bool:
        return name.lower() in {one.name.lower() for one in self.catalog.declarations()}

    def try_statements(self, text: str, *, seconds: float, rows: int) -> TrialResult:
        trial = required_trial(read_statements(text))
        with declared_aside(trial, self.catalog.declaration, Units().find) as (declared, sensor):
            return TrialResult(declared.name, sensor.name, ({"v": 1},), 1, (), 0, 0, None)

    def try_sensor(
        self, name: str, sensor: str | None, *, seconds: float, rows: int
    ) -> TrialResult:
        declared = self.catalog.require_declaration(name)
        sensors = self.catalog.sensors(name) if declared.is_sensor_table else []
        chosen = choose_sensor(declared, sensors, sensor)
        return TrialResult(declared.name, chosen.name, ({"v": 1},), 1, (), 0, 0, None)

    clock_ahead = 0

    def streams(self) -> list[Any]:
        zero = dict.fromkeys(("sensors", "connected", "readers", "rows", "stored_bytes"), 0)
        none = dict.fromkeys(("watermark", "lag", "held_by", "held_since", "error"))
        none |= dict.fromkeys(("silent_since", "last_arrival", "behind"))
        more = {"full": False, "dead_letters": 0, "dropped": 0, "pending": 0}
        more |= {"silent": 0, "backlog": 0}
        more |= {"durability": "disk", "unshipped": 0, "unshipped_since": None}
        more |= {"segments": 0, "kept_rows": 0, "oldest": None, "rate": 0.0}
        return [
            SimpleNamespace(name=one.name, **zero, **none, **more)
            for one in self.catalog.declarations()
            if self.is_watched
        ]

    def sensors(self, name: str | None = None) -> list[Any]:
        return []

    def deliveries(self) -> list[Any]:
        return []

    def alerts(self) -> list[Any]:
        return self.watched

    def alert_history(self, name: str, *, limit: int) -> list[Any]:
        return []

    def log_of(self, name: str) -> str:
        raise InputError(f"query {name} has no results yet")


class Served:
    """An application, its tokens, and a client that calls it."""

    def __init__(self, folder: Path, settings: ServerSettings, ticks: Callable[[], float]) -> None:
        (folder / "catalog.sqlite").write_bytes(_empty_catalog())
        self.catalog = SensorCatalog.open(folder / "catalog.sqlite")
        self.database = StoredOnly(self.catalog)
        self.tokens = Tokens(self.catalog, ticks=ticks)
        self.secrets = {one.value: self.tokens.create(one.value, one) for one in Scope}
        self.service = Service(cast(Database, self.database), settings)
        self.service.is_ready = True
        self.app: FastAPI = make_app(self.service, self.tokens)

    def ask(
        self, method: str, path: str, scope: str | None = "admin", **more: Any
    ) -> httpx.Response:
        """One request."""
        return asyncio.run(self.ask_async(method, path, scope, **more))

    async def ask_async(
        self, method: str, path: str, scope: str | None = "admin", **more: Any
    ) -> httpx.Response:
        headers = dict(more.pop("headers", {}))
        if scope is not None:
            headers.setdefault("Authorization", f"Bearer {self.secrets.get(scope, scope)}")
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, headers=headers, **more)

    def sql(self, statement: str, scope: str = "admin") -> httpx.Response:
        return self.ask("POST", "/sql", scope, json={"statement": statement})

    def close(self) -> None:
        self.database.gate.set()
        self.service.close()
        self.catalog.close()


@cache
def _empty_catalog() -> bytes:
    """The file of an empty catalog: creating one takes longer than copying it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.sqlite"
        SensorCatalog.open(path).close()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.read_bytes()


@contextmanager
def served(
    folder: Path, settings: ServerSettings | None = None, ticks: Callable[[], float] | None = None
) -> Iterator[Served]:
    """An application over a database in a folder."""
    server = Served(folder, settings or ServerSettings(), ticks or (lambda: 0.0))
    try:
        yield server
    finally:
        server.close()
