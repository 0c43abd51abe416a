"""The sub-plan of queries in a bucket: fed micro-batch by micro-batch, saved and restored.

Queries with the same sub-plan, at the same positions and in the same state, share it: it is fed
once in a micro-batch, and each of them gets what it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from nilometer.engine.bucket_files import Extent, KeptQuery
from nilometer.engine.held_chunks import HeldChunks
from nilometer.engine.log_reads import LogReads, LogRows
from nilometer.engine.shedding import select_rows, share_to_read
from nilometer.engine.subplan import SubPlan
from nilometer.kernels.admit import Punctuation
from nilometer.kernels.row_errors import RowErrors, leaving_out
from nilometer.log.position import Position
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators.stage import BucketRun, MicroBatch, admit_rows, concat

if TYPE_CHECKING:
    from nilometer.engine.plan import OpenedFeed, PlanPart  # loads all of SQL


@dataclass(frozen=True)
class SubPlanOutput:
    """What a sub-plan gives in a micro-batch."""

    rows: tuple[list[pa.RecordBatch], ...]
    """The output of the last stage of each part."""
    watermark: int | None
    """The time before which results are complete; None: unknown."""
    errors: RowErrors
    is_behind: bool
    """Whether its logs have more rows for it."""


class SubPlanRun:
    """A running sub-plan."""

    def __init__(self, plan: SubPlan, fetch: Callable[[Extent], bytes]) -> None:
        """`fetch` reads what is saved."""
        self.plan = plan
        self.tag = uuid4().hex[:8]
        """By which queries that share it know one another."""
        self.positions: list[Position] = [one.start for one in plan.feeds]
        self.saved: Mapping[str, Extent] = {}
        """Its chunks, and"""
        self.at: Extent | None = None
        """its snapshot in the files, as of the last save; None: it was never saved."""
        self.holder: str | None = None
        """A query with which its state is stored as it is in memory, or is about to be,"""
        self.is_waiting = False
        """if a file is yet to be written that has it."""
        self.sharing = 1
        """How many queries share it."""
        self.rounds = 0
        """How many micro-batches it has been fed, and"""
        self._begun = 0
        """how many before this one."""
        self.seconds = 0.0
        """How long the last one took."""
        self.chunks = HeldChunks(lambda name: fetch(self.saved[name]))
        self.parts = [_PartRun(part, self.chunks) for part in plan.parts]
        self._reads: LogReads | None = None
        self._given: SubPlanOutput | Exception | None = None

    def begin(self) -> None:
        """Take in the rows of static tables when it runs for the first time."""
        for part in self.parts:
            part.hold()

    @property
    def is_new(self) -> bool:
        """Whether nothing was done with it so far."""
        return self.at is None and not self.rounds

    def feed(self, reads: LogReads, now: int, check: Callable[[], None]) -> SubPlanOutput | None:
        """Process what the logs have, unless another query has had that done.

        None: nothing to read, and nothing due. `check` is called between pieces of work, and may
        raise; what is raised is raised for all queries that share it.
        """
        if self._reads is not reads:
            self._reads, begun = reads, monotonic()
            self._begun = self.rounds
            try:
                self._given = self._process(reads, now, check)
            except Exception as error:
                self._given = error
            self.seconds = monotonic() - begun
        if isinstance(self._given, Exception):
            raise self._given
        return self._given

    def changes(self, kept: KeptQuery | None) -> tuple[dict[str, bytes | Extent], list[str]]:
        """Its new chunks and the names of those that are gone, for a query that has these.

        Those of a query that had another sub-plan are replaced.
        """
        new, gone = self.chunks.changes()
        if (None if kept is None else kept.subplan) == self.at:
            return {**new}, gone
        chunks = {name: one for name, one in self.saved.items() if name not in gone}
        old = () if kept is None else kept.chunks
        return {**chunks, **new}, [name for name in old if name not in {*chunks, *new}]

    def save(self, holder: str, kept: KeptQuery) -> None:
        """Note where in the files it is, with this query, as of the last save or as it is now."""
        self.at, self.saved = kept.subplan, dict(kept.chunks)
        if self.holder is not None:
            self.holder = holder
        if self.is_waiting:
            self.chunks.saved()
        self.is_waiting = False

    def rest(self) -> None:
        """Forget what was read and given."""
        self._reads = self._given = None
        self._begun = self.rounds

    def follows(self, rounds: int) -> bool:
        """Whether a query that has seen so many micro-batches of it has missed none."""
        return self._begun <= rounds

    def _process(
        self, reads: LogReads, now: int, check: Callable[[], None]
    ) -> SubPlanOutput | None:
        errors = RowErrors()
        with leaving_out(errors if self.plan.leaves_out else None):
            batches = [part.empty(now) for part in self.parts]
            came, is_behind = self._read(reads, now, batches)
            if not came and not self.plan.needs_now:
                return None
            self.holder = None
            self.rounds += 1
            rows = tuple(
                part.process(batch, check) for part, batch in zip(self.parts, batches, strict=True)
            )
        return SubPlanOutput(rows, self._watermark(), errors, is_behind)

    def _read(
        self, reads: LogReads, now: int, batches: Sequence[list[MicroBatch]]
    ) -> tuple[bool, bool]:
        """Whether rows arrived, and whether there are more."""
        came = is_behind = False
        numbers = [n for n, part in enumerate(self.plan.parts) for _ in part.feeds]
        for place, (number, opened) in enumerate(zip(numbers, self.plan.feeds, strict=True)):
            at = self.positions[place]
            new = reads.rows(opened.log, opened.layout, at, opened.feed.where)
            if new is None:
                continue
            came, is_behind = True, is_behind or new.is_behind
            self.positions[place] = new.end
            feed, stage = opened.feed, self.plan.parts[number].stages[opened.feed.stage]
            batch = batches[number][feed.stage]
            if new.rows is not None and len(new.rows):
                rows = self._shed(reads, opened, at, new)
                traffic = self.parts[number].runs[feed.stage].traffic
                traffic.shed[feed.stream] += len(new.rows) - len(rows)
                carried, selected = feed.reader.read(rows, now)
                admitted, punctuation = admit_rows(carried, stage, feed.stream, selected)
                batch.add(feed.stream, [admitted], punctuation)
            batch.add(feed.stream, [], Punctuation(watermark=new.watermark))
        return came, is_behind

    def _shed(
        self, reads: LogReads, opened: OpenedFeed, at: Position, new: LogRows
    ) -> pa.RecordBatch:
        """The new rows to read: all, unless too many of the log wait."""
        rows, above = new.rows, self.plan.shed_above
        waiting = new.waiting + new.end.row - at.row
        if above is None or waiting <= above:
            return rows
        everything = rows
        if opened.feed.where is not None:
            others = reads.rows(opened.log, opened.layout, at, None)
            everything = rows if others is None or others.rows is None else others.rows
        return select_rows(rows, everything, opened.feed.utility, share_to_read(waiting, above))

    def _watermark(self) -> int | None:
        reached = min(part.frontier for part in self.parts)
        return reached if EARLIEST < reached < FOREVER else None

    @property
    def counts(self) -> list[int]:
        """The rows that were dropped so far: late ones, and those without a time."""
        runs = [run for part in self.parts for run in part.runs]
        return [n for run in runs for n in (*run.operator.late, *run.traffic.without_time)]

    @property
    def state_bytes(self) -> int:
        """The size of its chunks."""
        runs = (run for part in self.parts for run in part.runs)
        return sum(r.size for run in runs for stored in run.operator.stored for r in stored.refs)

    def snapshot(self) -> dict[str, Any]:
        """Everything but the chunks."""
        return {
            "positions": [one.to_json() for one in self.positions],
            "parts": [[run.state() for run in part.runs] for part in self.parts],
        }

    def restore(self, snapshot: dict[str, Any], at: Extent, saved: Mapping[str, Extent]) -> None:
        """Resume from a snapshot that is stored there, with these chunks."""
        self.at, self.saved = at, dict(saved)
        self.positions = [Position.from_json(one) for one in snapshot["positions"]]
        for part, states in zip(self.parts, snapshot["parts"], strict=True):
            for run, state in zip(part.runs, states, strict=True):
                run.take_state(state)


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
