"""Hosts a stage in Spark's transformWithStateInPandas, which only sees envelopes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from nilometer.engine.same_query import FORMAT, STAGES, check_same_query
from nilometer.kernels.row_errors import leaving_out
from nilometer.operators.envelope import Header
from nilometer.operators.metrics import bucket_metrics
from nilometer.operators.stage import BucketRun, MicroBatch, Stage
from nilometer.spark.buckets import bucket_numbers
from nilometer.spark.emit import Emitter, Sender
from nilometer.spark.exchange import Exchange
from nilometer.spark.moved_state import MovedStage
from nilometer.spark.state import MapState, SparkChunkStore, local_folder, remove_earlier_runs

if TYPE_CHECKING:
    import pandas as pd

_MANIFEST: Final = ("manifest",)


@dataclass(frozen=True)
class Host:
    """A stage, ready to be opened in a Python worker."""

    stage: Stage
    emitter: Emitter
    query: dict[str, Any]
    """The query's identity; the checkpoint of another query is refused."""
    exchange: Exchange
    leaves_out: bool = False
    """Whether rows that cannot be computed are left out."""
    name: str = ""
    """Which stage of the query it is."""
    moved: MovedStage | None = None
    """Where a bucket without state finds that of the buckets before; None: it begins."""

    def open(self, state: MapState) -> OpenHost:
        """Open the host on its state, which holds a manifest and chunks."""
        return OpenHost(self, state)


class OpenHost:
    """A host open on its state, for one task."""

    def __init__(self, host: Host, state: MapState) -> None:
        self._host = host
        self._state = state
        self._begun_before = False
        """Whether its state is of a release that kept no routes of groups."""

    def process(self, bucket: int, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Process a micro-batch in one bucket; yields its results and metrics."""
        exchange = self._host.exchange
        exchange.sweep()
        envelopes = exchange.receive(body for frame in frames for body in frame["body"])
        run, store = self._resume(bucket)
        emit = self._host.emitter
        batch = _micro_batch(envelopes, self._host.stage)
        results = run.process(batch)
        place = self._place(bucket)
        sender = Sender(place, run.frontier, batch.now, batch.errors)
        with leaving_out(batch.errors if self._host.leaves_out else None):
            yield from emit.results(results, sender)
        self._save(run, store)
        yield emit.metrics(bucket_metrics(self._host.stage, place, run))

    def hold(self, bucket: int, frame: pd.DataFrame) -> None:
        """Store rows of streams that had ended before the query started."""
        envelopes = self._host.exchange.receive(frame["body"])
        run, store = self._resume(bucket)
        for header, batches in envelopes:
            run.traffic.without_time[header.stream] += header.punctuation.without_time
            for rows in batches:
                run.operator.hold(header.stream, rows)
        self._save(run, store)

    def _resume(self, bucket: int) -> tuple[BucketRun, SparkChunkStore]:
        remove_earlier_runs()
        folder = local_folder("chunks", self._host.exchange.operator, str(bucket))
        store = SparkChunkStore(self._state, folder)
        run = BucketRun(self._host.stage, store)
        saved = self._state.getValue(_MANIFEST)
        if saved is not None:
            manifest = json.loads(saved[0])
            check_same_query(manifest, self._host.query, self._host.stage.routing.buckets)
            run.take_state(manifest["state"])
            store.added = manifest.get("chunks", 0)  # earlier releases named chunks at random
            self._begun_before = "stage" not in manifest
            store.sweep(ref for buffer in run.operator.stored for ref in buffer.refs)
        elif self._host.moved is not None:
            self._take_over(run, store, self._host.moved, self._place(bucket))
        return run, store

    def _place(self, bucket: int) -> int:
        return bucket_numbers(self._host.stage.routing.buckets).index(bucket)

    def _take_over(
        self, run: BucketRun, store: SparkChunkStore, moved: MovedStage, bucket: int
    ) -> None:
        """Begin with what belongs to this bucket of the states before."""
        stage, opened = self._host.stage, moved.open()
        if moved.routing == stage.routing:
            store.added = opened[bucket].manifest.get("chunks", 0)
            for name, content in opened[bucket].contents():
                self._state.updateValue((name,), (content,))
        before = []
        for one in opened:
            manifest = one.manifest
            check_same_query(
                {**manifest, "query": {**manifest["query"], STAGES: self._host.query.get(STAGES)}},
                {**self._host.query, STAGES: self._host.query.get(STAGES)},
                manifest["buckets"],
            )
            old = BucketRun(replace(stage, routing=moved.routing), one)
            old.take_state(manifest["state"])
            before.append(old)
        run.take_over(before, bucket)

    def _save(self, run: BucketRun, store: SparkChunkStore) -> None:
        manifest = {
            "format": FORMAT,
            "buckets": self._host.stage.routing.buckets,
            **({} if self._begun_before else {"stage": self._host.name}),
            "query": self._host.query,
            "chunks": store.added,
            "state": run.state(),
        }
        self._state.updateValue(_MANIFEST, (json.dumps(manifest, separators=(",", ":")).encode(),))


def _micro_batch(
    envelopes: Iterable[tuple[Header, list[pa.RecordBatch]]], stage: Stage
) -> MicroBatch:
    batch = stage.no_rows()
    for header, parts in envelopes:
        batch.open(header, parts)
    return batch
