"""Rows as lines over time, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.errors import InputError
from nilometer.extras import require_package

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TIME: Final = "_time"
_DIFF: Final = "_diff"
_MOST_SERIES: Final = 20
"""A text column with more values than this does not distinguish series unless it is named."""


def plot_table(
    table: pa.Table, x: str | None, y: str | Sequence[str] | None, per: str | None, ax: Axes | None
) -> Axes:
    """Draw a line for every numeric column, or for each of its series; returns the axes.

    x    the column of times; if omitted, `_time` or the first one.
    y    the numeric columns; if omitted, all.
    per  the column that distinguishes series; if omitted, the only text column, if there is one.
    ax   where to draw; if omitted, on axes of its own.
    """
    require_package("plot()", "matplotlib")
    across = _required(table, x) if x is not None else _time_column(table)
    chosen = [y] if isinstance(y, str) else y
    up = [_number_column(table, one) for one in chosen] if chosen else _numbers(table, across)
    if not up:
        raise InputError(
            "there is no column of numbers to plot", detail=f"there are {_column_list(table)}"
        )
    by = _required(table, per) if per is not None else _series_column(table, across)
    axes = ax if ax is not None else import_module("matplotlib.pyplot").subplots()[1]
    ordered = table.take(pc.sort_indices(table, [(across, "ascending")]))
    for series, rows in _series(ordered, by):
        for name in up:
            label = ", ".join([*([] if series is None else [series]), *([name] if up[1:] else [])])
            axes.plot(_places(rows.column(across)), _heights(rows.column(name)), label=label)
    is_zoned = pat.is_timestamp(table.schema.field(across).type)
    axes.set_xlabel(f"{across} (UTC)" if is_zoned else across)
    if len(up) == 1:
        axes.set_ylabel(up[0])
    if by is not None or len(up) > 1:
        axes.legend(title=by)
    return axes


def _time_column(table: pa.Table) -> str:
    times = [one.name for one in table.schema if pat.is_timestamp(one.type) or _is_date(one.type)]
    if _TIME in times:
        return _TIME
    if not times:
        raise InputError(
            "there is no column of times to plot by",
            detail=f"there are {_column_list(table)}",
            hint='name a column: plot(x="…")',
        )
    return str(times[0])


def _numbers(table: pa.Table, across: str) -> list[str]:
    names = (one.name for one in table.schema if _is_number(one.type))
    return [name for name in names if name not in (across, _DIFF)]


def _series_column(table: pa.Table, across: str) -> str | None:
    texts = [one.name for one in table.schema if _is_text(one.type) and one.name != across]
    if len(texts) != 1 or pc.count_distinct(table.column(texts[0])).as_py() > _MOST_SERIES:
        return None
    return str(texts[0])


def _series(table: pa.Table, by: str | None) -> Iterator[tuple[str | None, pa.Table]]:
    """The rows of each series, in order of first appearance."""
    if by is None:
        yield None, table
        return
    column = table.column(by)
    for value in pc.unique(column):
        is_one = pc.is_null(column) if not value.is_valid else pc.equal(column, value)
        yield "NULL" if not value.is_valid else str(value.as_py()), table.filter(is_one)


def _places(column: pa.ChunkedArray) -> Any:
    if pat.is_timestamp(column.type):  # whatever their zone, they are stored in UTC
        return column.cast(pa.timestamp(column.type.unit)).to_numpy()
    return _heights(column) if _is_number(column.type) else column.to_numpy()


def _heights(column: pa.ChunkedArray) -> Any:
    """Numbers; where one is missing, the line is interrupted."""
    return np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")))


def _required(table: pa.Table, name: str) -> str:
    if table.column_names.count(name) != 1:
        raise InputError(
            f"there is not exactly one column {name}", detail=f"there are {_column_list(table)}"
        )
    return name


def _number_column(table: pa.Table, name: str) -> str:
    kind = table.schema.field(_required(table, name)).type
    if not _is_number(kind):
        raise InputError(f"column {name} has no numbers", detail=f"its type is {kind}")
    return name


def _column_list(table: pa.Table) -> str:
    return ", ".join(table.column_names) or "no columns"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_large_string(kind))


def _is_date(kind: pa.DataType) -> bool:
    return bool(pat.is_date(kind))
