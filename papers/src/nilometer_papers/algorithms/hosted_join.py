"""The papers' algorithms instead of the columnar join: one tuple at a time, in any query.

Rows arrive as columns and become tuples in order of time; results become columns again. So a host
runs an algorithm like any other operator, with the same input and output rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.errors import InputError
from nilometer.kernels.admit import Punctuation, drop_late
from nilometer.kernels.chunk import RowLayout
from nilometer.kernels.window_join import Side, Tuples, pick
from nilometer.model.algorithm_parameters import AlgorithmParameters
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.stream_buffer import StreamBuffer
from nilometer.operators.window_join import WindowJoinSpec
from nilometer_papers.algorithms.hosted_rows import HostedRows, places_of
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.refinement import Refinement
from nilometer_papers.algorithms.registry import ALGORITHMS, NO_PARAMETERS, Algorithm, Windows
from nilometer_papers.algorithms.saved_state import SavedState
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple
from nilometer_papers.algorithms.tuple_keys import condition_of

MOST_RESULTS: Final = 1 << 16
"""How many results are converted to columns at once, approximately."""


@dataclass(frozen=True)
class HostedJoinSpec:
    """A W-join, and the algorithm that runs it; raises if it cannot."""

    join: WindowJoinSpec
    algorithm: str
    parameters: AlgorithmParameters = NO_PARAMETERS

    def __post_init__(self) -> None:
        chosen = ALGORITHMS[self.algorithm]
        if len(self.names) < 2:
            raise InputError(
                f"{chosen.name} joins streams, and there is only one", hint="leave it out"
            )
        if self.join.network.static:
            raise InputError(
                f"{chosen.name} cannot take static tables",
                detail=f"{', '.join(sorted(self.join.network.static))} has no time",
                hint="leave it out: the columnar join can",
            )
        self._check_rows(chosen)
        chosen.start(self.task, self.parameters)

    def _check_rows(self, chosen: Algorithm) -> None:
        windows = self.join.rows_windows
        if not windows:
            return
        if chosen.windows is not Windows.ROWS:
            raise InputError(
                f"{chosen.name} cannot take ROWS windows",
                hint="COUNT_NLJ can, if every stream has one; or leave it out",
            )
        others = [name for i, name in enumerate(self.names) if i not in windows]
        if others or any(window.partition for window in windows.values()):
            raise InputError(
                f"{chosen.name} needs a ROWS window without partitions on every stream",
                detail=f"{' and '.join(others)} has none" if others else "",
                hint="leave it out: the columnar join can take these windows",
            )

    @property
    def task(self) -> JoinTask:
        """The join as algorithms see it; further predicates are applied to its results."""
        counts = tuple(window.count for window in self.join.rows_windows.values())
        return JoinTask(self.join.network, condition_of(self.layouts), counts or None)

    @property
    def names(self) -> tuple[str, ...]:
        return self.join.names

    @property
    def static(self) -> frozenset[int]:
        return self.join.static

    @property
    def schemas(self) -> tuple[pa.Schema, ...]:
        return self.join.schemas

    @property
    def layouts(self) -> tuple[RowLayout, ...]:
        return self.join.layouts

    def admit(
        self, stream: int, rows: pa.RecordBatch, selected: pa.Array | None = None
    ) -> tuple[pa.RecordBatch, Punctuation]:
        """The rows of a stream that are relevant to the join, and the times of all rows."""
        return self.join.admit(stream, rows, selected)

    def start(self, store: ChunkStore) -> HostedJoin:
        """The running operator, with empty buffers."""
        return HostedJoin(self, store)


class HostedJoin:
    """A running algorithm; every result before the watermarks of all streams was emitted, once.

    If an algorithm does not wait for other streams, later ones may have been emitted, too.
    """

    def __init__(self, spec: HostedJoinSpec, store: ChunkStore) -> None:
        self._spec = spec.join
        task = spec.task
        windows = self._spec.rows_windows
        self._rows = [
            HostedRows(i, layout, task.condition, store, windows.get(i))
            for i, layout in enumerate(spec.layouts)
        ]
        self._refinement = Refinement(task) if windows else None
        """Count-based windows do not depend on time."""
        self._saved = SavedState(store)
        self.algorithm: JoinAlgorithm = ALGORITHMS[spec.algorithm].start(task, spec.parameters)
        self.late = [0] * len(spec.layouts)
        """Rows of each stream dropped because they were late, since it first started."""

    @property
    def stored(self) -> tuple[StreamBuffer, ...]:
        """Everything that it keeps in the store."""
        rows = (buffer for rows in self._rows for buffer in rows.buffers)
        return *rows, *self._saved.buffers

    @property
    def rows_held(self) -> list[int]:
        """How many rows of each stream are stored."""
        return [rows.rows for rows in self._rows]

    def hold(self, stream: int, rows: pa.RecordBatch) -> None:
        """Add rows that existed before the query started."""
        self._rows[stream].wait(rows)

    def process(
        self, rows: Sequence[pa.RecordBatch], before: Sequence[int], after: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """The results of a micro-batch, given the watermarks before and after it.

        Rows strictly earlier than their stream's watermark before the micro-batch are late: dropped
        and counted. The state is updated once the results are consumed.
        """
        taken = [
            own.take(self._accept(i, rows[i], before[i]), after[i])
            for i, own in enumerate(self._rows)
        ]
        sides = [side for _, side in taken]
        arrivals = sorted((one for due, _ in taken for one in due), key=lambda one: one.time)
        for candidates in self._run(arrivals, after):
            if results := self._refine(candidates):
                columns = self._answer(results, sides)
                if len(columns):
                    yield columns
        self._keep(sides)

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "rows": [rows.snapshot() for rows in self._rows],
            "saved": self._saved.snapshot(),
            "late": list(self.late),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        for rows, own in zip(self._rows, snapshot["rows"], strict=True):
            rows.restore(own)
        self._saved.restore(snapshot["saved"])
        self.late = list(snapshot["late"])
        if self._saved.exists:
            self.algorithm.load(self._saved.read([rows.in_use() for rows in self._rows]))

    def _accept(self, stream: int, rows: pa.RecordBatch, watermark: int) -> pa.RecordBatch:
        accepted, late = drop_late(rows, self._spec.layouts[stream], watermark)
        self.late[stream] += late
        return accepted

    def _run(self, arrivals: Iterable[StreamTuple], marks: Sequence[int]) -> Iterator[list[Result]]:
        """The results of tuples and watermarks, in lists of limited length."""
        results: list[Result] = []
        for arrival in arrivals:
            results += self.algorithm.process(arrival)
            if len(results) >= MOST_RESULTS:
                yield results
                results = []
        for stream, mark in enumerate(marks):
            results += self.algorithm.reach(stream, mark)
        if results:
            yield results

    def _refine(self, candidates: list[Result]) -> list[Result]:
        if self._refinement is None:
            return candidates
        return self._refinement.refine(candidates, self.algorithm.counters)

    def _answer(self, results: Sequence[Result], sides: Sequence[Side]) -> pa.RecordBatch:
        """The results that satisfy all predicates, in the columns of a columnar join."""
        streams = range(len(sides))
        rows = {i: places_of([result[i].number for result in results], sides[i]) for i in streams}
        latest = np.array([max(one.time for one in result) for result in results], dtype=np.int64)
        tuples = Tuples(rows, {}, latest, {}, {})
        for i, own in enumerate(self._rows):
            if len(tuples) and (fit := own.fit(sides[i])) is not None:
                tuples = tuples.only(fit[tuples.rows[i]])
        for residual in self._spec.residuals:
            if len(tuples):
                tuples = tuples.only(residual.test(pick(residual.columns, tuples, sides)))
        columns = pick(self._spec.output, tuples, sides)
        names = [f"{stream}.{column}" for stream, column in self._spec.output]
        return pa.RecordBatch.from_arrays([pa.array(tuples.latest), *columns], ["_time", *names])

    def _keep(self, sides: Sequence[Side]) -> None:
        """Store the algorithm's state, and only the rows that it refers to."""
        members = self._saved.write(self.algorithm.save())
        for i, (rows, side) in enumerate(zip(self._rows, sides, strict=True)):
            rows.keep(side, members.numbers(i))
