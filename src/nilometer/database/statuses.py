"""The status of named queries, from what is known already: fast, and without blocking them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from nilometer.database.bucket_options import (
    buckets_of,
    hosted_id,
    parting_of,
    spreads_by_itself,
)
from nilometer.database.limits import is_temporary, limits_of
from nilometer.database.query_events import tell_gets_on, tell_stalled
from nilometer.database.query_run import QueryRun, RunState
from nilometer.database.query_status import MOVED, EngineChoice, QueryPhase, QueryStatus
from nilometer.database.result_size import ResultSize, result_size
from nilometer.database.run_table import RunTable
from nilometer.database.spread import Spread
from nilometer.database.stalls import QueryInput, find_stall
from nilometer.errors import LogError, NilometerError, in_one_line
from nilometer.log.position import Position
from nilometer.log.registrations import find_reader
from nilometer.model.time import EARLIEST
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.stored_queries import NamedQuery, QueryState
from nilometer.sensors.manager.status import StreamStatus
from nilometer.spark.hosted_query import HostedQuery

_PHASES: Final = {
    QueryState.RUNNING: QueryPhase.WAITING,
    QueryState.STOPPED: QueryPhase.STOPPED,
    QueryState.FAILED: QueryPhase.FAILED,
}
"""The phase of a query with which nothing has been done here yet."""
_DAY: Final = 86_400_000_000
_UP: Final = (QueryPhase.RUNNING, QueryPhase.STALLED)


class QueryStatuses:
    """Statuses from the runs and from the catalog, which is reread when it has changed."""

    def __init__(
        self,
        catalog: SensorCatalog,
        runs: RunTable,
        log_of: Callable[[str], str],
        streams: Callable[[], Sequence[StreamStatus]],
        clock: Callable[[], int],
    ) -> None:
        self._catalog = catalog
        self._runs = runs
        self._log_of = log_of
        self._streams = streams
        self._clock = clock
        self._known: tuple[int, list[NamedQuery]] = (-1, [])
        self._sizes: dict[tuple[str, int], ResultSize] = {}

    def all(self) -> list[QueryStatus]:
        """All queries, ordered by name."""
        looking = self._looking()
        return [self._complete(name, looking) for name in looking.queries]

    def find(self, name: str) -> QueryStatus | None:
        """One query, its name in any case; of the others only those that it reads are examined."""
        looking = self._looking()
        known = next((one for one in looking.queries if one.lower() == name.lower()), None)
        return None if known is None else self._complete(known, looking)

    def _looking(self) -> _Look:
        return _Look(
            {one.name: one for one in self._streams()},
            {one.name: one for one in self._queries()},
            self._clock(),
        )

    def look(self) -> None:
        """Check which queries make progress, and log those that stalled."""
        for run in self._runs:
            _note_read(run, self._log_of)
        statuses = self.all()
        streams, now = {one.name: one for one in self._streams()}, self._clock()
        queries = {one.name: one for one in statuses}
        for one in statuses:
            seen = self._runs.find(one.name)
            if seen is None or seen.state is None or one.phase not in _UP:
                continue
            began = seen.health.last_time if seen.has_worked else seen.state.started
            inputs = [
                _input(name, streams.get(name), queries.get(name)) for name in seen.progress.inputs
            ]
            seen.progress.look(inputs, began, now)
            if one.stalled is not None and not seen.progress.is_reported:
                tell_stalled(one.name, one.stalled)
            elif one.stalled is None and seen.progress.is_reported:
                tell_gets_on(one.name)
            seen.progress.is_reported = one.stalled is not None

    def _complete(self, name: str, looking: _Look) -> QueryStatus:
        """A status completed by what depends on the queries that it reads."""
        if name in looking.statuses:
            return looking.statuses[name]
        status = self._status(looking.queries[name])
        run = self._runs.find(name)
        if run is not None and run.is_active and _has_begun(status.watermark):
            status = replace(status, lag=max(0, looking.now - (status.watermark or 0)))
        if run is not None and status.phase is QueryPhase.RUNNING:
            progress = run.progress
            inputs = [
                _input(
                    one,
                    looking.streams.get(one),
                    self._complete(one, looking) if one in looking.queries else None,
                )
                for one in progress.inputs
                if one != name
            ]
            stall = find_stall(inputs, progress.waiting_since, status.started, looking.now)
            status = replace(
                status,
                phase=status.phase if stall is None else QueryPhase.STALLED,
                rows_behind=progress.behind(inputs),
                stalled=stall,
            )
        looking.statuses[name] = status
        return status

    def _queries(self) -> list[NamedQuery]:
        generation = self._catalog.generation()
        known = self._known
        if known[0] != generation:
            known = (generation, self._catalog.queries())
            self._known = known
            there = {(one.name, one.created) for one in known[1]}
            # Other threads add to it or replace it meanwhile: read the attribute only once.
            sizes = self._sizes.copy()
            self._sizes = {key: size for key, size in sizes.items() if key in there}
        return known[1]

    def _status(self, query: NamedQuery) -> QueryStatus:
        run = self._runs.find(query.name)
        state = None if run is None else run.state
        spreads: list[Spread] = []
        if run is None or state is None:
            size, sample = self._stored_size(query), None
            state = RunState(_PHASES[query.state], error=query.error, failures=query.failures)
        else:
            size = run.health.size
            sample = run.health.samples[-1] if run.health.samples else None
            if run.is_active:
                spreads = run.health.counter.spreads(self._clock())
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
            shares_with=_sharing_with(run),
            spreads=tuple(spreads),
            buckets=buckets_of(query) or 1,
            parting=parting_of(query.options),
            spreads_by_itself=spreads_by_itself(query),
            remedy=None
            if run is None or run.join is None
            else run.join.remedy(query.name, spreads),
        )

    def _stored_size(self, query: NamedQuery) -> ResultSize:
        """The size of the results of a query that is not running: it does not change."""
        key, sizes = (query.name, query.created), self._sizes
        size = sizes.get(key)
        if size is None:
            try:
                size = sizes[key] = result_size(self._log_of(query.name))
            except (LogError, OSError):
                return ResultSize()
        return size


@dataclass
class _Look:
    """What is known at one moment."""

    streams: Mapping[str, StreamStatus]
    queries: Mapping[str, NamedQuery]
    now: int
    statuses: dict[str, QueryStatus] = field(default_factory=dict)


def _has_begun(watermark: int | None) -> bool:
    """Whether a watermark has left the beginning of time, where unbounded answers stay."""
    return watermark is not None and watermark - EARLIEST > _DAY


def _input(name: str, stream: StreamStatus | None, query: QueryStatus | None) -> QueryInput:
    if stream is not None:
        return QueryInput(name, stream.rows, stream)
    return QueryInput(name, 0 if query is None else query.result_rows, None, query)


def _note_read(run: QueryRun, log_of: Callable[[str], str]) -> None:
    """Record how far a query has read."""
    handle, progress = run.handle, run.progress
    if handle is None:
        progress.read = {}
    elif isinstance(handle, HostedQuery):
        names = {log_of(name): name for name in progress.inputs}
        logs = zip(handle.logs, handle.positions, strict=False)
        positions = ((names.get(log), position) for (log, _), position in logs)
        progress.read = _least((name, one) for name, one in positions if name is not None)
    else:
        with suppress(LogError, OSError):  # keep what was known
            known = ((name, find_reader(log_of(name), one)) for name, one in progress.readers)
            progress.read = _least((name, one.position) for name, one in known if one is not None)


def _least(positions: Iterable[tuple[str, Position]]) -> dict[str, int]:
    """Up to which row all of its readers have read each input."""
    least: dict[str, int] = {}
    for name, position in positions:
        least[name] = min(least.get(name, position.row), position.row)
    return least


def _trouble_of(run: QueryRun | None) -> NilometerError | None:
    """Why the engine in which a query runs is currently not working."""
    handle = None if run is None else run.handle
    return handle.trouble if isinstance(handle, HostedQuery) else None


def _sharing_with(run: QueryRun | None) -> tuple[str, ...]:
    """The queries that share state with one."""
    handle = None if run is None else run.handle
    return tuple(handle.shares_with) if isinstance(handle, HostedQuery) else ()


def _engine_of(query: NamedQuery, run: QueryRun | None) -> str:
    """Where a query runs, or will."""
    if hosted_id(query) is None:
        return EngineChoice.OWN
    handle = None if run is None else run.handle
    is_moved = isinstance(handle, HostedQuery) and handle.is_apart
    return MOVED if is_moved else EngineChoice.SHARED
