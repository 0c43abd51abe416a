"""One stage, all its buckets, in this process."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from nilometer.kernels.admit import admit
from nilometer.local.memory_store import MemoryStore
from nilometer.operators.stage import BucketRun, MicroBatch, Stage


class LocalStage:
    """A stage that is fed by hand, micro-batch by micro-batch."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.stores = [MemoryStore() for _ in range(stage.routing.buckets)]
        self.buckets = [BucketRun(stage, store) for store in self.stores]

    def hold(self, stream: int, rows: pa.RecordBatch) -> None:
        """Give a stream that has ended all its rows."""
        layout = self.stage.operator.layouts[stream]
        admitted, _ = admit(rows, layout, None)
        for bucket, part in zip(
            self.buckets, self.stage.routing.split(admitted, stream), strict=True
        ):
            bucket.operator.hold(stream, part)

    def feed(
        self, rows: Sequence[pa.RecordBatch | None], now: int | None = None
    ) -> list[pa.RecordBatch]:
        """The results of a micro-batch."""
        batches = [MicroBatch.empty(len(rows)) for _ in self.buckets]
        for stream, given in enumerate(rows):
            if given is None:
                continue
            admitted, punctuation = admit(given, self.stage.operator.layouts[stream], None)
            parts = self.stage.routing.split(admitted, stream)
            for batch, part in zip(batches, parts, strict=True):
                batch.add(stream, [part], punctuation)
        results = []
        for run, batch in zip(self.buckets, batches, strict=True):
            batch.now = now
            results += list(run.process(batch))
        return results

    def snapshot(self) -> list[bytes]:
        """What `resume` needs, apart from the stores."""
        return [bucket.snapshot() for bucket in self.buckets]

    def resume(self, snapshots: Sequence[bytes]) -> LocalStage:
        """A fresh runner that continues where the snapshots were taken."""
        fresh = LocalStage(self.stage)
        fresh.stores = self.stores
        fresh.buckets = [BucketRun(self.stage, store) for store in self.stores]
        for bucket, snapshot in zip(fresh.buckets, snapshots, strict=True):
            bucket.restore(snapshot)
        return fresh
