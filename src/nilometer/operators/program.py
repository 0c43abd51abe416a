"""What one stage of a windowed plan does in a bucket: leaves take rows, steps take changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from nilometer.kernels.admit import Punctuation
from nilometer.kernels.chunk import RowLayout
from nilometer.kernels.gather import join_batches
from nilometer.model.time import EARLIEST
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.change_operator import (
    ChangeOperator,
    ChangeSpec,
    EmitsWithoutInput,
    StoredChunks,
    no_changes,
)
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.content import Content, content_of
from nilometer.operators.leaves import LeafSpec, start_leaf
from nilometer.operators.received import ReceivedSpec
from nilometer.operators.share import Columns, Share, StreamShare, take_over
from nilometer.operators.watermarks import NEVER


@dataclass(frozen=True)
class Step:
    """An operator and its inputs: leaves are numbered first, then steps in order."""

    spec: ChangeSpec
    inputs: tuple[int, ...]
    together: tuple[Columns, ...] = ()
    """The columns of each input by which its rows are together in buckets."""

    @property
    def speaks_first(self) -> bool:
        """Whether it emits even if no input has ever arrived: the row of an aggregate."""
        return isinstance(self.spec, AggregateSpec) and self.spec.keys == 0

    @property
    def is_silent_alone(self) -> bool:
        """Whether it emits nothing in a period without input."""
        return not self.speaks_first and not isinstance(self.spec, EmitsWithoutInput)


@dataclass(frozen=True)
class Program:
    """Leaves and steps; the output of the last of them leaves the stage.

    The streams of all leaves are numbered consecutively.
    """

    names: tuple[str, ...]
    """The names of the streams."""
    static: frozenset[int]
    """The streams that are static tables."""
    leaves: tuple[LeafSpec, ...]
    steps: tuple[Step, ...]
    sends_periods: bool = False
    """Whether rows are emitted at once with their periods, for the receiver to expire."""
    together: tuple[Columns, ...] = ()
    """The columns of each leaf's rows by which they are together in buckets."""

    @cached_property
    def owners(self) -> tuple[tuple[int, int], ...]:
        """(leaf, stream in it) of every stream."""
        return tuple((n, i) for n, leaf in enumerate(self.leaves) for i in range(len(leaf.schemas)))

    @property
    def schemas(self) -> tuple[pa.Schema, ...]:
        return tuple(schema for leaf in self.leaves for schema in leaf.schemas)

    @property
    def layouts(self) -> tuple[RowLayout, ...]:
        return tuple(layout for leaf in self.leaves for layout in leaf.layouts)

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the output columns, without time and count."""
        return self.steps[-1].spec.types if self.steps else self.leaves[-1].types

    @property
    def speaks_alone(self) -> bool:
        """Whether it emits even without input: the one row of an aggregate."""
        return any(step.speaks_first for step in self.steps)

    def admit(
        self, stream: int, rows: pa.RecordBatch, selected: pa.Array | None = None
    ) -> tuple[pa.RecordBatch, Punctuation]:
        """The relevant rows of a stream, and the time information of all of them."""
        leaf, number = self.owners[stream]
        return self.leaves[leaf].admit(number, rows, selected)

    def start(self, store: ChunkStore) -> RunningProgram:
        return RunningProgram(self, store)


class RunningProgram:
    """A running program of one bucket."""

    def __init__(self, program: Program, store: ChunkStore) -> None:
        self._program = program
        self._leaves = [start_leaf(leaf, program.sends_periods, store) for leaf in program.leaves]
        self._steps: list[ChangeOperator] = [step.spec.start(store) for step in program.steps]

    @property
    def late(self) -> list[int]:
        """Rows of each stream dropped because they were late."""
        return [late for leaf in self._leaves for late in leaf.late]

    @property
    def rows_held(self) -> list[int]:
        """How many rows of each stream are stored: to be joined, or until their periods end."""
        return [rows for leaf in self._leaves for rows in leaf.rows_held]

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """Everything in the store."""
        return [
            *(one for leaf in self._leaves for one in leaf.stored),
            *(one for operator in self._steps for one in operator.stored),
        ]

    def hold(self, stream: int, rows: pa.RecordBatch) -> None:
        """Add rows that existed before the query started."""
        leaf, number = self._program.owners[stream]
        self._leaves[leaf].hold(number, rows)

    def process(
        self, rows: Sequence[pa.RecordBatch], before: Sequence[int], after: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """The output, given the watermarks before and after the micro-batch."""
        frontier = self._frontier(after)
        first, done = 0, []
        for leaf in self._leaves:
            own = slice(first, first + leaf.streams)
            done.append(leaf.process(rows[own], before[own], after[own], frontier))
            first = own.stop
        if self._program.steps and frontier == NEVER:
            return
        for step, operator in zip(self._program.steps, self._steps, strict=True):
            if step.is_silent_alone and not any(
                map(len, (b for i in step.inputs for b in done[i]))
            ):
                done.append([no_changes(step.spec.types)])
                continue
            inputs = [join_batches(done[i]) for i in step.inputs]
            done.append([operator.process(inputs, frontier)])
        yield from (batch for batch in done[-1] if len(batch))

    def _frontier(self, marks: Sequence[int]) -> int:
        """The instant before which everything is known; at first, what has always held.

        Only a stage that has not sent anything yet may still learn more.
        """
        for (leaf, _), mark in zip(self._program.owners, marks, strict=True):
            if mark == NEVER and isinstance(self._program.leaves[leaf], ReceivedSpec):
                return NEVER
        return max(min(marks), EARLIEST + 1)

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "leaves": [leaf.snapshot() for leaf in self._leaves],
            "steps": [operator.snapshot() for operator in self._steps],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        for leaf, saved in zip(self._leaves, snapshot["leaves"], strict=True):
            leaf.restore(saved)
        # Steps at the end that keep no state may have been there, or not.
        for operator, saved in zip(self._steps, snapshot["steps"], strict=False):
            operator.restore(saved)

    def content(self, marks: Sequence[int]) -> Content:
        """What its state says."""
        contents, first = [], 0
        for leaf in self._leaves:
            contents.append(content_of(leaf, marks[first : first + leaf.streams]))
            first += leaf.streams
        return tuple(contents), tuple(content_of(operator) for operator in self._steps)

    def take_over(self, old: Sequence[RunningProgram], shares: Sequence[StreamShare]) -> None:
        """Take over, without any state yet, what belongs to this bucket; a share per stream."""
        program, first = self._program, 0
        one = shares[0]
        output = Share(one.before.buckets, one.after.buckets, one.bucket, None)
        for number, leaf in enumerate(self._leaves):
            own = shares[first : first + leaf.streams]
            before: list[Any] = [each._leaves[number] for each in old]
            leaf.take_over(before, own, output.at(program.together[number]))
            first += leaf.streams
        for number, (step, operator) in enumerate(zip(program.steps, self._steps, strict=True)):
            inputs = [output.at(columns) for columns in step.together]
            take_over(operator, [each._steps[number] for each in old], inputs)
