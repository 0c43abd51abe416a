"""Least, greatest and mean values of buckets of time, added up batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.errors import TooLargeError

ROWS: Final = "rows"
_AT_ONCE: Final = 200_000


class BucketTotals:
    """Totals of buckets and series; rows may come in any order.

    A bucket begins at a multiple of its length since 1970. NULL and NaN count as no value.
    """

    def __init__(
        self,
        time: str,
        length: int,
        per: Sequence[str],
        values: Sequence[str],
        limit: int,
    ) -> None:
        """`length` in microseconds; more than `limit` buckets of series are refused."""
        self._time, self._length = time, length
        self._per, self._values = list(per), list(values)
        self._limit = limit
        self._parts: list[pa.Table] = []
        self._rows = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows; those without a time are left out."""
        rows = rows.filter(pc.is_valid(rows.column(self._time)))
        time = rows.column(self._time)
        micros = np.asarray(time.cast(pa.int64()))
        starts = pa.array(micros // self._length * self._length).cast(time.type)
        columns = {self._time: starts} | {one: rows.column(one) for one in self._per}
        for one in self._values:
            column = _clean(rows.column(one))
            columns |= {f"{one}_min": column, f"{one}_max": column}
            columns |= {f"{one}_sum": column.cast(pa.float64()), f"{one}_count": column}
        columns[ROWS] = pa.array(np.ones(len(rows), np.int64))
        part = self._totals(pa.table(columns), "count")
        self._parts.append(part)
        self._rows += len(part)
        if self._rows > _AT_ONCE:
            self._merge()

    def finish(self) -> pa.Table:
        """The buckets in the order of time, and of series within it."""
        if not self._parts:
            raise ValueError("nothing was added")
        self._merge()
        (totals,) = self._parts
        totals = totals.sort_by([(one, "ascending") for one in (self._time, *self._per)])
        columns = {one: totals.column(one) for one in (self._time, *self._per)}
        for one in self._values:
            columns |= {f"{one}_{end}": totals.column(f"{one}_{end}") for end in ("min", "max")}
            counts = totals.column(f"{one}_count").cast(pa.float64())
            none = pa.scalar(None, pa.float64())
            counts = pc.if_else(pc.equal(counts, 0.0), none, counts)
            columns[f"{one}_mean"] = pc.divide(totals.column(f"{one}_sum"), counts)
        columns[ROWS] = totals.column(ROWS)
        return pa.table(columns)

    def _merge(self) -> None:
        merged = self._totals(pa.concat_tables(self._parts), "sum")
        self._parts, self._rows = [merged], len(merged)
        if self._rows > self._limit:
            raise TooLargeError(
                f"these are more than {self._limit:,} buckets",
                hint="use longer buckets, a shorter range of time, or fewer columns for series",
            )

    def _totals(self, rows: pa.Table, counting: str) -> pa.Table:
        keys = [self._time, *self._per]
        wanted = [(ROWS, "sum")]
        for one in self._values:
            wanted += [(f"{one}_min", "min"), (f"{one}_max", "max"), (f"{one}_sum", "sum")]
            wanted.append((f"{one}_count", counting))
        totals = rows.group_by(keys, use_threads=False).aggregate(wanted)
        names = {f"{name}_{how}": name for name, how in wanted}
        return totals.rename_columns([names.get(one, one) for one in totals.column_names])


def _clean(column: pa.Array) -> pa.Array:
    """A column of numbers without NaN."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
