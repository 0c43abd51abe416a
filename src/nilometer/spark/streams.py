"""Reads the options for the streams of a join against their schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

from pyspark.errors import PySparkTypeError
from pyspark.sql.types import DataType, StructType

from nilometer.errors import InputError, SchemaError
from nilometer.model.names import find_column, nearest
from nilometer.model.time import Duration
from nilometer.operators.watermarks import StreamClock
from nilometer.spark.types import arrow_schema, arrow_types, common_key_type, why_no_key
from nilometer.sql.declare import InputColumns, clock_of, time_column

Keys: TypeAlias = str | Sequence[str] | Mapping[str, str | Sequence[str]] | None
PerStream = TypeVar("PerStream")


@dataclass(frozen=True)
class JoinInput:
    """What is known of a stream before its options."""

    schema: StructType
    is_streaming: bool

    @cached_property
    def given(self) -> InputColumns:
        """The same, its types as Arrow has them."""
        kinds = arrow_types(self.schema)
        return InputColumns(tuple(self.schema.names), kinds, self.is_streaming)


@dataclass(frozen=True)
class JoinedStream:
    """One stream of a join: its time and key columns, and its clock."""

    name: str
    schema: StructType
    time: int | None
    """The position of the time column; None: the arrival time."""
    keys: tuple[int, ...]
    key_types: tuple[DataType, ...]
    clock: StreamClock

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)


def read_streams(
    inputs: Mapping[str, JoinInput],
    on: Keys,
    time: str | Mapping[str, str] | None,
    lateness: Duration | Mapping[str, Duration] | None,
    idle: Duration | Mapping[str, Duration] | None,
) -> tuple[JoinedStream, ...]:
    """The streams of a join; raises an error if their description is wrong."""
    names = list(inputs)
    for name, given in inputs.items():
        _check_columns(name, given.schema)
    keys = {
        name: _key_columns(name, inputs[name].schema, given) for name, given in _keys(on, names)
    }
    key_types = _common_types(keys, inputs)
    times = _per_stream(time, names, "time")
    all_given = {name: one.given for name, one in inputs.items()}
    late: dict[str, Duration] = _per_stream(lateness, names, "lateness")
    silent: dict[str, Duration] = _per_stream(idle, names, "idle")
    return tuple(
        JoinedStream(
            name,
            given.schema,
            time_column(name, given.given, times.get(name)),
            keys[name],
            key_types,
            clock_of(name, all_given, late.get(name), silent.get(name)),
        )
        for name, given in inputs.items()
    )


def _check_columns(stream: str, schema: StructType) -> None:
    for field in schema.fields:
        try:
            arrow_schema([field.dataType])
        except PySparkTypeError:
            raise SchemaError(
                f"column {field.name} of stream {stream} cannot be carried through the join",
                detail=f"Spark has no Arrow form of {field.dataType.simpleString().upper()}",
                hint="drop the column before the join, or cast it",
            ) from None


def _per_stream(
    values: PerStream | Mapping[str, PerStream] | None, names: Sequence[str], what: str
) -> dict[str, PerStream]:
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        return dict.fromkeys(names, values)
    for name in values:
        if name not in names:
            raise InputError(
                f"{what} names no stream of this join: {name}",
                detail=f"the streams are {', '.join(names)}",
                hint=nearest(name, names),
            )
    return dict(values)


def _keys(on: Keys, names: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    def several(columns: str | Sequence[str]) -> tuple[str, ...]:
        return (columns,) if isinstance(columns, str) else tuple(columns)

    if on is None:
        return [(name, ()) for name in names]
    if not isinstance(on, Mapping):
        return [(name, several(on)) for name in names]
    named: dict[str, str | Sequence[str]] = _per_stream(on, names, "on")
    columns_by_name = {name: several(columns) for name, columns in named.items()}
    missing = [name for name in names if name not in columns_by_name]
    counts = {len(columns) for columns in columns_by_name.values()}
    if missing or len(counts) > 1:
        raise InputError(
            f"no key is given for stream {missing[0]}"
            if missing
            else "the streams have keys of different lengths",
            detail="; ".join(
                f"{name}: {', '.join(columns)}" for name, columns in columns_by_name.items()
            ),
            hint='name as many key columns for every stream: on={"A": "x", "B": "y"}',
        )
    return [(name, columns_by_name[name]) for name in names]


def _key_columns(stream: str, schema: StructType, columns: Sequence[str]) -> tuple[int, ...]:
    places = tuple(find_column(stream, schema.names, column) for column in columns)
    for place in places:
        field = schema.fields[place]
        if reason := why_no_key(field.dataType):
            raise SchemaError(
                f"column {field.name} of stream {stream} cannot be a key",
                detail=reason,
                hint="join on a column, or a list of columns, of a simple type",
            )
    return places


def _common_types(
    keys: Mapping[str, tuple[int, ...]], inputs: Mapping[str, JoinInput]
) -> tuple[DataType, ...]:
    common = []
    for places in zip(*keys.values(), strict=True):
        fields = {n: inputs[n].schema.fields[p] for n, p in zip(keys, places, strict=True)}
        kind = common_key_type([field.dataType for field in fields.values()])
        if kind is None:
            described = ", ".join(
                f"{name}.{field.name} is {field.dataType.simpleString().upper()}"
                for name, field in fields.items()
            )
            raise SchemaError(
                "the streams' key columns have types that cannot be compared",
                detail=described,
                hint='cast them to one type first: df.withColumn("k", col("k").cast("long"))',
            )
        common.append(kind)
    return tuple(common)
