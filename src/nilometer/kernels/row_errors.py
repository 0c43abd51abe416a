"""Rows that cannot be computed: `CAST('abc' AS INT)`, a division by zero.

Such a row is an error. Where a query is to go on without it (`leaving_out`), it is dropped, and
recorded with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from nilometer.errors import PredicateError, UnavailableError, in_one_line
from nilometer.kernels.arrays import Bools, Int64s, as_type
from nilometer.kernels.evaluate import evaluate, is_true
from nilometer.kernels.json_values import python_value
from nilometer.model.expressions import Expression

MOST_NOTED: Final = 1000
"""How many rows are recorded at a time; the others are counted."""
LONGEST: Final = 4096
"""The maximum length of a row's text."""
_FAILURES: Final = (PredicateError, ValueError, ArithmeticError)
"""Errors of a value, such as pa.ArrowInvalid, which is a ValueError."""
_Work: TypeAlias = Callable[[Sequence[pa.Array], int], object]


class RowError(NamedTuple):
    """A row that was left out."""

    stream: str | None
    """Its origin; None: it was made by the query."""
    reason: str
    row: str


@dataclass
class RowErrors:
    """The rows left out by a computation: how many, and the first of them."""

    count: int = 0
    noted: list[RowError] = field(default_factory=list)

    def note(self, error: RowError) -> None:
        """Count a row, and record it if there is room."""
        self.count += 1
        if len(self.noted) < MOST_NOTED:
            self.noted.append(error)

    def add(self, more: RowErrors) -> None:
        """Add rows that were left out elsewhere."""
        self.count += more.count
        self.noted.extend(more.noted[: MOST_NOTED - len(self.noted)])

    def to_json(self) -> dict[str, Any] | None:
        """None: nothing was left out."""
        return {"count": self.count, "noted": self.noted} if self.count else None

    @classmethod
    def from_json(cls, stored: dict[str, Any] | None) -> RowErrors:
        if stored is None:
            return cls()
        return cls(stored["count"], [RowError(*one) for one in stored["noted"]])


_COLLECTED: ContextVar[RowErrors | None] = ContextVar("rows left out", default=None)


@contextmanager
def leaving_out(errors: RowErrors | None) -> Iterator[None]:
    """Leave out rows that cannot be computed, and record them here; None: they are errors."""
    before = _COLLECTED.set(errors)
    try:
        yield
    finally:
        _COLLECTED.reset(before)


@dataclass(frozen=True)
class Rows:
    """Rows to compute with, and their column names for reports of rows left out."""

    columns: Sequence[pa.Array]
    size: int
    names: Sequence[str] = ()
    stream: str | None = None
    counted: Bools | None = None
    """Which of them count as rows of their own; the others retract earlier ones."""

    def slice(self, first: int, length: int) -> list[pa.Array]:
        return [column.slice(first, length) for column in self.columns]

    def describe(self, place: int) -> str:
        """One of the rows, as JSON."""
        names = self.names or [f"c{i}" for i in range(len(self.columns))]
        values = {
            name: python_value(column[place])
            for name, column in zip(names, self.columns, strict=False)
        }
        return json.dumps(values, default=str, ensure_ascii=False)[:LONGEST]


Computed = tuple[list[pa.Array], Int64s | None]
"""Columns of values, and the rows they belong to where some were left out."""


def compute(values: Sequence[tuple[Expression, pa.DataType]], rows: Rows) -> Computed:
    """The values of all rows, in their types; or of those that can be computed."""

    def work(columns: Sequence[pa.Array], size: int) -> list[pa.Array]:
        return [as_type(evaluate(value, columns, size), kind) for value, kind in values]

    try:
        return work(rows.columns, rows.size), None
    except _FAILURES as error:
        computable = _computable(work, rows, _collected(error))
    places = pa.array(computable)
    return work([column.take(places) for column in rows.columns], len(computable)), computable


def passing(test: Expression, rows: Rows, text: str | None = None) -> Bools:
    """The rows in which a condition holds; where it cannot be computed it does not.

    The user's own text is reported with the reason.
    """
    try:
        return is_true(test, rows.columns, rows.size)
    except _FAILURES as error:
        computable = _computable(partial(is_true, test), rows, _collected(error), text)
    places = pa.array(computable)
    passed = np.zeros(rows.size, np.bool_)
    passed[computable] = is_true(
        test, [column.take(places) for column in rows.columns], len(computable)
    )
    return passed


def leave_out(bad: Bools, error: PredicateError, rows: Rows) -> None:
    """Record rows that turned out not to be computable, or raise the error."""
    errors = _collected(error)
    for place in np.flatnonzero(bad):
        _note(errors, rows, int(place), in_one_line(error))


def _collected(error: Exception) -> RowErrors:
    """Where rows left out are recorded; raises the error where that would not help."""
    errors = _COLLECTED.get()
    if errors is None or isinstance(error, UnavailableError):
        raise error
    return errors


def _computable(work: _Work, rows: Rows, errors: RowErrors, text: str | None = None) -> Int64s:
    """The rows for which a computation succeeds; the others are recorded."""
    computable = np.ones(rows.size, np.bool_)
    for place, why in _failing(work, rows, 0, rows.size):
        computable[place] = False
        reason = f"{why}; in: {text}" if text else why
        _note(errors, rows, place, reason)
    return np.flatnonzero(computable)


def _failing(work: _Work, rows: Rows, first: int, length: int) -> Iterator[tuple[int, str]]:
    """The rows for which a computation fails, and why; found by bisection."""
    try:
        work(rows.slice(first, length), length)
    except _FAILURES as error:
        if length == 1:
            yield first, _reason(error)
            return
        half = length // 2
        yield from _failing(work, rows, first, half)
        yield from _failing(work, rows, first + half, length - half)


def _reason(error: Exception) -> str:
    return in_one_line(error) if isinstance(error, PredicateError) else str(error)


def _note(errors: RowErrors, rows: Rows, place: int, reason: str) -> None:
    if rows.counted is None or rows.counted[place]:
        errors.note(RowError(rows.stream, reason[:LONGEST], rows.describe(place)))
