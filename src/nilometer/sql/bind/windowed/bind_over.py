"""OVER, bound: the function of each window, with its arguments by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import (
    DurationError,
    NotYetError,
    PredicateError,
    SqlError,
    SqlTypeError,
    SqlWindowError,
)
from nilometer.kernels.aggregate_types import aggregate_type
from nilometer.kernels.expression_types import common_type, type_name
from nilometer.model.time import parse_duration
from nilometer.operators.over_rows import (
    Framed,
    Numbering,
    Offset,
    OverFrame,
    OverFunction,
    OverSpec,
    Picked,
    Running,
)
from nilometer.sql.bind.windowed.read_count import read_count, read_nth
from nilometer.sql.expressions.aggregate_calls import read_aggregate
from nilometer.sql.parse.over_calls import OverCall
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.parse.places import place_of, text_of
from nilometer.sql.plan.changes_plan import Node, Over, names_of, types_of
from nilometer.sql.plan.types import TIMESTAMP
from nilometer.sql.plan.unbounded import is_kept_short

_FRAME_HINT = (
    "write ROWS BETWEEN 10 PRECEDING AND CURRENT ROW, "
    "or RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
)
FRAMED = (
    *(exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Quantile),
    *(exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop),
    *(exp.Skewness, exp.Kurtosis, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg),
    *(exp.CovarPop, exp.CovarSamp, exp.Mode, exp.PercentileDisc, exp.ApproxQuantile),
    *(exp.ArgMin, exp.ArgMax),
)
"""Aggregates allowed before OVER; `rewrite.put_framed` handles those composed of them."""
_NUMBERED = {"row_number": "ROW_NUMBER", "rank": "RANK", "dense_rank": "DENSE_RANK"}

_OF_ALL_ROWS: Final = {
    "ntile": "NTILE",
    "percentrank": "PERCENT_RANK",
    "percent_rank": "PERCENT_RANK",
    "cumedist": "CUME_DIST",
    "cume_dist": "CUME_DIST",
}
PICKED: Final = (exp.FirstValue, exp.LastValue, exp.First, exp.Last, exp.AnyValue, exp.NthValue)
"""Functions that return the value of one row of a frame."""


@dataclass
class OverBinder:
    """Reads the windows of one partition; arguments become columns after the keys."""

    sql: str
    call: OverCall
    arguments: list[exp.Expr] = field(default_factory=list)

    @property
    def windows(self) -> list[exp.Window]:
        windows: list[exp.Window] = self.call.expressions
        return windows

    @property
    def partition(self) -> list[exp.Expr]:
        keys: list[exp.Expr] = self.windows[0].args.get("partition_by") or []
        return keys

    def functions(self) -> list[OverFunction]:
        """The functions of the windows; arguments are numbered from zero."""
        return [self._function(one) for one in self.windows]

    def node(self, below: Node, functions: list[OverFunction], time_name: str) -> Over:
        """The node, given the rows with keys, arguments and, last, their time."""
        used = len(self.partition) + len(self.arguments)
        passed = len(below.columns) - used - 1
        keys = tuple(range(passed, passed + len(self.partition)))
        first = passed + len(self.partition)
        placed = tuple(_moved(one, first) for one in functions)
        kinds = types_of(below.columns)
        results = [
            self._type(one, kinds, window) for one, window in zip(placed, self.windows, strict=True)
        ]
        types = (*kinds[:passed], *results, TIMESTAMP)
        own = [window.meta["name"] for window in self.windows]
        names = (*names_of(below.columns[:passed]), *own, time_name)
        texts = tuple(text_of(one, self.sql) for one in self.windows)
        return Over(OverSpec(placed, keys, passed, kinds, types), (below,), names, texts)

    def _function(self, window: exp.Window) -> OverFunction:
        inner = window.this
        name = inner.name if isinstance(inner, exp.Anonymous) else inner.key
        name = name.lower().replace("rownumber", "row_number").replace("denserank", "dense_rank")
        if name in _NUMBERED and not inner.expressions:
            return Numbering(_NUMBERED[name])
        match inner:
            case exp.Lag() | exp.Lead():
                return self._offset(inner)
            case exp.IgnoreNulls() if isinstance(inner.this, exp.Lag):
                offset = self._offset(inner.this)
                return replace(offset, ignores_nulls=offset.steps > 0)
            case exp.IgnoreNulls() if isinstance(inner.this, exp.Lead):
                raise SqlError(
                    "LEAD with IGNORE NULLS may wait forever",
                    place=place_of(window, self.sql),
                    hint="leave IGNORE NULLS out, or use a static table",
                )
            case _ if isinstance(inner, PICKED):
                return self._picked(inner, window, ignores_nulls=False)
            case exp.IgnoreNulls() if isinstance(inner.this, PICKED):
                return self._picked(inner.this, window, ignores_nulls=True)
        if name in _OF_ALL_ROWS:
            raise SqlError(
                f"{_OF_ALL_ROWS[name]} needs all rows of a partition, but a stream has no last row",
                place=place_of(window, self.sql),
                hint="use a static table, or RANK() and COUNT(*) up to the current row of a stream",
            )
        called = inner.this if isinstance(inner, exp.Filter) else inner
        if type(called) not in FRAMED:
            raise NotYetError(
                f"{function_text(inner, self.sql)} is not supported with OVER yet",
                place=place_of(window, self.sql),
                hint="LAG, LEAD, ROW_NUMBER, RANK, DENSE_RANK, FIRST_VALUE, LAST_VALUE and "
                "NTH_VALUE are supported, and aggregates other than lists and texts",
            )
        read = read_aggregate(inner, self.sql)
        column = None if read.argument is None else self._argument(read.argument)
        frame = self._frame(window)
        if frame.has_all:
            return Running(read.call(column), frame.by_rows)
        return Framed(read.call(column), frame)

    def _picked(self, node: exp.Expr, window: exp.Window, *, ignores_nulls: bool) -> Picked:
        last = isinstance(node, exp.LastValue | exp.Last)
        number = read_nth(node, self.sql) if isinstance(node, exp.NthValue) else 1
        return Picked(self._argument(node.this), last, self._frame(window), ignores_nulls, number)

    def _offset(self, node: exp.Lag | exp.Lead) -> Offset:
        offset = node.args.get("offset")
        steps = 1 if offset is None else read_count(offset, self.sql)
        default = node.args.get("default")
        place = None if default is None else self._argument(default)
        back = steps if isinstance(node, exp.Lag) else -steps
        return Offset(self._argument(node.this), back, place)

    def _argument(self, tree: exp.Expr) -> int:
        if tree not in self.arguments:
            self.arguments.append(tree)
        return self.arguments.index(tree)

    def _frame(self, window: exp.Window) -> OverFrame:
        spec = window.args.get("spec")
        if spec is None:
            return OverFrame()
        start = spec.args.get("start")
        ends_here = spec.args.get("end") in (None, "CURRENT ROW")
        if not ends_here or not isinstance(start, exp.Expr | str):
            raise SqlError(
                "this window extends into the future",
                place=place_of(window, self.sql),
                detail="the result for a row must be known when the row arrives",
                hint=_FRAME_HINT,
            )
        if start == "UNBOUNDED":
            return OverFrame(by_rows=spec.args["kind"] == "ROWS")
        if start == "CURRENT ROW":
            return OverFrame(0, None) if spec.args["kind"] == "ROWS" else OverFrame(None, 0)
        assert isinstance(start, exp.Expr)
        if spec.args.get("start_side") != "PRECEDING":
            raise SqlError(
                "a window must start in the past",
                place=place_of(window, self.sql),
                hint=_FRAME_HINT,
            )
        if spec.args["kind"] == "ROWS":
            return OverFrame(read_count(start, self.sql), None)
        return OverFrame(None, self._length(start))

    def _length(self, tree: exp.Expr) -> int:
        try:
            unit = tree.unit.name if isinstance(tree, exp.Interval) and tree.unit else ""
            return parse_duration(f"{tree.this.name} {unit}")
        except (DurationError, AttributeError):
            raise SqlError(
                "RANGE on a stream needs a length of time",
                place=place_of(tree, self.sql),
                hint=_FRAME_HINT,
            ) from None

    def _type(
        self, function: OverFunction, kinds: Sequence[pa.DataType], window: exp.Window
    ) -> pa.DataType:
        match function:
            case Picked(column):
                return kinds[column]
            case Offset(column, _, default):
                other = kinds[column if default is None else default]
                common = common_type(kinds[column], other)
                if common is None:
                    raise SqlTypeError(
                        "the default value has a different type than the column",
                        place=place_of(window, self.sql),
                        detail=f"{type_name(kinds[column])} and {type_name(other)}",
                    )
                return common
            case Numbering():
                return pa.int32()
            case Running(call) if not is_kept_short(call, kinds, grows=True):
                raise SqlWindowError(
                    f"{function_text(window.this, self.sql)} over all rows so far would keep all "
                    "of them",
                    place=place_of(window, self.sql),
                    detail="COUNT, SUM, AVG, variances, and MIN and MAX of numbers and times keep "
                    "a few numbers for each partition",
                    hint=_FRAME_HINT,
                )
            case Framed(call) | Running(call):
                try:
                    return aggregate_type(call, kinds, text_of(window.this, self.sql))
                except PredicateError as error:
                    raise SqlTypeError.at(place_of(window, self.sql), error) from None


def function_text(call: exp.Expr, sql: str) -> str:
    """The name of the function before OVER, as it is written."""
    inner = call.this if isinstance(call, exp.Filter | exp.IgnoreNulls) else call
    return written(inner) if isinstance(inner, exp.Func) else text_of(inner, sql)


def looks_ahead(functions: list[OverFunction]) -> bool:
    """Whether a function sees a later row, for which all rows wait."""
    return any(isinstance(one, Offset) and one.steps < 0 for one in functions)


def _moved(function: OverFunction, first: int) -> OverFunction:
    """A function whose arguments are shifted by this many columns."""
    match function:
        case Offset(column, _, default):
            other = None if default is None else first + default
            return replace(function, column=first + column, default=other)
        case Picked(column):
            return replace(function, column=first + column)
        case Framed(call) | Running(call) if call.column is not None:
            return replace(function, call=replace(call, column=first + call.column))
    return function
