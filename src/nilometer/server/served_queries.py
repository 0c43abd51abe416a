"""The named queries of a served database: their state, their lives and their results."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nilometer.database import Database
from nilometer.database.limits import filled
from nilometer.database.query_status import HealthSample, QueryLimits, QueryStatus
from nilometer.errors import InputError, NilometerError, NotFoundError
from nilometer.model.names import nearest
from nilometer.server.limits import Followers, Shares
from nilometer.server.results.query_results import QueryResults
from nilometer.server.results.stored_results import StoredResults
from nilometer.server.scopes import Asker, Scope, require_scope
from nilometer.server.statement_log import StatementLog
from nilometer.server.statement_runner import StatementRunner
from nilometer.server.threads import Threads


class ServedQueries:
    """What clients may do with named queries; methods may be called from the event loop."""

    def __init__(
        self,
        database: Database,
        threads: Threads,
        shares: Shares,
        runner: StatementRunner,
        log: StatementLog,
        followers: Followers,
    ) -> None:
        self._database = database
        self._threads = threads
        self._shares = shares
        self._runner = runner
        self._log = log
        self._followers = followers
        self._results = StoredResults(database.log_of)

    async def all(self) -> list[QueryStatus]:
        """The state of all named queries."""
        return await self._threads.look(self._database.query_statuses)

    async def status(self, name: str) -> QueryStatus:
        """The state of one named query."""
        status = await self._threads.look(lambda: self._database.find_query_status(name))
        if status is None:
            names = [one.name for one in await self.all()]
            raise NotFoundError(f"there is no query {name}", hint=nearest(name, names))
        return status

    async def create(
        self,
        text: str,
        asker: Asker,
        *,
        name: str | None = None,
        temporary: bool = False,
        limits: QueryLimits | None = None,
    ) -> QueryStatus:
        """Start a query and store it; one without a name is given one, and is temporary."""
        require_scope(asker.scopes, Scope.WRITE)
        statement = await self._threads.plan(lambda: self._runner.read_query(text))
        if name is not None and "/" in name:
            raise InputError(
                "the name of a query cannot have a slash here",
                detail=f"got {name!r}",
                hint="it is part of URLs: /queries/name",
            )
        is_bound = limits is not None and not asker.may(Scope.ADMIN)
        if limits is not None and is_bound:
            self._runner.require_within(filled(limits, self._database.limits), asker)

        def create() -> QueryStatus:
            with self._runner.room_for(asker):
                return self._database.create_query(
                    name,
                    statement,
                    limits=limits,
                    fill_limits=is_bound,
                    temporary=temporary or name is None,
                    owner=asker.name,
                )

        with self._log.watch(text, asker), self._shares.one(asker.name):
            made = await self._threads.change(create)
        self._followers.seen(made.name)
        return made

    async def start(self, name: str, asker: Asker) -> bool:
        """Resume a query; False if it is already running."""
        require_scope(asker.scopes, Scope.WRITE)
        async with self.known(name) as known:
            with self._shares.one(asker.name):
                return await self._threads.change(lambda: self._database.start_query(known))

    async def stop(self, name: str, asker: Asker) -> bool:
        """Stop a query until it is started again; False if it was not running."""
        require_scope(asker.scopes, Scope.WRITE)
        async with self.known(name) as known:
            with self._shares.one(asker.name):
                return await self._threads.change(lambda: self._database.stop_query(known))

    async def drop(self, name: str, asker: Asker) -> None:
        """Drop a query and its results."""
        require_scope(asker.scopes, Scope.WRITE)
        async with self.known(name) as known:
            with self._shares.one(asker.name):
                await self._threads.change(lambda: self._database.drop_query(known))

    async def last_samples(self) -> dict[str, HealthSample]:
        """The latest sample of each query that has any, by name."""
        return await self._threads.look(self._database.last_samples)

    async def health(self, name: str) -> list[HealthSample]:
        """The health of a query over the last minutes, oldest first."""
        async with self.known(name) as known:
            return await self._threads.look(lambda: self._database.query_health(known))

    async def health_of(self, names: list[str]) -> dict[str, list[HealthSample]]:
        """The same of several queries, by name."""
        return await self._threads.look(lambda: self._database.health_of(names))

    @asynccontextmanager
    async def known(self, name: str) -> AsyncIterator[str]:
        """A query's name as it is spelled, for work on that query.

        If there is no such query, or it is dropped meanwhile, whatever fails becomes NotFoundError.
        """
        known = (await self.status(name)).name
        try:
            yield known
        except NilometerError:
            await self.status(known)
            raise

    def results(self, name: str) -> QueryResults:
        """The results of a query; reads a small file, so best called in a thread."""
        return self._results.of(name)

    def close(self) -> None:
        """Read no more results."""
        self._results.close()
