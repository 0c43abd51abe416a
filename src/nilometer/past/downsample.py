"""Rows of a time range, all or thinned out: time buckets, or the points that matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.errors import InputError, TooLargeError
from nilometer.kernels.arrays import Float64s, Int64s
from nilometer.kernels.lttb import largest_triangles
from nilometer.kernels.row_groups import row_groups
from nilometer.kernels.time_buckets import ROWS, BucketTotals
from nilometer.model.names import nearest
from nilometer.past.question import Bounds

MOST_BUCKETS: Final = 1_000_000
MOST_POINTS: Final = 5_000_000
"""The most rows that points are chosen from; they are held in memory, at 20 bytes each."""
_BATCH_ROWS: Final = 50_000


@dataclass(frozen=True)
class Thinning:
    """Which rows and columns to return; at most one of `bucket` and `points` is set."""

    columns: tuple[str, ...] = ()
    """Without thinning, only these columns; otherwise the values to thin. None given: all."""
    per: tuple[str, ...] = ()
    """Columns whose values distinguish series."""
    bucket: int | None = None
    """The length of buckets in microseconds."""
    points: int | None = None
    """How many points to keep of each series."""


@dataclass(frozen=True)
class RowSource:
    """Stored rows and where to read them."""

    name: str
    schema: pa.Schema
    time: str | None
    batches: Iterable[pa.RecordBatch]


def thinned(
    source: RowSource, bounds: Bounds, wanted: Thinning
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns requested, and their rows in batches that are not too large.

    Bad requests are refused before the first batch; a range includes both ends.
    """
    if wanted.bucket is not None and wanted.points is not None:
        raise InputError("give buckets or a number of points, not both")
    if source.time is None and (bounds != (None, None) or wanted.bucket or wanted.points):
        raise InputError(
            f"the rows of {source.name} have no time",
            hint="leave out start, end, bucket and points; or, for a changing answer, "
            "leave out answer",
        )
    if wanted.bucket is None and wanted.points is None:
        names = [_column(source.schema, one, source.name) for one in wanted.columns]
        schema = pa.schema([source.schema.field(one) for one in names or source.schema.names])
        return schema, _plain(source, bounds, schema.names)
    assert source.time is not None
    flat = RowSource(source.name, _flat(source.schema), source.time, source.batches)
    per = [_column(flat.schema, one, flat.name) for one in wanted.per]
    values = _values(flat, wanted, per)
    if wanted.bucket is not None:
        table = _buckets(flat, bounds, wanted.bucket, per, values)
    else:
        assert wanted.points is not None
        table = _points(flat, bounds, wanted.points, per, values)
    return table.schema, iter(table.to_batches(_BATCH_ROWS))


