"""What queries read: DataFrames, and logs, which are no DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeVar

from pyspark.sql import DataFrame, SparkSession

from nilometer.log.layout import LogLayout
from nilometer.operators.watermarks import StreamClock
from nilometer.spark.log_cursor import LogRange
from nilometer.spark.types import arrow_types
from nilometer.spark.versions import spark_schema
from nilometer.sql.catalog import Relation

AnyInput = TypeVar("AnyInput")


@dataclass(frozen=True)
class Inputs:
    """The DataFrames and the logs that queries read, by the names of their relations."""

    session: SparkSession
    """Where logs are read."""
    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    logs: Mapping[str, LogRange] = field(default_factory=dict)
    """Their readers are the query's; their layouts have the columns that the query knows."""
    _empty: dict[str, DataFrame] = field(default_factory=dict, repr=False)

    @cached_property
    def live(self) -> list[str]:
        """The sorted names of logs and streaming DataFrames, which get rows as time passes."""
        streaming = [name for name, frame in self.frames.items() if frame.isStreaming]
        return sorted([*streaming, *self.logs])

    def only(self, names: Iterable[str]) -> Inputs:
        """The inputs of these names."""
        chosen = sorted(set(names))
        frames = {name: self.frames[name] for name in chosen if name in self.frames}
        logs = {name: self.logs[name] for name in chosen if name in self.logs}
        return replace(self, frames=frames, logs=logs)

    def typed(self, name: str) -> DataFrame:
        """A DataFrame for Spark to determine the types of expressions: for a log, an empty one."""
        if name in self.frames:
            return self.frames[name]
        if name not in self._empty:
            schema = spark_schema(self.logs[name].layout.shown)
            self._empty[name] = self.session.createDataFrame([], schema)
        return self._empty[name]


class MadeOnUse(Mapping[str, AnyInput], Generic[AnyInput]):
    """Inputs by the names of relations, each made on first use."""

    def __init__(self, makers: Mapping[str, Callable[[], AnyInput]]) -> None:
        self._makers = makers
        self._made: dict[str, AnyInput] = {}

    def __getitem__(self, name: str) -> AnyInput:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class ReaderNames:
    """Names for the readers that a query opens: in a log, each must have its own."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def next(self, log: LogRange) -> str | None:
        """The query's name, numbered from the second reader of the same log onwards."""
        if log.reader is None:
            return None
        count = self._counts[log.location] = self._counts.get(log.location, 0) + 1
        return log.reader if count == 1 else f"{log.reader}-{count}"


def describe_log(name: str, layout: LogLayout) -> Relation:
    """A log as a relation of statements: its watermark comes with its rows."""
    schema = spark_schema(layout.shown)
    types = arrow_types(schema)
    is_timed = layout.time is not None
    clock = StreamClock(stated=is_timed, by_arrival=not is_timed)
    return Relation(name, tuple(schema.names), types, layout.time, clock)
