"""`nm.window_join`: the W-join of N DataFrames."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from nilometer.errors import InputError
from nilometer.kernels.chunk import Kernel, RowLayout
from nilometer.kernels.routing import Routing, route_by_key, route_without_key
from nilometer.model.network import TimeNetwork
from nilometer.model.time import Duration
from nilometer.model.windows import Windows, read_windows
from nilometer.operators.stage import Stage
from nilometer.operators.window_join import WindowJoinSpec
from nilometer.spark.output import ResultShape, shape_results
from nilometer.spark.run_batch import run_batch
from nilometer.spark.run_stream import run_stream
from nilometer.spark.streams import JoinedStream, Keys, read_streams
from nilometer.spark.types import arrow_schema


def window_join(
    streams: Mapping[str, DataFrame],
    *,
    windows: Windows,
    on: Keys = None,
    time: str | Mapping[str, str] | None = None,
    lateness: Duration | Mapping[str, Duration] | None = None,
    idle: Duration | Mapping[str, Duration] | None = None,
    kernel: str = "auto",
    buckets: int | None = None,
) -> DataFrame:
    """All combinations of one row of each stream with equal keys and within their time windows.

    The result has one struct per stream, under its name, and `_time`, the latest of the rows'
    times; it is a streaming DataFrame if one of the inputs is.
    """
    joined = read_streams(streams, on, time, lateness, idle)
    network = TimeNetwork(tuple(streams), read_windows(windows))
    session = joined[0].frame.sparkSession
    if buckets is None:
        buckets = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    shape = shape_results(joined)
    stage = Stage(
        _spec(joined, network, _kernel(kernel, joined), shape),
        tuple(stream.clock for stream in joined),
        _routing(joined, buckets),
    )
    if any(stream.frame.isStreaming for stream in joined):
        return run_stream(stage, joined, shape)
    return run_batch(stage, joined, shape)


def _spec(
    joined: tuple[JoinedStream, ...], network: TimeNetwork, kernel: Kernel, shape: ResultShape
) -> WindowJoinSpec:
    return WindowJoinSpec(
        network,
        tuple(arrow_schema(shape.carried[i]) for i in range(len(joined))),
        tuple(
            RowLayout(len(s.types) if s.time is None else s.time, s.keys)
            for i, s in enumerate(joined)
        ),
        shape.output,
        kernel,
    )


def _kernel(given: str, joined: tuple[JoinedStream, ...]) -> Kernel:
    keyed = bool(joined[0].keys)
    if given == "auto":
        return Kernel.HASH if keyed else Kernel.MERGE
    if given not in [kernel.value for kernel in Kernel]:
        raise InputError(
            f"there is no kernel {given}",
            hint=f"choose one of auto, {', '.join(kernel.value for kernel in Kernel)}",
        )
    if given == Kernel.HASH and not keyed:
        raise InputError(
            "the hash kernel needs a key", hint="name key columns with on=, or use kernel='merge'"
        )
    return Kernel(given)


def _routing(joined: tuple[JoinedStream, ...], buckets: int) -> Routing:
    if buckets < 1:
        raise InputError(f"there must be at least one bucket, got {buckets}")
    if joined[0].keys:
        return route_by_key(tuple(stream.keys for stream in joined), buckets)
    return route_without_key(tuple(len(stream.columns) for stream in joined), buckets)
