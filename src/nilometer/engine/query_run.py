"""A query running in a bucket: fed micro-batch by micro-batch, saved and restored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nilometer.engine.held_chunks import HeldChunks
from nilometer.engine.log_reads import LogReads, LogRows
from nilometer.engine.same_query import FORMAT, check_same_query
from nilometer.engine.shedding import select_rows, share_to_read
from nilometer.kernels.admit import Punctuation
from nilometer.kernels.row_errors import RowErrors, leaving_out
from nilometer.log.position import Position
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators.metrics import bucket_metrics
from nilometer.operators.stage import BucketRun, MicroBatch, admit_rows, concat

if TYPE_CHECKING:
    from nilometer.engine.plan import HostedPlan, OpenedFeed, PlanPart  # loads all of SQL


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

    def __init__(self, hosted: HostedPlan, chunks: HeldChunks) -> None:
        self._hosted = hosted
        self.chunks = chunks
        self.positions: list[Position] = [one.start for one in hosted.feeds]
        self._parts = [_PartRun(part, chunks) for part in hosted.plan.parts]

    def begin(self) -> None:
        """Take in the rows of static tables when the query runs for the first time."""
        for part in self._parts:
            part.hold()

    def feed(self, reads: LogReads, now: int, check: Callable[[], None]) -> RunOutput | None:
        """Process what the logs have at the time `now`; None: nothing to read, and nothing due.

        `check` is called between pieces of work, and may raise.
        """
        errors = RowErrors()
        with leaving_out(errors if self._hosted.dead_letters is not None else None):
            batches = [part.empty(now) for part in self._parts]
            came, is_behind = self._read(reads, now, batches)
            if not came and not self._hosted.plan.needs_now:
                return None
            rows: list[pa.RecordBatch] = []
            for part, batch in zip(self._parts, batches, strict=True):
                for one in part.process(batch, check):
                    rows.append(part.part.rows.select(one))
                    check()
        return RunOutput([one for one in rows if len(one)], self._watermark(), errors, is_behind)

    def _read(
        self, reads: LogReads, now: int, batches: Sequence[list[MicroBatch]]
    ) -> tuple[bool, bool]:
        """Whether rows arrived, and whether there are more."""
        came = is_behind = False
        numbers = [n for n, part in enumerate(self._hosted.plan.parts) for _ in part.feeds]
        for place, (number, opened) in enumerate(zip(numbers, self._hosted.feeds, strict=True)):
            at = self.positions[place]
            found = reads.rows(opened.log, opened.layout, at, opened.feed.where)
            if found is None:
                continue
            came, is_behind = True, is_behind or found.is_behind
            self.positions[place] = found.end
            feed, stage = opened.feed, self._parts[number].part.stages[opened.feed.stage]
            batch = batches[number][feed.stage]
            if found.rows is not None and len(found.rows):
                rows = self._shed(reads, opened, at, found)
                traffic = self._parts[number].runs[feed.stage].traffic
                traffic.shed[feed.stream] += len(found.rows) - len(rows)
                carried, selected = feed.reader.read(rows, now)
                admitted, punctuation = admit_rows(carried, stage, feed.stream, selected)
                batch.add(feed.stream, [admitted], punctuation)
            batch.add(feed.stream, [], Punctuation(watermark=found.watermark))
        return came, is_behind

    def _shed(
        self, reads: LogReads, opened: OpenedFeed, at: Position, found: LogRows
    ) -> pa.RecordBatch:
        """The rows to read of those found: all, unless too many of the log wait."""
        rows, above = found.rows, self._hosted.shed_above
        waiting = found.waiting + found.end.row - at.row
        if above is None or waiting <= above:
            return rows
        everything = rows
        if opened.feed.where is not None:
            others = reads.rows(opened.log, opened.layout, at, None)
            everything = rows if others is None or others.rows is None else others.rows
        return select_rows(rows, everything, opened.feed.utility, share_to_read(waiting, above))

    def _watermark(self) -> int | None:
        reached = min(part.frontier for part in self._parts)
        return reached if EARLIEST < reached < FOREVER else None

    @property
    def metrics(self) -> list[str]:
        """The metrics of its stages, as JSON."""
        return [
            bucket_metrics(stage, 0, run)
            for part in self._parts
            for stage, run in zip(part.part.stages, part.runs, strict=True)
        ]

    @property
    def state_bytes(self) -> int:
        """The size of its chunks."""
        runs = (run for part in self._parts for run in part.runs)
        return sum(r.size for run in runs for stored in run.operator.stored for r in stored.refs)

    def snapshot(self) -> dict[str, Any]:
        """Everything but the chunks."""
        return {
            "positions": [one.to_json() for one in self.positions],
            "parts": [[run.state() for run in part.runs] for part in self._parts],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Resume from a snapshot."""
        self.positions = [Position.from_json(one) for one in snapshot["positions"]]
        for part, states in zip(self._parts, snapshot["parts"], strict=True):
            for run, state in zip(part.runs, states, strict=True):
                run.take_state(state)

    @property
    def about(self) -> dict[str, Any]:
        """The description stored to recognize the query."""
        return {"format": FORMAT, "buckets": 1, "query": self._hosted.plan.description}

    def check(self, about: dict[str, Any]) -> None:
        """Refuse the state of another query."""
        check_same_query(about, self._hosted.plan.description, 1)


class _PartRun:
    """The stages of one part, each in one bucket."""

    def __init__(self, part: PlanPart, chunks: HeldChunks) -> None:
        self.part = part
        self.runs = [BucketRun(stage, chunks) for stage in part.stages]

    def hold(self) -> None:
        for stage, stream, rows, selected in self.part.held:
            planned = self.part.stages[stage]
            admitted, punctuation = admit_rows(rows, planned, stream, selected)
            self.runs[stage].traffic.without_time[stream] += punctuation.without_time
            self.runs[stage].operator.hold(stream, admitted)

    def empty(self, now: int) -> list[MicroBatch]:
        return [stage.no_rows(now) for stage in self.part.stages]

    def process(
        self, batches: Sequence[MicroBatch], check: Callable[[], None]
    ) -> list[pa.RecordBatch]:
        """The output of the last stage."""
        left: list[pa.RecordBatch] = []
        for run, batch, to in zip(self.runs, batches, self.part.sends, strict=True):
            results = []
            for one in run.process(batch):
                results.append(one)
                check()
            if to is None:
                left += results
                continue
            stage, stream = self.part.stages[to[0]], to[1]
            sent = concat(results, stage.operator.schemas[stream])
            admitted, punctuation = stage.operator.admit(stream, sent)
            batches[to[0]].add(stream, [admitted], punctuation)
            batches[to[0]].frontiers[stream, 0] = run.frontier
        return left

    @property
    def frontier(self) -> int:
        return self.runs[-1].frontier
