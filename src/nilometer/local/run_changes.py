"""A windowed plan in this process: all its stages and their buckets, fed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from nilometer.kernels.admit import Punctuation, largest_time
from nilometer.kernels.arrays import as_type
from nilometer.local.read_source import read_source
from nilometer.local.run_stage import LocalStage
from nilometer.model.time import FOREVER
from nilometer.operators.change_operator import DIFF, TIME
from nilometer.operators.stage import BucketRun, Execution, MicroBatch, concat
from nilometer.operators.watermarks import NEVER
from nilometer.sql.physical.join_places import time_place
from nilometer.sql.physical.stages import cut_into_stages
from nilometer.sql.plan.changes_plan import ChangesPlan, Column
from nilometer.sql.plan.types import TIMESTAMP


class LocalChanges:
    """A query in changelog mode; rows are given by the names of streams."""

    def __init__(
        self,
        plan: ChangesPlan,
        execution: Execution | None,
        held: Mapping[str, pa.RecordBatch] | None = None,
    ) -> None:
        """Start a query that continues; `held` are static tables, and streams that have ended.

        None: all rows come at once, including those of static tables.
        """
        self.plan = plan
        self.staged = cut_into_stages(plan, execution)
        self.stages = [LocalStage(one.stage) for one in self.staged.stages]
        self._readers = [
            (stage, stream, read_source(given.plan, given.plan.sources[given.source]))
            for stage, stream, given in self.staged.streams
        ]
        sources = (given.plan.sources[given.source] for _, _, given in self.staged.streams)
        own = {one.relation.name: one.relation.rows for one in sources}
        self._brought = {name: batch for name, batch in own.items() if batch is not None}
        for stage, stream, reader in self._readers if held is not None else ():
            rows = {**(held or {}), **self._brought}.get(reader.relation)
            if rows is not None:
                self.stages[stage].hold(stream, *reader.read(rows, None))

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""
        schema = changelog_table(self.staged.columns, []).schema
        return schema.remove(len(schema) - 1) if self.plan.appends else schema

    def feed(self, rows: Mapping[str, pa.RecordBatch], now: int | None = None) -> pa.Table:
        """The changes that a micro-batch at the time `now` causes."""
        return self._run(rows, now, is_all=False)

    def run_all(self, rows: Mapping[str, pa.RecordBatch]) -> pa.Table:
        """The whole changelog of rows that are complete."""
        return self._run({**rows, **self._brought}, None, is_all=True)

    def restart(self) -> None:
        """Continue from a snapshot, as after a crash."""
        self.stages = [stage.resume(stage.snapshot()) for stage in self.stages]

    def _run(self, rows: Mapping[str, pa.RecordBatch], now: int | None, is_all: bool) -> pa.Table:
        batches = [[stage.stage.no_rows(now) for _ in stage.buckets] for stage in self.stages]
        for number, stream, reader in self._readers:
            new_rows = rows.get(reader.relation)
            if new_rows is not None:
                self.stages[number].split_into(batches[number], stream, *reader.read(new_rows, now))
        self._overhear(rows, now, batches)
        answer: list[pa.RecordBatch] = []
        for number, (stage, planned) in enumerate(
            zip(self.stages, self.staged.stages, strict=True)
        ):
            for sender, (run, batch) in enumerate(zip(stage.buckets, batches[number], strict=True)):
                results = _process(run, batch, is_all)
                if planned.to_stage is None:
                    answer += results
                    continue
                target, stream = self.stages[planned.to_stage], planned.to_stream
                sent = concat(results, target.stage.operator.schemas[stream])
                target.split_into(batches[planned.to_stage], stream, sent)
                for one in batches[planned.to_stage]:
                    one.frontiers[stream, sender] = FOREVER if is_all else run.frontier
        table = changelog_table(self.staged.columns, answer)
        return table.drop_columns([DIFF]) if self.plan.appends else table

    def _overhear(
        self,
        rows: Mapping[str, pa.RecordBatch],
        now: int | None,
        batches: Sequence[Sequence[MicroBatch]],
    ) -> None:
        """Give stages the times of streams that others read."""
        for number, planned in enumerate(self.staged.stages):
            for stream, overheard in enumerate(planned.overhears, start=len(planned.inputs)):
                source = overheard.plan.sources[overheard.source]
                new_rows = rows.get(source.relation.name)
                if new_rows is not None:
                    read, _ = read_source(overheard.plan, source).read(new_rows, now)
                    largest = largest_time(read.column(time_place(source)))
                    for batch in batches[number]:
                        batch.add(stream, [], Punctuation(largest))


def changelog_table(columns: Sequence[Column], answer: Sequence[pa.RecordBatch]) -> pa.Table:
    """Changes as a user sees them, with these column names."""
    kinds = [*(one.kind for one in columns), TIMESTAMP, pa.int64()]
    names = [*(one.name for one in columns), TIME, DIFF]
    arrays = [
        pa.chunked_array([as_type(batch.column(i), kind) for batch in answer], kind)
        for i, kind in enumerate(kinds)
    ]
    return pa.Table.from_arrays(arrays, names)


def _process(run: BucketRun, batch: MicroBatch, is_all: bool) -> list[pa.RecordBatch]:
    if not is_all:
        return list(run.process(batch))
    streams = len(run.traffic.rows_in)
    return list(run.process_between(batch, [NEVER] * streams, [FOREVER] * streams))
