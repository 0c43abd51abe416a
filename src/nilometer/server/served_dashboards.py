"""The dashboards of a served database."""

from __future__ import annotations

from nilometer.database import Database
from nilometer.model.dashboard import Dashboard
from nilometer.server.limits import Shares
from nilometer.server.scopes import Asker, Scope, require_scope
from nilometer.server.statement_runner import StatementRunner
from nilometer.server.threads import Threads


class ServedDashboards:
    """What clients may do with dashboards; methods may be called from the event loop."""

    def __init__(
        self,
        database: Database,
        threads: Threads,
        shares: Shares,
        runner: StatementRunner,
        max_dashboards: int,
    ) -> None:
        self._database = database
        self._threads = threads
        self._shares = shares
        self._runner = runner
        self._max_dashboards = max_dashboards

    async def all(self) -> list[Dashboard]:
        """All dashboards, by name."""
        return await self._threads.look(self._database.dashboards.all)

    async def find(self, name: str) -> Dashboard:
        """One dashboard."""
        return await self._threads.look(lambda: self._database.dashboards.find(name))

    async def put(
        self, given: Dashboard, asker: Asker, *, expected: int | None = None
    ) -> Dashboard:
        """Store a dashboard, replacing one of the same name if it has the expected version."""
        require_scope(asker.scopes, Scope.WRITE)
        kept, limit = self._database.dashboards, self._max_dashboards

        def put() -> Dashboard:
            if given.name.lower() not in {one.name.lower() for one in kept.all()}:
                self._runner.require_room("dashboards", limit, kept.all, asker)
            return kept.put(given, expected=expected)

        with self._shares.one(asker.name):
            return await self._threads.change(put)

    async def remove(self, name: str, asker: Asker) -> None:
        """Delete a dashboard."""
        require_scope(asker.scopes, Scope.WRITE)
        with self._shares.one(asker.name):
            await self._threads.change(lambda: self._database.dashboards.remove(name))
