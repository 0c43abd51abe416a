"""Rows that a server has answered with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from nilometer.client.html_table import html_table
from nilometer.client.plotting import plot_table
from nilometer.extras import require_package

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.axes import Axes

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Rows:
    """Rows with the types of Arrow; iterating gives each as a dict of Python values.

    >>> list(Rows(pa.table({"n": [1, 2]})))
    [{'n': 1}, {'n': 2}]
    """

    table: pa.Table
    message: str | None = None
    """The message of a statement."""
    is_cut: bool = False
    """Whether there were more rows than the server returns at once."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.table.to_batches(max_chunksize=1000):
            yield from batch.to_pylist()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_arrow(self) -> pa.Table:
        return self.table

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        return html_table(self.table, self.message, is_cut=self.is_cut)

    def to_pandas(self) -> pd.DataFrame:
        return self.table.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        return polars_of(self.table)

    def plot(
        self,
        x: str | None = None,
        y: str | Sequence[str] | None = None,
        *,
        per: str | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot the rows as lines over time with matplotlib; returns the axes.

        x    the column of times; without, `_time` or the first one.
        y    the columns of numbers; without, all.
        per  the column that tells series apart; without, the only column of text, if there is one.
        ax   where to draw; without, on axes of its own.
        """
        return plot_table(self.table, x, y, per, ax)


@dataclass(frozen=True)
class Page(Rows):
    """Stored results of a query."""

    next: str = ""
    """The offset after these rows."""
    watermark: datetime | None = None
    """No later row has an earlier time; None if unknown."""
    at_end: bool = False
    """Whether there are currently no more rows."""


@dataclass(frozen=True)
class Answer(Rows):
    """The answer of a changelog query at one instant."""

    instant: datetime | None = None
    """None as long as nothing is known for certain."""
    offset: str = ""
    """Following from here gives every change after the instant, and no other."""


def polars_of(table: pa.Table) -> pl.DataFrame:
    """Rows as a DataFrame of polars, which nobody has to have."""
    require_package("to_polars()", "polars")
    return import_module("polars").from_arrow(table)


def instant_of(micros: str | None) -> datetime | None:
    """An instant in UTC, from microseconds as text; None also beyond the calendar."""
    if micros is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=int(micros))
    except OverflowError:
        return None
