"""`nm.window_join`: the W-join of N DataFrames."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from nilometer.errors import InputError
from nilometer.model.time import Duration
from nilometer.model.windows import Windows
from nilometer.spark.conditions import Where
from nilometer.spark.default_buckets import default_buckets
from nilometer.spark.inputs import Inputs
from nilometer.spark.join_plan import JoinOptions, plan_window_join
from nilometer.spark.relations import SparkEngine
from nilometer.spark.run_query import run_query
from nilometer.spark.streams import JoinInput, Keys
from nilometer.spark.supported import require_supported


def window_join(
    streams: Mapping[str, DataFrame],
    *,
    windows: Windows,
    on: Keys = None,
    time: str | Mapping[str, str] | None = None,
    lateness: Duration | Mapping[str, Duration] | None = None,
    idle: Duration | Mapping[str, Duration] | None = None,
    where: Where = None,
    kernel: str = "auto",
    algorithm: str | None = None,
    buckets: int | None = None,
) -> DataFrame:
    """All combinations of one row of each stream with equal keys and within their time windows.

    The result has one struct per stream, under its name, and `_time`, the latest of the rows'
    times. It is a streaming DataFrame if one of the inputs is; otherwise a batch over the same
    rows with the same results.

    streams   DataFrames by name, streaming or static, in any mix. A static one is a stream
              that has ended.
    windows   one length for all pairs ("10s"), a length per pair ({("A", "B"): "10s"}), or a
              list of nm.window, nm.dwindow, nm.between, nm.range.
    on        key columns: one name or several, the same in all streams, or by stream
              ({"A": "id", "B": ["obj_id"]}). NULL never joins. None: no key.
    time      the TIMESTAMP column, for all streams or by stream; a streaming input without one
              gets the arrival time.
    lateness  how far out of order rows may arrive; later rows are dropped and counted.
    idle      how long a stream may be silent before the others stop waiting for it.
    where     further conditions: SQL over the streams' columns, or nm.predicate, or a list.
    kernel    "hash" (with a key), "merge" (without), "nested" (a plain scan), or "auto".
    algorithm one of the papers' algorithms by name ("MW", "BEW_HASH"; docs/algorithms.md has
              all, nilometer-papers brings them), to run instead of a kernel, one tuple at a
              time: for comparison, as it is slower. Results are emitted at the latest once all
              streams have passed them.
    buckets   how many parts the work is split into; by default Spark's shuffle partitions. It is
              kept in the state: a query must be restarted with the same number.

    >>> nm.window_join({"A": a, "B": b}, on="k", windows="10s", time="ts")  # doctest: +SKIP
    """
    if not isinstance(streams, Mapping):
        raise InputError(
            "streams must be a dictionary of DataFrames by name",
            detail=f"got {type(streams).__name__}",
            hint='write {"A": a, "B": b}',
        )
    for name, frame in streams.items():
        if not hasattr(frame, "isStreaming"):
            raise InputError(
                f"stream {name} is not a DataFrame", detail=f"got {type(frame).__name__}"
            )
    for frame in streams.values():
        require_supported(frame.sparkSession.version)
    if len(streams) < 2:
        raise InputError(
            f"a window join needs at least two streams, got {len(streams)}",
            hint='pass a dictionary such as {"A": a, "B": b}; a stream may appear twice',
        )
    inputs = Inputs(next(iter(streams.values())).sparkSession, streams)
    options = JoinOptions(windows, on, time, lateness, idle, where, kernel, algorithm, buckets)
    given = {name: JoinInput(frame.schema, frame.isStreaming) for name, frame in streams.items()}
    partitions = default_buckets(inputs.session)
    plan = plan_window_join(given, options, SparkEngine(inputs), partitions)
    return run_query(plan, inputs)
