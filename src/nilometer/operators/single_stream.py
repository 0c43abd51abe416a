"""A join of one stream: its rows that are not late, as they arrive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from nilometer.kernels.admit import drop_late
from nilometer.operators.content import Content
from nilometer.operators.share import StreamShare
from nilometer.operators.stream_buffer import StreamBuffer
from nilometer.operators.window_join import WindowJoinSpec


class SingleStream:
    """Returns what a `WindowJoin` of the same stream would return, without state."""

    def __init__(self, spec: WindowJoinSpec) -> None:
        self._spec = spec
        self.late = [0]

    @property
    def stored(self) -> Sequence[StreamBuffer]:
        return ()

    @property
    def rows_held(self) -> list[int]:
        return [0]

    def process(
        self, rows: Sequence[pa.RecordBatch], before: Sequence[int], after: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """The results of a micro-batch, given the watermarks before and after it."""
        accepted, late = drop_late(rows[0], self._spec.layouts[0], before[0])
        self.late[0] += late
        if len(accepted):
            times = self._spec.layouts[0].times(accepted)
            columns = [accepted.column(column) for _, column in self._spec.output]
            names = [f"c{i}" for i in range(len(columns))]
            yield pa.RecordBatch.from_arrays([pa.array(times), *columns], ["_time", *names])

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs."""
        return {"late": list(self.late)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken."""
        self.late = list(snapshot["late"])

    def content(self, marks: Sequence[int]) -> Content:
        """What its state says: nothing."""
        return ()

    def take_over(self, old: Sequence[SingleStream], shares: Sequence[StreamShare]) -> None:
        """Take over what belongs to this bucket: how many rows were late."""
        self.late = [shares[0].late([one.late[0] for one in old])]
