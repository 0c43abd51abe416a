"""A query of an engine, with the interface of a Spark streaming query."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nilometer.engine.control import BucketReport
from nilometer.engine.failure import read_failure
from nilometer.engine.plan_set import APART
from nilometer.errors import NilometerError, SlowQueryError
from nilometer.log.position import Position
from nilometer.spark.engine_status import progress_of

if TYPE_CHECKING:
    from nilometer.spark.engine import SharedEngine

_SLOW_MILLIS: Final = 2000
_SLOW_BATCHES: Final = 3
"""A query that is slow in this many consecutive micro-batches is moved apart."""
_KEPT_REPORTS: Final = 50
SharedSubPlan: TypeAlias = tuple[int, str]
"""A bucket, and the tag in it of the state that queries share."""


@dataclass
class HostedQuery:
    """A query of an engine, with the interface of a Spark streaming query."""

    engine: SharedEngine
    query: str
    name: str = ""
    _error: NilometerError | None = None
    is_stopped: bool = False
    is_slow: bool = False
    """Whether it keeps others waiting."""
    positions: Sequence[Position] = ()
    """How far it has read each of its logs, as far as known."""
    subplan: SharedSubPlan | None = None
    """What it shares with all queries that have the same one."""
    _slow_batches: int = 0
    _progress: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=_KEPT_REPORTS))

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self._error is None and not self.is_stopped

    @property
    def logs(self) -> Sequence[tuple[str, str]]:
        """The logs that it reads, with its reader names."""
        return self.engine.logs_of(self.query)

    @property
    def trouble(self) -> NilometerError | None:
        """Why its engine currently does not work, if it does not."""
        return self.engine.trouble(self.query)

    @property
    def is_apart(self) -> bool:
        """Whether it was moved to a bucket of its own."""
        return self.engine.is_apart(self.query)

    @property
    def shares_with(self) -> list[str]:
        """The names of the queries with which it shares state."""
        return self.engine.sharing_with(self)

    def exception(self) -> NilometerError | None:
        """Why it has failed, if it has."""
        return self._error

    @property
    def lastProgress(self) -> Mapping[str, Any] | None:  # noqa: N802
        return self._progress[-1] if self._progress else None

    @property
    def recentProgress(self) -> Sequence[Mapping[str, Any]]:  # noqa: N802
        return list(self._progress)

    def stop(self) -> None:
        """Stop the query."""
        if not self.is_stopped:
            self.is_stopped = True
            self.engine.stop(self.query)

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        """Nothing to wait for: the query has ended once `stop` returns."""
        return not self.isActive

    def processAllAvailable(self) -> None:  # noqa: N802
        """Wait until the results of all rows that are stored now are readable."""
        self.engine.wait_for_rows(self)

    def take(self, report: BucketReport) -> None:
        """Take in a report of its bucket."""
        content = report.content
        if "positions" in content:
            self.positions = [Position.from_json(one) for one in content["positions"]]
        if "subplan" in content:
            self.subplan = report.bucket, content["subplan"]
        if "failure" in content:
            error = read_failure(content["failure"])
            if isinstance(error, SlowQueryError):
                self.is_slow = True
            else:
                self.fail(error)
        elif "metrics" in content:
            self._progress.append(progress_of(report))
            slow = content["millis"] > _SLOW_MILLIS and report.bucket < APART
            self._slow_batches = self._slow_batches + 1 if slow else 0
            self.is_slow |= self._slow_batches >= _SLOW_BATCHES

    def fail(self, error: NilometerError) -> None:
        """Mark the query as failed."""
        if self.isActive:
            self._error = error
