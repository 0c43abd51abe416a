"""What a panel shows for a time range, as the browser draws it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from nilometer.errors import SqlTypeError
from nilometer.kernels.json_values import values_of
from nilometer.model.dashboard import Combine, Panel, PanelKind
from nilometer.model.names import natural
from nilometer.server.dashboards.panel_source import Column, PanelSource, open_source
from nilometer.server.dashboards.thinned import (
    MOST_BUCKETS,
    MOST_COMBINED,
    MOST_SERIES,
    Axis,
    Line,
    LinesQuestion,
    bounds_question,
    combined,
    finite,
    names_of,
    number,
)
from nilometer.server.dashboards.time_range import Interval
from nilometer.server.scopes import Asker
from nilometer.server.service import Service

MOST_ROWS: Final = 200
MOST_BARS: Final = 60
MOST_CELLS: Final = 120
MOST_PLACES: Final = 500
_SPARK_POINTS: Final = 60


@dataclass(frozen=True)
class Picture:
    """What is drawn: values by the names that the browser knows, or rows of a table."""

    kind: PanelKind
    values: dict[str, Any]
    rows: pa.Table | None = None
    left_out: int = 0
    """Number of names without a line, row or bar of their own."""

    @property
    def is_empty(self) -> bool:
        if self.rows is not None:
            return not self.rows.num_rows
        return not any(self.values.get(one) for one in ("lines", "cells", "places", "figures"))


async def read_panel(service: Service, panel: Panel, at: Interval, asker: Asker) -> Picture:
    """Query what a panel shows; errors are raised with a readable message."""
    source = await open_source(service, panel.source, at, asker)
    picture = await _Asking(service, panel, at, asker, source).picture()
    is_stacked = panel.combine in (Combine.SUM, Combine.COUNT)
    more = {"kind": panel.kind.value, "unit": panel.unit, "is_stacked": is_stacked}
    return replace(picture, values=picture.values | more)


@dataclass(frozen=True)
class _Asking:
    """One panel for one time range."""

    service: Service
    panel: Panel
    at: Interval
    asker: Asker
    source: PanelSource

    async def picture(self) -> Picture:
        ask: dict[PanelKind, Callable[[], Coroutine[Any, Any, Picture]]] = {
            PanelKind.LINE: self._line,
            PanelKind.BAR: self._bar,
            PanelKind.STAT: self._stat,
            PanelKind.TABLE: self._table,
            PanelKind.HEAT: self._heat,
            PanelKind.MAP: self._map,
        }
        return await ask[self.panel.kind]()

    # Kinds

    async def _line(self) -> Picture:
        asking = replace(self, source=self.source.with_changes())
        column = asking._x()
        is_all = self.panel.combine is Combine.ALL
        axis = await asking._axis(column, MOST_BUCKETS if is_all else MOST_COMBINED)
        if axis is None:
            return Picture(PanelKind.LINE, {"lines": [], **asking._range(None)})
        lines, left_out = await asking._lines(axis, self.panel.combine)
        is_answer = asking.source.reads_changes and is_all
        if is_answer:
            lines = await self._with_unchanged(lines, axis)
        drawn = [_drawn(one, is_time=column.is_time) for one in lines]
        values = {"lines": drawn, "steps": is_answer, "is_time": column.is_time}
        return Picture(PanelKind.LINE, values | asking._range(axis), left_out=left_out)

    async def _bar(self) -> Picture:
        panel = self.panel
        if panel.x is None or self.source.with_changes().column(panel.x).is_time:
            asking = replace(self, source=self.source.with_changes())
            column = asking._x()
            axis = await asking._axis(column, MOST_BARS)
            if axis is None:
                return Picture(PanelKind.BAR, {"lines": [], **asking._range(None)})
            lines, left_out = await asking._lines(axis, _combination(panel.combine, Combine.AVG))
            values = {"lines": [_drawn(one, is_time=True) for one in lines], "is_time": True}
            values |= {"step": axis.step / 1000}
            return Picture(PanelKind.BAR, values | asking._range(axis), left_out=left_out)
        return await self._categories(self.source.column(panel.x))

    async def _categories(self, x: Column) -> Picture:
        """A bar for each value of a column, and for each name."""
        how = _combination(self.panel.combine, Combine.AVG)
        ys = self._numbers()
        selected = ", ".join(f"{one} AS _v{i}" for i, one in enumerate(self._combined(how, ys)))
        grouped = (
            f"SELECT {names_of(x)} AS _c, {names_of(self._series())} AS _s, {selected}, "
            f"dense_rank() OVER (ORDER BY {names_of(x)}) AS _r "
            f"FROM {self.source.rows(self.at)} WHERE {self._within()} GROUP BY 1, 2"
        )
        counted = f"SELECT *, max(_r) OVER () AS _n FROM ({grouped}) AS _grouped"
        sql = f"SELECT * FROM ({counted}) AS _counted WHERE _r <= {MOST_BARS} ORDER BY _r, _s"
        answer = await self._ask(sql)
        names = list(dict.fromkeys(answer["_c"].to_pylist()))
        bars: dict[str, dict[str, float]] = {}
        for row in answer.to_pylist():
            for i, value in enumerate(row[f"_v{i}"] for i in range(max(1, len(ys)))):
                if value is not None:
                    bars.setdefault(self._called(row["_s"], ys, i), {})[row["_c"]] = float(value)
        shown = list(bars.items())[:MOST_SERIES]
        lines = [{"name": one, "data": [by.get(c) for c in names]} for one, by in shown]
        left_out = max(0, _count(answer) - MOST_BARS) + len(bars) - len(shown)
        values = {"lines": lines, "names": names, "is_time": False}
        return Picture(PanelKind.BAR, values, left_out=left_out)

    async def _stat(self) -> Picture:
        how = _combination(self.panel.combine, Combine.LAST)
        ys = self._numbers()
        time = self._time()
        order = None if time is None else number(time)
        selected = ", ".join(
            f"{one} AS _v{i}" for i, one in enumerate(self._combined(how, ys, order))
        )
        grouped = (
            f"SELECT {names_of(self._series())} AS _s, {selected}, count(*) AS _k "
            f"FROM {self.source.rows(self.at)} WHERE {self._within()} GROUP BY 1"
        )
        counted = f"SELECT *, count(*) OVER () AS _n FROM ({grouped}) AS _grouped"
        answer = await self._ask(f"SELECT * FROM ({counted}) AS _c ORDER BY _s LIMIT {MOST_SERIES}")
        figures = [
            {"name": self._called(row["_s"], ys, i), "value": float(row[f"_v{i}"])}
            for row in answer.to_pylist()
            for i in range(max(1, len(ys)))
            if row[f"_v{i}"] is not None and row["_k"]
        ]
        sparks = await self._sparks() if figures else {}
        for one in figures:
            one["points"] = sparks.get(str(one["name"]), [])
        left_out = max(0, _count(answer) - MOST_SERIES)
        return Picture(
            PanelKind.STAT, {"figures": figures, "unit": self.panel.unit}, None, left_out
        )

    async def _sparks(self) -> dict[str, list[list[float | None]]]:
        """The history of figures: a small line for each, if rows have times."""
        asking = replace(self, source=self.source.with_changes())
        time = asking._time()
        if time is None or not time.is_time:
            return {}
        axis = await asking._axis(time, _SPARK_POINTS)
        if axis is None:
            return {}
        lines, _ = await asking._lines(axis, _combination(self.panel.combine, Combine.LAST))
        return {one.name: _drawn(one, is_time=True)["data"] for one in lines}

    async def _table(self) -> Picture:
        panel, source = self.panel, self.source
        columns = [source.column(one) for one in panel.y]
        hidden = source.is_answer
        selected = ", ".join(f'{one.sql} AS "{_name(one.name)}"' for one in columns)
        time = None if panel.x is None else source.column(panel.x)
        order = time or (None if source.select is not None else source.time_column())
        is_ranged = source.select is None or time is not None
        where = source.within(self.at, time) if is_ranged and not hidden else "TRUE"
        ordered = "" if order is None else f"ORDER BY {order.sql} DESC"
        sql = (
            f"SELECT {selected or '*'} FROM {source.rows(self.at)} WHERE {where} {ordered} "
            f"LIMIT {MOST_ROWS}"
        )
        return Picture(PanelKind.TABLE, {}, await self._ask(sql))

    async def _heat(self) -> Picture:
        asking = replace(self, source=self.source.with_changes())
        column = asking._x()
        axis = await asking._axis(column, MOST_CELLS)
        if axis is None:
            return Picture(PanelKind.HEAT, {"cells": [], **asking._range(None)})
        lines, left_out = await asking._lines(axis, _combination(self.panel.combine, Combine.AVG))
        places = [place for one in lines for place, _ in one.points]
        first = min(places, default=0.0)
        cells: list[tuple[int, int, float | None]] = [
            (round((place - first) / axis.step), row, value)
            for row, one in enumerate(lines)
            for place, value in one.points
        ]
        count = max((cell[0] for cell in cells), default=-1) + 1
        scale = 1000.0 if column.is_time else 1.0
        values = {
            "cells": cells,
            "columns": [(first + i * axis.step) / scale for i in range(count)],
            "names": [one.name for one in lines],
            "is_time": column.is_time,
        }
        return Picture(PanelKind.HEAT, values | asking._range(axis), left_out=left_out)

    async def _map(self) -> Picture:
        panel, source = self.panel, self.source
        assert panel.x is not None
        selected = {"_px": source.column(panel.x), "_py": source.column(panel.y[0])}
        if panel.value is not None:
            selected["_v"] = source.column(panel.value)
        for one in selected.values():
            _require_number(one)
        time = source.time_column()
        order = None if time is None else number(time)
        key = names_of(self._series())
        if panel.series is None:
            px, py = (finite(selected[one]) for one in ("_px", "_py"))
            key = f"concat(CAST({px} AS VARCHAR), ', ', CAST({py} AS VARCHAR))"
        last = ", ".join(
            f"{combined(Combine.LAST, finite(one), order)} AS {name}"
            for name, one in selected.items()
        )
        sql = (
            f"SELECT *, count(*) OVER () AS _n FROM (SELECT {key} AS _s, {last} "
            f"FROM {source.rows(self.at)} WHERE {source.within(self.at, None)} GROUP BY 1) AS _g "
            f"WHERE _px IS NOT NULL AND _py IS NOT NULL ORDER BY _s LIMIT {MOST_PLACES}"
        )
        answer = await self._ask(sql)
        places = [
            {"name": row["_s"], "at": [row["_px"], row["_py"]], "value": row.get("_v")}
            for row in answer.to_pylist()
        ]
        is_coloured = panel.value is not None
        values = {"places": places, "value": panel.value, "is_coloured": is_coloured}
        left_out = max(0, _count(answer) - MOST_PLACES)
        return Picture(PanelKind.MAP, values, left_out=left_out)

    # Parts of queries

    async def _ask(self, sql: str) -> pa.Table:
        return await self.source.ask(self.service, sql, self.asker)

    async def _axis(self, column: Column, max_steps: int) -> Axis | None:
        """The axis, covering the page's range or the rows; None: there are no rows."""
        if column.is_time and self.at.start is not None:
            return Axis.of(column, float(self.at.start), float(self.at.end), max_steps)
        bounds = (await self._ask(bounds_question(self.source, self.at, column))).to_pylist()[0]
        if bounds["low"] is None:
            return None
        return Axis.of(column, bounds["low"], bounds["high"], max_steps)

    async def _lines(self, axis: Axis, how: Combine) -> tuple[list[Line], int]:
        question = LinesQuestion(self.source, self.at, axis, self._numbers(), self._series(), how)
        answer = await self._ask(question.sql)
        return question.lines(answer), question.left_out(answer)

    async def _with_unchanged(self, lines: list[Line], axis: Axis) -> list[Line]:
        """The lines of an answer up to the end, including values unchanged in the range."""
        end = float(min(self.at.end, axis.high) if self.at.start is None else self.at.end)
        start = axis.low if self.at.start is None else float(self.at.start)
        question = LinesQuestion(
            self.source, self.at, axis, self._numbers(), self._series(), Combine.LAST
        )
        selected = ", ".join(
            f"last({finite(one)}) AS _v{i}" for i, one in enumerate(question.values)
        )
        sql = (
            f"SELECT {names_of(question.series)} AS _s, {selected} "
            f"FROM {self.source.rows(self.at)} GROUP BY 1 ORDER BY 1 LIMIT {MOST_SERIES}"
        )
        by_name = {one.name: list(one.points) for one in lines}
        for row in (await self._ask(sql)).to_pylist():
            for i in range(len(question.values)):
                name, value = question._called(row["_s"], i), row[f"_v{i}"]
                if name not in by_name and value is not None and len(by_name) < MOST_SERIES:
                    by_name[name] = [(start, float(value))]
        for points in by_name.values():
            if points and points[-1][1] is not None and points[-1][0] < end:
                points.append((end, points[-1][1]))
        return [Line(name, by_name[name]) for name in sorted(by_name, key=natural)]

    def _combined(self, how: Combine, ys: list[Column], order: str | None = None) -> list[str]:
        return [combined(how, finite(one), order) for one in ys] or ["count(*)"]

    def _x(self) -> Column:
        """The column along the chart: times or numbers."""
        column = self.source.time_column(self.panel.x)
        if column is None:
            raise SqlTypeError(
                "these rows have no time",
                hint="name the column of times, or of numbers, for x",
            )
        if not column.is_time:
            _require_number(column)
        return column

    def _time(self) -> Column | None:
        """The column that orders rows, if any."""
        return self.source.time_column(self.panel.x)

    def _numbers(self) -> list[Column]:
        columns = [self.source.column(one) for one in self.panel.y]
        if self.panel.combine is not Combine.COUNT:
            for one in columns:
                _require_number(one)
        return [] if self.panel.combine is Combine.COUNT else columns

    def _series(self) -> Column | None:
        return None if self.panel.series is None else self.source.column(self.panel.series)

    def _within(self) -> str:
        x = self._time() if self.panel.x is not None else None
        is_time = x is not None and x.is_time
        return self.source.within(self.at, x if is_time else None)

    def _called(self, name: str, ys: list[Column], i: int) -> str:
        column = ys[i].name if ys else "rows"
        if self.panel.series is None:
            return column
        return name if len(ys) <= 1 else f"{column} of {name}"

    def _range(self, axis: Axis | None) -> dict[str, Any]:
        """The range of the chart's axis, in milliseconds or as it is."""
        if axis is not None and not axis.column.is_time:
            return {"low": axis.low, "high": axis.high}
        if self.at.start is not None:
            return {"low": self.at.start / 1000, "high": self.at.end / 1000}
        return {} if axis is None else {"low": axis.low / 1000, "high": axis.high / 1000}


def _combination(how: Combine, otherwise: Combine) -> Combine:
    """How to combine values where they must be combined."""
    return otherwise if how is Combine.ALL else how


def _require_number(column: Column) -> None:
    if not column.is_number:
        raise SqlTypeError(
            f"{column.name} is not a column of numbers",
            detail=f"its type is {column.type}",
            hint="choose another column, or count rows",
        )


def _drawn(line: Line, *, is_time: bool) -> dict[str, Any]:
    scale = 1000.0 if is_time else 1.0
    return {"name": line.name, "data": [[place / scale, value] for place, value in line.points]}


def _count(answer: pa.Table) -> int:
    return int(values_of(answer["_n"])[0]) if answer.num_rows else 0


def _name(name: str) -> str:
    return name.replace('"', '""')
