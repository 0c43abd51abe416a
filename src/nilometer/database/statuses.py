"""How named queries are doing, out of what is known already: quick, and never in the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from nilometer.database.limits import hosted_id, is_temporary, limits_of
from nilometer.database.query_run import QueryRun, RunState
from nilometer.database.query_status import MOVED, EngineChoice, QueryPhase, QueryStatus
from nilometer.database.result_size import ResultSize, result_size
from nilometer.database.run_table import RunTable
from nilometer.errors import LogError, NilometerError, in_one_line
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.stored_queries import NamedQuery, QueryState
from nilometer.spark.engine import HostedQuery

_PHASES: Final = {
    QueryState.RUNNING: QueryPhase.WAITING,
    QueryState.STOPPED: QueryPhase.STOPPED,
    QueryState.FAILED: QueryPhase.FAILED,
}
"""Of a query about which nothing was done here yet."""


class QueryStatuses:
    """Snapshots from the catalog, read again when it has changed, and from the runs."""

    def __init__(
        self, catalog: SensorCatalog, runs: RunTable, log_of: Callable[[str], str]
    ) -> None:
        self._catalog = catalog
        self._runs = runs
        self._log_of = log_of
        self._known: tuple[int, list[NamedQuery]] = (-1, [])
        self._sizes: dict[tuple[str, int], ResultSize] = {}

    def all(self) -> list[QueryStatus]:
        """All queries, by name."""
        return [self._status(query) for query in self._queries()]

    def _queries(self) -> list[NamedQuery]:
        generation = self._catalog.generation()
        known = self._known
        if known[0] != generation:
            known = (generation, self._catalog.queries())
            self._known = known
            there = {(one.name, one.created) for one in known[1]}
            # Others add to it, or replace it, meanwhile: whoever uses it takes hold of it once.
            sizes = self._sizes.copy()
            self._sizes = {key: size for key, size in sizes.items() if key in there}
        return known[1]

    def _status(self, query: NamedQuery) -> QueryStatus:
        run = self._runs.find(query.name)
        state = None if run is None else run.state
        if run is None or state is None:
            size, sample = self._stored_size(query), None
            state = RunState(_PHASES[query.state], error=query.error)
        else:
            size = run.health.size
            sample = run.health.samples[-1] if run.health.samples else None
        if (trouble := _trouble_of(run)) is not None and state.phase is QueryPhase.RUNNING:
            state = replace(state, phase=QueryPhase.RESTARTING, error=in_one_line(trouble))
        return QueryStatus(
            query.name,
            query.text,
            query.kind,
            state.phase,
            query.created,
            state.started,
            state.error,
            state.failures,
            state.next_try,
            is_temporary(query),
            limits_of(query),
            size.rows,
            size.bytes,
            None if sample is None else sample.state_bytes,
            size.watermark,
            size.dead_letters,
            _engine_of(query, run),
        )

    def _stored_size(self, query: NamedQuery) -> ResultSize:
        """The results of a query that does not run: they do not change."""
        key, sizes = (query.name, query.created), self._sizes
        found = sizes.get(key)
        if found is None:
            try:
                found = sizes[key] = result_size(self._log_of(query.name))
            except (LogError, OSError):
                return ResultSize()
        return found


def _trouble_of(run: QueryRun | None) -> NilometerError | None:
    """Why the engine in which a query runs does not work at present."""
    handle = None if run is None else run.handle
    return handle.trouble if isinstance(handle, HostedQuery) else None


def _engine_of(query: NamedQuery, run: QueryRun | None) -> str:
    """Where a query runs, or will."""
    if hosted_id(query) is None:
        return EngineChoice.OWN
    handle = None if run is None else run.handle
    is_moved = isinstance(handle, HostedQuery) and handle.is_apart
    return MOVED if is_moved else EngineChoice.SHARED
