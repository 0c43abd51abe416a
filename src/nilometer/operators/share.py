"""Which part of a stage's state belongs to a bucket once the number of buckets has changed.

A new bucket takes over from all old ones the rows that would have come to it. Rows are routed as
they were when they arrived; a group of rows is known by a number that it keeps for that, its route.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa

from nilometer.errors import InputError, InternalError
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.key_hashes import hash_rows
from nilometer.kernels.routing import LOW_HALF, Routing

Columns: TypeAlias = tuple[int, ...] | None
"""The columns by which rows are together in buckets; None: by others, which are gone."""
ROUTE: Final = "route"
"""The value of a group that says to which bucket it goes; 0: it has no rows."""


class RowChooser(Protocol):
    """Chooses among the rows that an old bucket holds."""

    def of(self, old: int, rows: pa.RecordBatch) -> Bools: ...
    def first_copy(self, old: int) -> int:
        """The first of the old buckets that got the same rows as this one."""


@runtime_checkable
class TakesOver(Protocol):
    """An operator whose state can be dealt out to another number of buckets."""

    def take_over(self, old: Sequence[Any], shares: Sequence[Any]) -> None:
        """Take over, without any state yet, what belongs to this bucket.

        There is a share per input, of an operator of a stage: per stream.
        """


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of a bucket among those of an operator's input."""

    before: int
    """How many buckets there were,"""
    after: int
    """and are."""
    bucket: int
    columns: Columns

    @property
    def is_first(self) -> bool:
        """Whether this bucket keeps what is only counted."""
        return self.bucket == 0

    def of(self, old: int, rows: pa.RecordBatch) -> Bools:
        """Those among the rows of an old bucket."""
        if not self.columns:
            return self._all(old, len(rows))
        hashes = hash_rows([rows.column(column) for column in self.columns])
        return self._have((hashes & LOW_HALF).view(np.int64))

    def first_copy(self, old: int) -> int:
        return old

    def of_routes(self, old: int, routes: Int64s) -> Bools:
        """Those among the groups of an old bucket, given their routes."""
        if not self.columns:
            return self._all(old, len(routes))
        if not routes.all():
            raise InternalError("a group does not say where it belongs")
        return self._have(routes - 1)

    def require(self) -> Share:
        """Refuse a change in which buckets are split by columns that are not known."""
        if not self.columns and self.before % self.after:
            raise InputError(
                f"this query's state cannot be split into {self.after} buckets",
                detail="it does not hold the values by which its rows were partitioned",
                hint=f"choose a number that divides {self.before}, or recreate the query",
            )
        return self

    def at(self, columns: Columns) -> Share:
        """The same for rows that have these columns."""
        return replace(self, columns=columns)

    def _have(self, places: Int64s) -> Bools:
        is_here: Bools = places % self.after == self.bucket
        return is_here

    def _all(self, old: int, rows: int) -> Bools:
        """All or nothing of an old bucket: h mod n mod m is h mod m, if m divides n."""
        return np.full(rows, old % self.after == self.bucket)


@dataclass(frozen=True, slots=True)
class StreamShare:
    """The rows of a bucket among those of a stream of its stage."""

    before: Routing
    after: Routing
    bucket: int
    stream: int

    def of(self, old: int, rows: pa.RecordBatch) -> Bools:
        """Those among the rows of an old bucket, copies included."""
        return self.after.belong(rows, self.stream, self.bucket)

    def first_copy(self, old: int) -> int:
        return self.before.first_copy(old, self.stream)

    def late(self, old: Sequence[int]) -> int:
        """The rows of the stream that were late, counted in the first bucket."""
        if self.bucket:
            return 0
        return sum(old) * self.after.copies(self.stream) // self.before.copies(self.stream)


def take_over(operator: object, old: Sequence[Any], shares: Sequence[Any]) -> None:
    """Have an operator without state take over its share; refused if it cannot."""
    if not isinstance(operator, TakesOver):
        what = type(operator).__name__
        raise InputError(
            "the number of buckets of this query cannot be changed",
            detail=f"one of its operators cannot redistribute its state: {what}",
            hint="recreate the query with the number that you want",
        )
    operator.take_over(old, shares)


def routes(columns: Sequence[pa.Array], routed_by: Columns) -> Int64s | None:
    """The routes of groups with these columns; None: they are in one bucket, or not known."""
    if not routed_by:
        return None
    hashes = hash_rows([columns[column] for column in routed_by])
    return (hashes & LOW_HALF).view(np.int64) + 1
