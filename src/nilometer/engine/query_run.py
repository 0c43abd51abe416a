"""A query running in a bucket: what it makes of what its sub-plan gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nilometer.engine.log_reads import LogReads
from nilometer.engine.same_query import FORMAT, check_same_query
from nilometer.engine.subplan import Above
from nilometer.engine.subplan_run import SubPlanRun
from nilometer.kernels.row_errors import RowErrors, leaving_out
from nilometer.operators.metrics import bucket_figures

if TYPE_CHECKING:
    from nilometer.engine.plan import HostedPlan  # loads all of SQL


@dataclass
class RunOutput:
    """The output of a micro-batch."""

    rows: list[pa.RecordBatch]
    watermark: int | None
    """The time before which results are complete; None: unknown."""
    errors: RowErrors
    is_behind: bool
    """Whether its logs have more rows for it."""


class HostedRun:
    """A running query."""

    def __init__(self, hosted: HostedPlan, above: Sequence[Above], subplan: SubPlanRun) -> None:
        self.hosted = hosted
        self._above = above
        self.subplan = subplan
        self.rounds = subplan.rounds
        """How many micro-batches of its sub-plan it has seen."""
        self.counted = [0] * len(subplan.counts)
        """How many more rows were dropped for it than its sub-plan has counted."""
        self._sent = [0] * len(above)

    def feed(self, reads: LogReads, now: int, check: Callable[[], None]) -> RunOutput | None:
        """Process what the logs have at the time `now`; None: nothing to read, and nothing due.

        `check` is called between pieces of work, and may raise.
        """
        output = self.subplan.feed(reads, now, check)
        if output is None:
            return None
        self.rounds = self.subplan.rounds
        errors = RowErrors()
        errors.add(output.errors)
        rows: list[pa.RecordBatch] = []
        with leaving_out(errors if self.hosted.dead_letters is not None else None):
            for number, (above, some) in enumerate(zip(self._above, output.rows, strict=True)):
                self._sent[number], selected = above.select(some)
                rows += selected
                check()
        some = [one for one in rows if len(one)]
        return RunOutput(some, output.watermark, errors, output.is_behind)

    def share(self, subplan: SubPlanRun) -> None:
        """Go on with another sub-plan that is in the same state."""
        own = zip(self.counted, self.subplan.counts, subplan.counts, strict=True)
        self.counted = [more + before - after for more, before, after in own]
        self.subplan, self.rounds = subplan, subplan.rounds

    @property
    def metrics(self) -> list[str]:
        """The metrics of its stages, as JSON."""
        metrics, counted = [], iter(self.counted)
        for part, sent in zip(self.subplan.parts, self._sent, strict=True):
            figures = [
                bucket_figures(stage, 0, run)
                for stage, run in zip(part.part.stages, part.runs, strict=True)
            ]
            for one in figures:
                one["late"] = [rows + next(counted) for rows in one["late"]]
                one["without_time"] = [rows + next(counted) for rows in one["without_time"]]
            figures[-1]["results"] = sent
            metrics += [json.dumps(one, separators=(",", ":")) for one in figures]
        return metrics

    @property
    def about(self) -> dict[str, Any]:
        """The description stored to recognize the query."""
        return {"format": FORMAT, "buckets": 1, "query": self.hosted.plan.description}

    def check(self, about: dict[str, Any]) -> None:
        """Refuse the state of another query."""
        check_same_query(about, self.hosted.plan.description, 1)
