"""A window join, resolved: all that a run on Spark needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from nilometer.errors import InputError
from nilometer.kernels.chunk import Kernel, RowLayout
from nilometer.kernels.routing import Routing, route_by_key, route_without_key
from nilometer.model.network import TimeNetwork
from nilometer.model.time import Duration, format_duration
from nilometer.model.windows import Windows, read_windows
from nilometer.operators.stage import Stage
from nilometer.operators.window_join import WindowJoinSpec
from nilometer.spark.conditions import Conditions, Where, read_conditions
from nilometer.spark.output import ResultShape, quote_name, shape_results
from nilometer.spark.pack import SELECTED
from nilometer.spark.streams import Input, JoinedStream, Keys, read_streams
from nilometer.spark.types import arrow_schema, is_flat


@dataclass(frozen=True)
class JoinOptions:
    """What a user says about a join, apart from its inputs."""

    windows: Windows
    on: Keys = None
    time: str | Mapping[str, str] | None = None
    lateness: Duration | Mapping[str, Duration] | None = None
    idle: Duration | Mapping[str, Duration] | None = None
    where: Where = None
    kernel: str = "auto"
    buckets: int | None = None


@dataclass(frozen=True)
class JoinQuery:
    """A stage, the streams that feed it, and what its results look like."""

    stage: Stage
    joined: tuple[JoinedStream, ...]
    conditions: Conditions
    shape: ResultShape

    def carried_rows(self, number: int, frame: DataFrame, *more: str) -> DataFrame:
        """The columns of a stream as they travel, what is selected, and more columns.

        A frame whose columns travel as they are, under names that need no quotes, is left
        alone: renaming them would cost Spark a copy of every row.
        """
        columns, names = self._carried_columns(number), self.joined[number].columns
        unchanged = columns == [quote_name(name) for name in names]
        more = (*self._selection(number), *more)
        if unchanged and not more and all(name.isidentifier() for name in names):
            return frame
        numbered = [f"{column} AS c{i}" for i, column in enumerate(columns)]
        return frame.selectExpr(*numbered, *more)

    def _carried_columns(self, number: int) -> list[str]:
        stream = self.joined[number]
        keys = dict(zip(stream.keys, stream.key_types, strict=True))
        columns = []
        for place, (name, kind) in enumerate(zip(stream.columns, stream.types, strict=True)):
            wanted, column = keys.get(place, kind), quote_name(name)
            cast = f"CAST({column} AS {wanted.simpleString()})"
            columns.append(column if wanted == kind else cast)
        if stream.time is None:
            columns.append("current_timestamp()")
        return columns

    def _selection(self, number: int) -> list[str]:
        selection = self.conditions.selections[number]
        return [] if selection is None else [f"CAST(({selection}) AS BOOLEAN) AS {SELECTED}"]

    def describe(self) -> dict[str, Any]:
        """What makes this query this one; it is kept with the query's state."""
        clocks = self.stage.clocks
        return {
            "streams": list(self.stage.names),
            "columns": [
                [f"{n} {t.simpleString()}" for n, t in zip(s.columns, s.types, strict=True)]
                for s in self.joined
            ],
            "time columns": [None if s.time is None else s.columns[s.time] for s in self.joined],
            "keys": [[s.columns[k] for k in s.keys] for s in self.joined],
            "windows": [
                [format_duration(bound) for bound in row]
                for row in self.stage.operator.network.closed
            ],
            "lateness": [format_duration(clock.lateness) for clock in clocks],
            "idle times": [None if c.idle is None else format_duration(c.idle) for c in clocks],
            "predicates": list(self.conditions.texts),
        }


def resolve(inputs: Mapping[str, Input], options: JoinOptions, partitions: int) -> JoinQuery:
    """The join of these inputs; an error says what is wrong with its description."""
    joined = read_streams(inputs, options.on, options.time, options.lateness, options.idle)
    network = TimeNetwork(tuple(inputs), read_windows(options.windows))
    shape = shape_results(joined)
    conditions = read_conditions(options.where, joined)
    spec = WindowJoinSpec(
        network,
        tuple(arrow_schema(kinds) for kinds in shape.carried),
        tuple(RowLayout(stream.time_place, stream.keys) for stream in joined),
        shape.output,
        _kernel(options.kernel, joined),
        conditions.residuals,
    )
    buckets = partitions if options.buckets is None else options.buckets
    stage = Stage(spec, tuple(stream.clock for stream in joined), _routing(joined, shape, buckets))
    return JoinQuery(stage, joined, conditions, shape)


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


def _routing(joined: tuple[JoinedStream, ...], shape: ResultShape, buckets: int) -> Routing:
    if buckets < 1:
        raise InputError(f"there must be at least one bucket, got {buckets}")
    if joined[0].keys:
        return route_by_key(tuple(stream.keys for stream in joined), buckets)
    flat = [[i for i, kind in enumerate(kinds) if is_flat(kind)] for kinds in shape.carried]
    return route_without_key(tuple(map(tuple, flat)), buckets)
