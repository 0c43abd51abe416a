"""What a statement can name: streams, static tables, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from nilometer.operators.watermarks import StreamClock

ARRIVAL = "current_timestamp()"
"""What stands for the time column of a stream without one: the time of arrival."""


@dataclass(frozen=True)
class Statistics:
    """What was declared about a stream: rows per second, and distinct values of columns."""

    rate: float | None = None
    distinct: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Relation:
    """A stream, or a static table, which has no time."""

    name: str
    columns: tuple[str, ...]
    types: tuple[pa.DataType | None, ...]
    """None: a type that has no Arrow form, which no query can use."""
    time: str | None = None
    """The column that holds the time; None in a stream: the time of arrival."""
    clock: StreamClock = field(default_factory=StreamClock)
    is_table: bool = False
    statistics: Statistics = field(default_factory=Statistics)

    @property
    def time_column(self) -> str:
        return self.time or ARRIVAL


@dataclass(frozen=True)
class Function:
    """A Python function that statements may call; it gets pandas Series, or plain values."""

    name: str
    function: Callable[..., Any]
    returns: pa.DataType
    by_row: bool = False


class Engine(Protocol):
    """Knows what the dialect does not: the types of the engine's own functions."""

    def types_of(self, relation: str, expressions: Sequence[str]) -> list[pa.DataType]:
        """The types of expressions over one relation's columns; a SqlError if refused."""


@dataclass(frozen=True)
class Catalog:
    """All that statements may name."""

    relations: Mapping[str, Relation]
    functions: Mapping[str, Function]
    engine: Engine
