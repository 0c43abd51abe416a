"""Lines over time or numbers, thinned by DuckDB: a browser gets at most 1,000 points of each.

Rows are put into buckets of equal width. Of each bucket and line the first, the last, the least and
the greatest value are kept: a chart whose pixels are wider than buckets looks the same as with all
rows (M4: Jugel et al., VLDB 2014, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.model.dashboard import Combine
from nilometer.model.names import natural
from nilometer.server.dashboards.panel_source import Column, PanelSource
from nilometer.server.dashboards.time_range import Interval, step_for

MOST_SERIES: Final = 12
"""The maximum number of lines; other names are only counted."""
MOST_BUCKETS: Final = 249
"""Four points each, and one more bucket if they are aligned to the clock: 1,000."""
MOST_COMBINED: Final = 300

Points = list[tuple[float, float | None]]
"""Times in microseconds, or other numbers, each with a value; None: the line ends there."""


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    name: str
    points: Points


@dataclass(frozen=True)
class Axis:
    """The column along the chart, its range, and the steps in which rows are grouped."""

    column: Column
    low: float
    high: float
    step: float

    @classmethod
    def of(cls, column: Column, low: float, high: float, max_steps: int) -> Axis:
        """At most `max_steps` steps, and one more; steps of times start at whole clock units."""
        if column.is_time:
            return cls(column, low, high, step_for(int(high - low) or 1, max_steps))
        return cls(column, low, high, (high - low) / max_steps or 1.0)

    @property
    def sql(self) -> str:
        """The column as a number."""
        return number(self.column)

    @property
    def bucket(self) -> str:
        """The number of the step that contains a row."""
        if self.column.is_time:
            return f"{self.sql} // {int(self.step)}"
        return f"CAST(floor(({self.sql} - {self.low!r}) / {self.step!r}) AS BIGINT)"

    def start_of(self, bucket: float) -> float:
        """Where a step starts."""
        return bucket * self.step + (0.0 if self.column.is_time else self.low)


def number(column: Column) -> str:
    """A column as a number: times are microseconds."""
    if column.is_time:
        return f"epoch_us(CAST({column.sql} AS TIMESTAMPTZ))"
    return f"CAST({column.sql} AS DOUBLE)"


def finite(column: Column) -> str:
    """A column of numbers, NULL where a value cannot be drawn."""
    value = f"CAST({column.sql} AS DOUBLE)"
    return f"CASE WHEN isfinite({value}) THEN {value} END"


def names_of(series: Column | None) -> str:
    """The name that distinguishes lines, as text."""
    return "''" if series is None else f"coalesce(CAST({series.sql} AS VARCHAR), 'NULL')"


def combined(how: Combine, value: str, order: str | None) -> str:
    """An aggregate of the values of one step."""
    if how is Combine.LAST:
        return f"last({value})" if order is None else f"arg_max({value}, {order})"
    return f"{(Combine.AVG if how is Combine.ALL else how).value}({value})"


def bounds_question(source: PanelSource, at: Interval, axis: Column) -> str:
    """A query for the range of the axis, where it is not given."""
    x = number(axis)
    finite_x = "TRUE" if axis.is_time else f"isfinite({x})"
    return (
        f"SELECT CAST(min({x}) AS DOUBLE) AS low, CAST(max({x}) AS DOUBLE) AS high "
        f"FROM {source.rows(at)} WHERE {source.within(at, axis)} AND {finite_x}"
    )


@dataclass(frozen=True)
class LinesQuestion:
    """A query for lines."""

    source: PanelSource
    at: Interval
    axis: Axis
    values: Sequence[Column]
    """Numbers; if empty, rows are counted."""
    series: Column | None
    combine: Combine

    @property
    def sql(self) -> str:
        """The query; its answer has a row for each line and bucket with rows."""
        selected = ", ".join(
            part for i in range(max(1, len(self.values))) for part in self._aggregates(i)
        )
        grouped = (
            f"SELECT _s, _b, {selected}, dense_rank() OVER (ORDER BY _s) AS _r "
            f"FROM ({self._rows}) AS _rows GROUP BY _s, _b"
        )
        counted = f"SELECT *, max(_r) OVER () AS _n FROM ({grouped}) AS _grouped"
        return f"SELECT * FROM ({counted}) AS _counted WHERE _r <= {MOST_SERIES} ORDER BY _r, _b"

    @property
    def _is_thinned(self) -> bool:
        return self.combine is Combine.ALL

    @property
    def _rows(self) -> str:
        source, axis = self.source, self.axis
        values = "".join(f", {finite(one)} AS _y{i}" for i, one in enumerate(self.values))
        diff = ", _diff AS _d" if source.reads_changes else ""
        select = (
            f"SELECT {axis.sql} AS _x, {axis.bucket} AS _b, {names_of(self.series)} AS _s"
            f"{values}{diff} FROM {source.rows(self.at)} "
            f"WHERE {source.within(self.at, axis.column)} AND {axis.column.sql} IS NOT NULL"
        )
        if not source.reads_changes:
            return select
        if not self._is_thinned:
            return f"SELECT * FROM ({select}) AS _changes WHERE _d > 0"
        extremes = ", ".join(
            f"max(_y{i}) FILTER (WHERE _d > 0) AS _y{i}, max(_y{i}) FILTER (WHERE _d < 0) AS _w{i}"
            for i in range(len(self.values))
        )
        return f"SELECT _s, _x, _b, {extremes} FROM ({select}) AS _changes GROUP BY _s, _x, _b"

    def _aggregates(self, i: int) -> list[str]:
        if not self.values:
            return ["count(*) AS _v0"]
        y, there = f"_y{i}", f"FILTER (WHERE _y{i} IS NOT NULL)"
        if not self._is_thinned:
            return [f"{combined(self.combine, y, '_x')} AS _v{i}"]
        aggregates = [
            f"min(_x) {there} AS _x0_{i}, arg_min({y}, _x) {there} AS _v0_{i}",
            f"max(_x) {there} AS _x1_{i}, arg_max({y}, _x) {there} AS _v1_{i}",
            f"arg_min(_x, {y}) {there} AS _x2_{i}, min({y}) AS _v2_{i}",
            f"arg_max(_x, {y}) {there} AS _x3_{i}, max({y}) AS _v3_{i}",
        ]
        if self.source.reads_changes:
            aggregates += [
                f"max(_x) FILTER (WHERE {y} IS NULL) AS _end_{i}",
                f"min(_x) AS _first_{i}",
                f"min(_x) FILTER (WHERE _w{i} IS NOT NULL) AS _was_at_{i}",
                f"arg_min(_w{i}, _x) FILTER (WHERE _w{i} IS NOT NULL) AS _was_{i}",
            ]
        return aggregates

    def lines(self, answer: pa.Table) -> list[Line]:
        """The lines of an answer, by name."""
        lines: list[Line] = []
        names = np.array(answer["_s"].to_pylist(), dtype=object)
        for name in dict.fromkeys(names.tolist()):
            rows = answer.filter(pa.array(names == name))
            for i in range(max(1, len(self.values))):
                points = self._points(rows, i)
                if points:
                    lines.append(Line(self._called(name, i), points))
        return sorted(lines, key=lambda one: natural(one.name))

    def left_out(self, answer: pa.Table) -> int:
        """How many names have no line."""
        if not answer.num_rows:
            return 0
        return max(0, int(answer["_n"][0].as_py()) - MOST_SERIES)

    def _called(self, name: str, i: int) -> str:
        column = self.values[i].name if self.values else "rows"
        if self.series is None:
            return column
        return name if len(self.values) <= 1 else f"{column} of {name}"

    def _points(self, rows: pa.Table, i: int) -> Points:
        if not self._is_thinned:
            pairs = zip(rows["_b"].to_pylist(), rows[f"_v{i}"].to_pylist(), strict=True)
            return [(self.axis.start_of(b), float(v)) for b, v in pairs if v is not None]
        places = np.concatenate([_floats(rows, f"_x{k}_{i}") for k in range(4)])
        values = np.concatenate([_floats(rows, f"_v{k}_{i}") for k in range(4)])
        there = np.isfinite(values)
        pairs = zip(places[there].tolist(), values[there].tolist(), strict=True)
        points: Points = sorted(set(pairs))
        return self._with_ends(rows, i, points) if self.source.reads_changes else points

    def _with_ends(self, rows: pa.Table, i: int, points: Points) -> Points:
        """Lines of an answer: values from before the range, and ends of values.

        A value that is retracted at an instant has held until then.
        """
        firsts, was_at, was = (
            _floats(rows, one) for one in (f"_first_{i}", f"_was_at_{i}", f"_was_{i}")
        )
        if self.at.start is not None and len(firsts) and was_at[0] == firsts[0]:
            points = [(float(self.at.start), float(was[0])), *points]
        ends, lasts = _floats(rows, f"_end_{i}"), _floats(rows, f"_x1_{i}")
        for end, last in zip(ends, lasts, strict=True):
            if np.isfinite(end) and not end <= last:
                points.append((float(end), None))
        return _extended(sorted(points, key=lambda one: (one[0], one[1] is not None)))


def _extended(points: Points) -> Points:
    """A value holds up to the instant at which it ends."""
    held: Points = []
    for place, value in points:
        if value is None and held and held[-1][1] is not None:
            held.append((place, held[-1][1]))
        held.append((place, value))
    return held


def _floats(rows: pa.Table, name: str) -> np.ndarray:
    return np.asarray(rows[name].cast(pa.float64()).to_numpy(), dtype=float)
