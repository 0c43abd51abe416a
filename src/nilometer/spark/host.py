"""The heart: hosts a stage in Spark's transformWithStateInPandas, which sees envelopes only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext

from nilometer.errors import CheckpointError
from nilometer.operators.envelope import Header, unseal
from nilometer.operators.stage import BucketRun, MicroBatch, Stage
from nilometer.spark.emit import Emitter
from nilometer.spark.metrics import bucket_metrics
from nilometer.spark.state import SparkChunkStore, cache_folder


@dataclass(frozen=True)
class Host:
    """A stage, ready to be opened in a Python worker."""

    stage: Stage
    emitter: Emitter
    query: dict[str, Any]
    """What the query is; a checkpoint of another query is refused."""
    operator: str
    """Tells this operator's cached files from those of others in the same query."""

    def open(self, manifest: Any, chunks: Any) -> OpenHost:
        """The host with its state: a ValueState and a MapState."""
        return OpenHost(self, manifest, chunks)


class OpenHost:
    """A host with its state, for one task."""

    def __init__(self, host: Host, manifest: Any, chunks: Any) -> None:
        self._host = host
        self._manifest = manifest
        self._chunks = chunks

    def process(self, bucket: int, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The results of a micro-batch in one bucket, and its metrics."""
        envelopes = [unseal(body) for frame in frames for body in frame["body"]]
        run, _ = self._resume(bucket, [header for header, _ in envelopes])
        emit = self._host.emitter
        for result in run.process(_micro_batch(envelopes, len(self._host.stage.names))):
            yield emit.results(result)
        self._save(run)
        yield emit.metrics(bucket_metrics(self._host.stage, run))

    def hold(self, bucket: int, frame: pd.DataFrame) -> None:
        """Take in rows of streams that had ended before the query started."""
        envelopes = [unseal(body) for body in frame["body"]]
        run, _ = self._resume(bucket, [header for header, _ in envelopes])
        for header, batches in envelopes:
            for rows in batches:
                run.operator.hold(header.stream, rows)
        self._save(run)

    def _resume(self, bucket: int, headers: list[Header]) -> tuple[BucketRun, SparkChunkStore]:
        operator = self._host.stage.operator
        folder = cache_folder(_query_id(), self._host.operator, bucket)
        store = SparkChunkStore(self._chunks, folder, operator.layouts, operator.kernel)
        run = BucketRun(self._host.stage, store)
        saved = self._manifest.get()
        if saved is not None:
            manifest = json.loads(saved[0])
            check_manifest(manifest, self._host.query, self._host.stage.routing.buckets)
            run.restore(json.dumps(manifest["state"]).encode())
            store.sweep(ref for buffer in run.operator.buffers for ref in buffer.refs)
        return run, store

    def _save(self, run: BucketRun) -> None:
        manifest = {
            "buckets": self._host.stage.routing.buckets,
            "query": self._host.query,
            "state": json.loads(run.snapshot()),
        }
        self._manifest.update((json.dumps(manifest, separators=(",", ":")),))


def check_manifest(manifest: dict[str, Any], query: dict[str, Any], buckets: int) -> None:
    """Refuse to continue what another query, or another number of buckets, has begun."""
    if manifest["buckets"] != buckets:
        raise CheckpointError(
            f"this checkpoint was written with {manifest['buckets']} buckets, not {buckets}",
            hint=f"pass buckets={manifest['buckets']}, or start with an empty checkpoint",
        )
    for part in {**manifest["query"], **query}:
        before, now = manifest["query"].get(part), query.get(part)
        if before != now:
            raise CheckpointError(
                f"this checkpoint belongs to another query: its {part} differ",
                detail=f"the checkpoint has {before}; the query has {now}",
                hint="start a changed query with an empty checkpoint",
            )


def _micro_batch(
    envelopes: Iterable[tuple[Header, list[pa.RecordBatch]]], streams: int
) -> MicroBatch:
    batch = MicroBatch.empty(streams)
    for header, parts in envelopes:
        batch.punctuation[header.stream] += header.punctuation
        batch.rows[header.stream].extend(rows for rows in parts if len(rows))
        if header.now is not None:
            batch.now = max(header.now, batch.now or header.now)
    return batch


def _query_id() -> str:
    context = TaskContext.get()
    found = context.getLocalProperty("sql.streaming.queryId") if context is not None else None
    return found or "unknown"
