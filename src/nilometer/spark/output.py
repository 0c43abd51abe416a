"""How results look: which columns are carried through a join, and how they become structs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, LongType, StructField, StructType, TimestampType

from nilometer.spark.streams import JoinedStream
from nilometer.spark.types import is_flat, is_same_when_equal


@dataclass(frozen=True)
class ResultShape:
    """The columns of each stream that travel, and the expressions that make results of them."""

    carried: tuple[tuple[DataType, ...], ...]
    """The types of each stream's columns as they travel; the time of arrival stands last."""
    output: tuple[tuple[int, int], ...]
    """(stream, column) of result columns c1, c2, …; c0 is the time of the result."""
    structs: tuple[str, ...]
    """SQL of one struct per stream."""

    @property
    def types(self) -> tuple[DataType, ...]:
        """The types of result columns c0, c1, …"""
        return (LongType(), *(self.carried[s][c] for s, c in self.output))

    @property
    def is_flat(self) -> bool:
        return all(map(is_flat, self.types))

    @property
    def schema(self) -> StructType:
        """The result columns as the host sends them: timestamps as microseconds."""
        return StructType(
            [
                StructField(f"c{i}", LongType() if isinstance(t, TimestampType) else t)
                for i, t in enumerate(self.types)
            ]
        )

    def finish(self, results: DataFrame) -> DataFrame:
        """Structs and `_time` out of the result columns."""
        return results.selectExpr(*self.structs, "timestamp_micros(c0) AS `_time`")


def shape_results(joined: Sequence[JoinedStream]) -> ResultShape:
    """What travels and what leaves. A key that is the same value everywhere leaves once."""
    carried = tuple(_carried_types(stream) for stream in joined)
    output: list[tuple[int, int]] = []
    structs = []
    for number, stream in enumerate(joined):
        fields = []
        for column, (name, kind) in enumerate(zip(stream.columns, stream.types, strict=True)):
            source = _source(joined, number, column)
            if source not in output:
                output.append(source)
            value = f"c{1 + output.index(source)}"
            if isinstance(carried[source[0]][source[1]], TimestampType):
                value = f"timestamp_micros({value})"
            if carried[source[0]][source[1]] != kind:
                value = f"CAST({value} AS {kind.simpleString()})"
            fields.append(f"{quote_text(name)}, {value}")
        structs.append(f"named_struct({', '.join(fields)}) AS {quote_name(stream.name)}")
    return ResultShape(carried, tuple(output), tuple(structs))


def quote_name(name: str) -> str:
    """A name as an SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _carried_types(stream: JoinedStream) -> tuple[DataType, ...]:
    keys = dict(zip(stream.keys, stream.key_types, strict=True))
    types = [keys.get(i, kind) for i, kind in enumerate(stream.types)]
    return (*types, TimestampType()) if stream.time is None else tuple(types)


def _source(joined: Sequence[JoinedStream], number: int, column: int) -> tuple[int, int]:
    stream = joined[number]
    if column in stream.keys:
        which = stream.keys.index(column)
        if is_same_when_equal(stream.key_types[which]):
            return (0, joined[0].keys[which])
    return (number, column)
