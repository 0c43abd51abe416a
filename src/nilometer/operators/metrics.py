"""The metrics that the buckets of a running stage report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators.key_counts import KeyCount, Look
from nilometer.operators.stage import BucketRun, Stage


@dataclass(frozen=True)
class StreamMetrics:
    """One stream of a running join."""

    rows: int
    """Rows that arrived in the last micro-batch."""
    late: int
    """Rows dropped so far because they were late."""
    without_time: int
    """Rows dropped so far because their time was NULL, before the year 1700 or after 9999."""
    buffered: int
    """Rows kept because they may still join."""
    watermark: int | None
    """Microseconds since 1970; None before the first row and for a stream that has ended."""
    shed: int = 0
    """Rows not read so far, as the query was too far behind."""
    is_internal: bool = False
    """Whether the rows come from another stage of the same query."""


@dataclass(frozen=True)
class JoinMetrics:
    """A running join after its last micro-batch."""

    streams: dict[str, StreamMetrics]
    results: int
    """Rows that were emitted in the last micro-batch."""
    state_bytes: int
    chunks: int
    buckets: tuple[Look, ...] = ()
    """The rows that reached each bucket in the last micro-batch, and their most frequent keys."""


def bucket_metrics(stage: Stage, bucket: int, run: BucketRun) -> str:
    """One bucket after a micro-batch, as JSON."""
    return json.dumps(bucket_figures(stage, bucket, run), separators=(",", ":"))


def bucket_figures(stage: Stage, bucket: int, run: BucketRun) -> dict[str, Any]:
    """The same before it is JSON."""
    stored = run.operator.stored
    return {
        "bucket": bucket,
        "names": stage.names,
        "internal": [clock.senders > 0 for clock in stage.clocks],
        "copies": [stage.routing.copies(i) for i in range(len(stage.names))],
        "buckets": stage.routing.buckets,
        "rows": run.traffic.rows_in,
        "look": astuple(run.traffic.look),
        "results": run.traffic.rows_out,
        "late": list(run.operator.late),
        "without_time": list(run.traffic.without_time),
        "shed": run.traffic.shed,
        "buffered": run.operator.rows_held,
        "chunks": sum(len(one.refs) for one in stored),
        "state_bytes": sum(ref.size for one in stored for ref in one.refs),
        "watermarks": run.watermarks.marks,
        "frontier": run.frontier,
    }


def combine_buckets(reports: Iterable[str]) -> JoinMetrics:
    """Combine the reports of all buckets.

    Every bucket sees the punctuation of all rows, and holds copies of rows where there is no
    key to split them by.
    """
    buckets: list[dict[str, Any]] = [json.loads(report) for report in reports]

    def of(field: str, stream: int) -> list[int]:
        return [bucket[field][stream] for bucket in buckets]

    copies = buckets[0]["copies"]
    streams = {
        name: StreamMetrics(
            rows=max(of("rows", i)),
            late=sum(of("late", i)) // copies[i],
            without_time=max(of("without_time", i)),
            shed=max(of("shed", i)),
            buffered=sum(of("buffered", i)) // copies[i],
            watermark=_instant(min(of("watermarks", i))),
            is_internal=buckets[0]["internal"][i],
        )
        for i, name in enumerate(buckets[0]["names"])
    }
    return JoinMetrics(
        streams,
        results=sum(bucket["results"] for bucket in buckets),
        state_bytes=sum(bucket["state_bytes"] for bucket in buckets),
        chunks=sum(bucket["chunks"] for bucket in buckets),
        buckets=_looks(buckets),
    )


def _looks(reports: Sequence[Mapping[str, Any]]) -> tuple[Look, ...]:
    """What each bucket has seen; one without a report has seen nothing."""
    looks = [Look()] * reports[0]["buckets"]
    for report in reports:
        rows, stands_for, keys = report["look"]
        looks[report["bucket"]] = Look(rows, stands_for, tuple(KeyCount(*one) for one in keys))
    return tuple(looks)


def _instant(mark: int) -> int | None:
    return mark if EARLIEST < mark < FOREVER else None