def flatten(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with the fields of structs as columns: reading.v."""
    if not any(pa.types.is_struct(one.type) for one in rows.schema):
        return rows
    columns: dict[str, Any] = {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_struct(field.type):
            names = [f"{field.name}.{one.name}" for one in field.type]
            columns |= dict(zip(names, column.flatten(), strict=True))
        else:
            columns[field.name] = column
    return pa.RecordBatch.from_pydict(columns)


def _flat(schema: pa.Schema) -> pa.Schema:
    return flatten(pa.RecordBatch.from_pylist([], schema)).schema


def _plain(source: RowSource, bounds: Bounds, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for batch in _within(source, bounds):
        for start in range(0, len(batch), _BATCH_ROWS):
            yield batch.slice(start, _BATCH_ROWS).select(list(names))


def _within(source: RowSource, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    low, high = bounds
    for batch in source.batches:
        rows = batch
        if source.time is not None and bounds != (None, None):
            time = rows.column(source.time)
            keep = pc.is_valid(time)
            if low is not None:
                keep = pc.and_(keep, pc.greater_equal(time, _instant(low, time.type)))
            if high is not None:
                keep = pc.and_(keep, pc.less_equal(time, _instant(high, time.type)))
            rows = rows.filter(keep)
        if len(rows):
            yield rows


def _values(source: RowSource, wanted: Thinning, per: Sequence[str]) -> list[str]:
    """The columns to thin out: numeric ones, those asked for or all that are left."""
    if not wanted.columns:
        others = [one for one in source.schema if one.name not in (*per, source.time)]
        return [one.name for one in others if _is_number(one.type) and one.name != ROWS]
    columns = [_column(source.schema, one, source.name) for one in wanted.columns]
    for one in columns:
        if not _is_number(source.schema.field(one).type) or one in per:
            raise InputError(
                f"column {one} has no numbers to downsample",
                detail=f"it is a {source.schema.field(one).type}",
                hint="name numeric columns that do not distinguish series",
            )
    return columns


def _buckets(
    source: RowSource, bounds: Bounds, length: int, per: Sequence[str], values: Sequence[str]
) -> pa.Table:
    assert source.time is not None
    totals = BucketTotals(source.time, length, per, values, MOST_BUCKETS)
    names = [source.time, *per, *values]
    totals.add(pa.RecordBatch.from_pylist([], source.schema).select(names))
    for batch in _within(source, bounds):
        totals.add(flatten(batch).select(names))
    return totals.finish()


def _points(
    source: RowSource, bounds: Bounds, count: int, per: Sequence[str], values: Sequence[str]
) -> pa.Table:
    """The points of each series that matter, in time order."""
    if len(values) != 1:
        raise InputError(
            "points are chosen by the values of one column",
            detail=f"{source.name} has {', '.join(values) or 'no columns of numbers'}",
            hint="name it: columns=v",
        )
    assert source.time is not None
    table = _held(source, bounds, [source.time, *per, values[0]])
    keys = [table.column(one).combine_chunks() for one in per]
    numbers = row_groups(keys, len(table)).numbers if per else np.zeros(len(table), np.int64)
    times = np.asarray(table.column(source.time).cast(pa.int64()))
    numbers_of_values = np.asarray(table.column(values[0]).cast(pa.float64()))
    places = np.sort(np.concatenate([_empty(), *_chosen(times, numbers_of_values, numbers, count)]))
    points = table.take(pa.array(places))
    return points.take(pa.array(np.argsort(times[places], kind="stable")))


def _chosen(times: Int64s, values: Float64s, series: Int64s, count: int) -> Iterator[Int64s]:
    if not len(times):
        return
    order = np.lexsort((times, series))
    starts = np.flatnonzero(np.diff(series[order])) + 1
    for one in np.split(order, starts):
        yield one[largest_triangles(times[one], values[one], count)]


def _held(source: RowSource, bounds: Bounds, names: Sequence[str]) -> pa.Table:
    """Rows that have a time and a finite value."""
    batches, count = [], 0
    for batch in _within(source, bounds):
        rows = flatten(batch).select(list(names))
        value = rows.column(len(names) - 1)
        is_finite = (
            pc.is_finite(value) if not pa.types.is_decimal(value.type) else pc.is_valid(value)
        )
        rows = rows.filter(pc.and_(pc.is_valid(rows.column(0)), pc.fill_null(is_finite, False)))
        count += len(rows)
        if count > MOST_POINTS:
            raise TooLargeError(
                f"these are more than {MOST_POINTS:,} rows to choose points from",
                hint="ask for a shorter range of time, or for buckets",
            )
        batches.append(rows)
    schema = pa.schema([source.schema.field(one) for one in names])
    return pa.Table.from_batches(batches, schema)


def _empty() -> Int64s:
    return np.zeros(0, np.int64)


def _column(schema: pa.Schema, name: str, source: str) -> str:
    same = [one for one in schema.names if one == name]
    same = same or [one for one in schema.names if one.lower() == name.lower()]
    if len(same) != 1:
        raise InputError(
            f"{source} has no column {name}" if not same else f"{name} is ambiguous",
            detail=f"it has {', '.join(schema.names)}",
            hint=nearest(name, schema.names),
        )
    return str(same[0])


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _instant(micros: int, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(micros, pa.int64()).cast(pa.timestamp("us", "UTC")).cast(kind)
