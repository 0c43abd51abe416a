"""One stage, all its buckets, in this process."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from nilometer.local.memory_store import MemoryStore
from nilometer.model.time import FOREVER
from nilometer.operators.metrics import JoinMetrics, bucket_metrics, combine_buckets
from nilometer.operators.stage import BucketRun, MicroBatch, Stage
from nilometer.operators.watermarks import NEVER


class LocalStage:
    """A stage that is fed by hand, micro-batch by micro-batch."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.stores = [MemoryStore() for _ in range(stage.routing.buckets)]
        self.buckets = [BucketRun(stage, store) for store in self.stores]

    def hold(self, stream: int, rows: pa.RecordBatch, selected: pa.Array | None = None) -> None:
        """Give a stream that has ended all its rows, of which some are selected."""
        admitted, _ = self.stage.operator.admit(stream, rows, selected)
        for bucket, part in zip(
            self.buckets, self.stage.routing.split(admitted, stream), strict=True
        ):
            bucket.operator.hold(stream, part)

    def feed(
        self,
        rows: Sequence[pa.RecordBatch | None],
        now: int | None = None,
        selected: Sequence[pa.Array | None] = (),
    ) -> list[pa.RecordBatch]:
        """The results of a micro-batch; only its selected rows matter."""
        results = []
        for run, batch in zip(self.buckets, self._split(rows, selected), strict=True):
            batch.now = now
            results += list(run.process(batch))
        return results

    def run_all(
        self, rows: Sequence[pa.RecordBatch | None], selected: Sequence[pa.Array | None] = ()
    ) -> list[pa.RecordBatch]:
        """The results of rows that are complete."""
        before, after = [NEVER] * len(rows), [FOREVER] * len(rows)
        results = []
        for run, batch in zip(self.buckets, self._split(rows, selected), strict=True):
            results += list(run.process_between(batch, before, after))
        return results

    def _split(
        self, rows: Sequence[pa.RecordBatch | None], selected: Sequence[pa.Array | None]
    ) -> list[MicroBatch]:
        batches = [MicroBatch.empty(len(rows)) for _ in self.buckets]
        for stream, batch in enumerate(rows):
            if batch is not None:
                self.split_into(batches, stream, batch, selected[stream] if selected else None)
        return batches

    def split_into(
        self,
        batches: Sequence[MicroBatch],
        stream: int,
        rows: pa.RecordBatch,
        selected: pa.Array | None = None,
    ) -> None:
        """Add the rows of a stream to the micro-batches of all buckets."""
        admitted, punctuation = self.stage.operator.admit(stream, rows, selected)
        parts = self.stage.routing.split(admitted, stream)
        for batch, part in zip(batches, parts, strict=True):
            batch.add(stream, [part], punctuation)

    def metrics(self) -> JoinMetrics:
        """The reports of all buckets after a micro-batch."""
        runs = enumerate(self.buckets)
        return combine_buckets(bucket_metrics(self.stage, number, run) for number, run in runs)

    def snapshot(self) -> list[bytes]:
        """The state that `resume` needs, apart from the stores."""
        return [bucket.snapshot() for bucket in self.buckets]

    def resume(self, snapshots: Sequence[bytes]) -> LocalStage:
        """A new runner that continues where the snapshots were taken."""
        fresh = LocalStage(self.stage)
        fresh.stores = self.stores
        fresh.buckets = [BucketRun(self.stage, store) for store in self.stores]
        for bucket, snapshot in zip(fresh.buckets, snapshots, strict=True):
            bucket.restore(snapshot)
        return fresh
