"""OVER, bound: what each window says of a row, by the places of what it takes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import DurationError, NotYetError, PredicateError, SqlError, SqlTypeError
from nilometer.kernels.aggregate_types import aggregate_type
from nilometer.kernels.expression_types import common_type, type_name
from nilometer.model.time import parse_duration
from nilometer.operators.over_rows import (
    Frame,
    Framed,
    Numbering,
    Offset,
    OverFunction,
    Picked,
)
from nilometer.sql.bind.windowed.read_count import read_count, read_nth
from nilometer.sql.expressions.aggregate_calls import read_aggregate
from nilometer.sql.expressions.compound_aggregates import simplify_aggregate
from nilometer.sql.parse.over_calls import OverCall
from nilometer.sql.parse.places import place_of, text_of
from nilometer.sql.plan.changes_plan import Column, Node, Over
from nilometer.sql.plan.types import TIMESTAMP

_FRAME_HINT = (
    "write ROWS BETWEEN 10 PRECEDING AND CURRENT ROW, "
    "or RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
)
FRAMED = (
    *(exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Quantile),
    *(exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop),
    *(exp.Skewness, exp.Kurtosis),
)
_NUMBERED = {"row_number": "ROW_NUMBER", "rank": "RANK", "dense_rank": "DENSE_RANK"}

_OF_ALL_ROWS: Final = {
    "ntile": "NTILE",
    "percentrank": "PERCENT_RANK",
    "percent_rank": "PERCENT_RANK",
    "cumedist": "CUME_DIST",
    "cume_dist": "CUME_DIST",
}
_PICKED: Final = (exp.FirstValue, exp.LastValue, exp.First, exp.Last, exp.NthValue)


@dataclass
class OverBinder:
    """Reads the windows of one partition; arguments become columns behind the keys."""

    sql: str
    call: OverCall
    arguments: list[exp.Expr] = field(default_factory=list)

    @property
    def windows(self) -> list[exp.Window]:
        found: list[exp.Window] = self.call.expressions
        return found

    @property
    def partition(self) -> list[exp.Expr]:
        found: list[exp.Expr] = self.windows[0].args.get("partition_by") or []
        return found

    def functions(self) -> list[OverFunction]:
        """What the windows say; arguments are numbered from zero."""
        return [self._function(one) for one in self.windows]

    def node(self, below: Node, functions: list[OverFunction], time_name: str) -> Over:
        """The node, given the rows with keys, arguments and their time at last."""
        used = len(self.partition) + len(self.arguments)
        passed = len(below.columns) - used - 1
        keys = tuple(range(passed, passed + len(self.partition)))
        first = passed + len(self.partition)
        placed = tuple(_moved(one, first) for one in functions)
        kinds = [one.kind for one in below.columns]
        results = [
            Column(window.meta["name"], self._type(one, kinds, window))
            for one, window in zip(placed, self.windows, strict=True)
        ]
        columns = (*below.columns[:passed], *results, Column(time_name, TIMESTAMP))
        texts = tuple(text_of(one, self.sql) for one in self.windows)
        return Over((below,), placed, keys, passed, columns, texts)

    def _function(self, window: exp.Window) -> OverFunction:
        inner = window.this
        name = inner.name if isinstance(inner, exp.Anonymous) else inner.key
        name = name.lower().replace("rownumber", "row_number").replace("denserank", "dense_rank")
        if name in _NUMBERED and not inner.expressions:
            return Numbering(_NUMBERED[name])
        match inner:
            case exp.Lag() | exp.Lead():
                return self._offset(inner)
            case exp.FirstValue() | exp.LastValue() | exp.First() | exp.Last() | exp.NthValue():
                return self._picked(inner, window, ignores_nulls=False)
            case exp.IgnoreNulls() if isinstance(inner.this, _PICKED):
                return self._picked(inner.this, window, ignores_nulls=True)
        if name in _OF_ALL_ROWS:
            raise SqlError(
                f"{_OF_ALL_ROWS[name]} looks at all rows of a partition: a stream has no last one",
                place=place_of(window, self.sql),
                hint="ask it of a static table, or RANK() and COUNT(*) until now of a stream",
            )
        called = inner.this if isinstance(inner, exp.Filter) else inner
        if type(called) not in FRAMED or simplify_aggregate(inner, self.sql) is not inner:
            raise NotYetError(
                f"{text_of(inner, self.sql)} cannot stand before OVER yet",
                place=place_of(window, self.sql),
                hint="LAG, LEAD, ROW_NUMBER, RANK, DENSE_RANK, FIRST_VALUE, LAST_VALUE and "
                "NTH_VALUE can, and COUNT, SUM, AVG, MIN, MAX, variances, MEDIAN",
            )
        read = read_aggregate(inner, self.sql)
        if read.argument is None and self._is_default(window):
            return Numbering("COUNT")
        column = None if read.argument is None else self._argument(read.argument)
        return Framed(read.call(column), self._frame(window))

    def _picked(self, node: exp.Expr, window: exp.Window, *, ignores_nulls: bool) -> Picked:
        last = isinstance(node, exp.LastValue | exp.Last)
        number = read_nth(node, self.sql) if isinstance(node, exp.NthValue) else 1
        return Picked(self._argument(node.this), last, self._frame(window), ignores_nulls, number)

    def _offset(self, node: exp.Lag | exp.Lead) -> Offset:
        given = node.args.get("offset")
        steps = 1 if given is None else read_count(given, self.sql)
        default = node.args.get("default")
        place = None if default is None else self._argument(default)
        back = steps if isinstance(node, exp.Lag) else -steps
        return Offset(self._argument(node.this), back, place)

    def _argument(self, tree: exp.Expr) -> int:
        if tree not in self.arguments:
            self.arguments.append(tree)
        return self.arguments.index(tree)

    def _is_default(self, window: exp.Window) -> bool:
        spec = window.args.get("spec")
        return spec is None or (
            spec.args.get("start") == "UNBOUNDED" and spec.args.get("kind") == "RANGE"
        )

    def _frame(self, window: exp.Window) -> Frame:
        spec = window.args.get("spec")
        start = None if spec is None else spec.args.get("start")
        ends_here = spec is not None and spec.args.get("end") in (None, "CURRENT ROW")
        if not ends_here or not isinstance(start, exp.Expr | str) or start == "UNBOUNDED":
            raise SqlError(
                "this window has no end in the past, or goes on into the future",
                place=place_of(window, self.sql),
                detail="rows are kept for as long as a window looks back",
                hint=_FRAME_HINT,
            )
        assert spec is not None
        if start == "CURRENT ROW":
            return Frame(0, None) if spec.args["kind"] == "ROWS" else Frame(None, 0)
        assert isinstance(start, exp.Expr)
        if spec.args.get("start_side") != "PRECEDING":
            raise SqlError(
                "a window begins in the past", place=place_of(window, self.sql), hint=_FRAME_HINT
            )
        if spec.args["kind"] == "ROWS":
            return Frame(read_count(start, self.sql), None)
        return Frame(None, self._length(start))

    def _length(self, tree: exp.Expr) -> int:
        try:
            unit = tree.unit.name if isinstance(tree, exp.Interval) and tree.unit else ""
            return parse_duration(f"{tree.this.name} {unit}")
        except (DurationError, AttributeError):
            raise SqlError(
                "RANGE goes back by a length of time",
                place=place_of(tree, self.sql),
                hint=_FRAME_HINT,
            ) from None

    def _type(
        self, function: OverFunction, kinds: list[pa.DataType], window: exp.Window
    ) -> pa.DataType:
        match function:
            case Picked(column):
                return kinds[column]
            case Offset(column, _, default):
                other = kinds[column if default is None else default]
                found = common_type(kinds[column], other)
                if found is None:
                    raise SqlTypeError(
                        "what stands where there is no row is of another type than the column",
                        place=place_of(window, self.sql),
                        detail=f"{type_name(kinds[column])} and {type_name(other)}",
                    )
                return found
            case Numbering(kind):
                return pa.int64() if kind == "COUNT" else pa.int32()
            case Framed(call):
                try:
                    return aggregate_type(call, kinds, text_of(window.this, self.sql))
                except PredicateError as error:
                    raise SqlTypeError(
                        error.message,
                        place=place_of(window, self.sql),
                        detail=error.detail,
                        hint=error.hint,
                    ) from None


def _moved(function: OverFunction, first: int) -> OverFunction:
    """A function whose arguments stand behind so many columns."""
    match function:
        case Offset(column, steps, default):
            return Offset(first + column, steps, None if default is None else first + default)
        case Picked(column):
            return replace(function, column=first + column)
        case Framed(call, frame) if call.column is not None:
            moved = replace(call, column=first + call.column)
            return Framed(moved, frame)
    return function
