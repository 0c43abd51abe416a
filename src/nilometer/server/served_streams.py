"""The streams, sensor tables and sensors of a served database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nilometer.database import Database
from nilometer.database.try_sensor import TrialResult
from nilometer.errors import NilometerError, NotFoundError
from nilometer.model.names import nearest
from nilometer.sensors.manager.status import SensorStatus, StreamStatus
from nilometer.server.declared import Declared, without_secrets
from nilometer.server.limits import Shares
from nilometer.server.results.recent_readings import RecentReadings
from nilometer.server.scopes import Asker, Scope, require_scope, scope_needed
from nilometer.server.statement_runner import Executed, StatementRunner
from nilometer.server.threads import Threads
from nilometer.sql.ddl.nodes import Insert
from nilometer.sql.expressions.scalars import quote_name


class ServedStreams:
    """What clients may do with streams; methods may be called from the event loop."""

    def __init__(
        self, database: Database, threads: Threads, shares: Shares, runner: StatementRunner
    ) -> None:
        self._database = database
        self._threads = threads
        self._shares = shares
        self._runner = runner

    async def all(self) -> list[StreamStatus]:
        """The state of all streams and sensor tables."""
        return await self._threads.look(self._database.streams)

    async def sensors(self, stream: str | None = None) -> list[SensorStatus]:
        """The sensors that some query needs at present, of one stream or of all."""
        if stream is None:
            return await self._threads.look(self._database.sensors)
        async with self.known(stream) as known:
            return await self._threads.look(lambda: self._database.sensors(known))

    async def describe(self, name: str) -> Executed:
        """The columns of a stream or sensor table, and its declaration."""
        async with self.known(name) as known:
            return await self._threads.look(
                lambda: self._runner.run(f"DESCRIBE {quote_name(known)}")
            )

    async def readings(self, name: str) -> RecentReadings:
        """The newest readings of a stream or sensor table, to follow as they arrive."""
        async with self.known(name) as known:
            return await self._threads.look(lambda: RecentReadings(self._database.log_of(known)))

    async def try_statements(
        self, text: str, asker: Asker, seconds: float, max_rows: int
    ) -> TrialResult:
        """What the first sensor that statements would declare sends; none of it is stored.

        Trying requires the right to declare it: the server contacts it in either case.
        """
        require_scope(asker.scopes, Scope.WRITE)
        with self._shares.one(asker.name):
            statements = await self._threads.plan(lambda: self._runner.read_all(text, {}))
            for one in statements:
                require_scope(asker.scopes, scope_needed(one.statement))

            def read() -> TrialResult:
                for one in statements:
                    if isinstance(one.statement, Insert):
                        self._runner.require_for_rows(one.statement.table, asker)
                return self._database.try_statements(text, seconds=seconds, rows=max_rows)

            return await self._threads.select(read)

    async def try_sensor(
        self, name: str, sensor: str | None, asker: Asker, seconds: float, max_rows: int
    ) -> TrialResult:
        """What a declared sensor sends at present; none of it is stored."""
        require_scope(asker.scopes, Scope.WRITE)
        async with self.known(name) as known:
            with self._shares.one(asker.name):
                return await self._threads.select(
                    lambda: self._database.try_sensor(known, sensor, seconds=seconds, rows=max_rows)
                )

    async def declarations(self) -> list[Declared]:
        """All streams and sensor tables with all their sensors."""

        def read() -> list[Declared]:
            declarations = self._database.declarations()
            return [without_secrets(one, sensors) for one, sensors in declarations]

        return await self._threads.look(read)

    @asynccontextmanager
    async def known(self, name: str) -> AsyncIterator[str]:
        """A stream's or sensor table's name as it is spelled, for work on it.

        If there is none, or it is dropped meanwhile, whatever fails becomes NotFoundError.
        """
        known = await self._spelled(name)
        try:
            yield known
        except NilometerError:
            await self._spelled(known)
            raise

    async def _spelled(self, name: str) -> str:
        names = [one.name for one in await self.all()]
        known = next((one for one in names if one.lower() == name.lower()), None)
        if known is None:
            raise NotFoundError(f"there is no stream {name}", hint=nearest(name, names))
        return known
