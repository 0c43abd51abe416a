"""OVER of rows that are complete at once, bound: the inputs and functions of its windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import DurationError, PredicateError, SqlError, SqlTypeError
from nilometer.kernels.aggregate_types import aggregate_type
from nilometer.kernels.expression_types import common_type, is_number, type_name
from nilometer.model.time import parse_duration
from nilometer.operators.change_specs import AggregateCall
from nilometer.operators.table_over import (
    Nth,
    OrderTerm,
    Ranked,
    Shifted,
    TableFrame,
    TableFunction,
    TableOverSpec,
    TableWindow,
)
from nilometer.sql.bind.windowed.bind_over import FRAMED, PICKED, function_text
from nilometer.sql.bind.windowed.read_count import read_count, read_nth
from nilometer.sql.bind.windowed.refusals import require_comparable
from nilometer.sql.expressions.aggregate_calls import read_aggregate
from nilometer.sql.parse.over_calls import TableOverCall
from nilometer.sql.parse.places import place_of, text_of
from nilometer.sql.plan.changes_plan import Node, TableOver, names_of

_RANKED: Final = {
    "rownumber": "ROW_NUMBER",
    "rank": "RANK",
    "denserank": "DENSE_RANK",
    "percentrank": "PERCENT_RANK",
    "cumedist": "CUME_DIST",
    "ntile": "NTILE",
}
_REALS: Final = ("PERCENT_RANK", "CUME_DIST")
_IGNORING: Final = (*PICKED, exp.Lag, exp.Lead)
"""Functions that can ignore NULLs."""
_MOST: Final = 18
"""The digits of a number that bounds a frame by values."""
_RANGE_HINT: Final = (
    "write ORDER BY v RANGE BETWEEN 0.5 PRECEDING AND 0.5 FOLLOWING, "
    "or ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
)


@dataclass
class TableOverBinder:
    """Reads the windows of a call; their inputs become columns of the rows below."""

    sql: str
    call: TableOverCall
    asked: list[exp.Expr] = field(default_factory=list)

    def windows(self, first: int) -> tuple[TableWindow, ...]:
        """The windows, with their columns shifted by this many."""
        return tuple(self._window(one, first) for one in self.call.expressions)

    def node(self, below: Node, passed: int, windows: tuple[TableWindow, ...]) -> TableOver:
        """The node, given the rows followed by all inputs of the windows."""
        kinds = [one.kind for one in below.columns]
        for tree, one in zip(self.asked, below.columns[passed:], strict=True):
            require_comparable(one.kind, place_of(tree, self.sql), "OVER")
        for one in below.columns[:passed]:
            require_comparable(one.kind, place_of(self.call, self.sql), "rows that OVER orders")
        trees: list[exp.Window] = self.call.expressions
        results = [
            self._type(window.function, kinds, tree)
            for window, tree in zip(windows, trees, strict=True)
        ]
        for window, tree in zip(windows, trees, strict=True):
            self._require_lengths(window, kinds, tree)
        texts = tuple(text_of(one, self.sql) for one in trees)
        names = (*names_of(below.columns[:passed]), *(tree.meta["name"] for tree in trees))
        spec = TableOverSpec(windows, passed, (*kinds[:passed], *results))
        return TableOver(spec, (below,), names, texts)

    def _window(self, window: exp.Window, first: int) -> TableWindow:
        partition = [self._place(one, first) for one in window.args.get("partition_by") or ()]
        order = window.args.get("order")
        terms = [] if order is None else [self._term(one, first) for one in order.expressions]
        function = self._function(window, first)
        needs_order = isinstance(function, Shifted | Ranked)
        if needs_order and not terms:
            raise SqlError(
                f"{text_of(window.this, self.sql)} needs an ORDER BY",
                place=place_of(window, self.sql),
                hint="write OVER (PARTITION BY k ORDER BY v DESC)",
            )
        return TableWindow(function, tuple(partition), tuple(terms), self._frame(window))

    def _place(self, tree: exp.Expr, first: int) -> int:
        if tree not in self.asked:
            self.asked.append(tree)
        return first + self.asked.index(tree)

    def _term(self, term: exp.Ordered, first: int) -> OrderTerm:
        place, descending = self._place(term.this, first), bool(term.args.get("desc"))
        nulls_first = term.args.get("nulls_first")
        nulls_last = descending if nulls_first is None else not nulls_first
        return OrderTerm(place, descending, nulls_last)

    def _function(self, window: exp.Window, first: int) -> TableFunction:
        inner, ignores = window.this, False
        if isinstance(inner, exp.IgnoreNulls) and isinstance(inner.this, _IGNORING):
            inner, ignores = inner.this, True
        if inner.key in _RANKED:
            return self._ranked(inner)
        match inner:
            case exp.Lag() | exp.Lead():
                offset = inner.args.get("offset")
                steps = 1 if offset is None else read_count(offset, self.sql)
                default = inner.args.get("default")
                other = None if default is None else self._place(default, first)
                back = steps if isinstance(inner, exp.Lag) else -steps
                column = self._place(inner.this, first)
                return Shifted(column, back, other, ignores and steps > 0)
            case exp.NthValue():
                number = read_nth(inner, self.sql)
                return Nth(self._place(inner.this, first), number, ignores)
            case exp.FirstValue() | exp.First() | exp.AnyValue():
                return Nth(self._place(inner.this, first), 1, ignores)
            case exp.LastValue() | exp.Last():
                return Nth(self._place(inner.this, first), -1, ignores)
        return self._aggregate(inner, window, first)

    def _ranked(self, inner: exp.Expr) -> Ranked:
        kind = _RANKED[inner.key]
        if kind != "NTILE":
            return Ranked(kind)
        parts = 1 if inner.this is None else read_count(inner.this, self.sql)
        if not parts:
            raise SqlError("NTILE needs at least one bucket", place=place_of(inner, self.sql))
        return Ranked(kind, parts)

    def _aggregate(self, inner: exp.Expr, window: exp.Window, first: int) -> AggregateCall:
        called = inner.this if isinstance(inner, exp.Filter) else inner
        if type(called) not in FRAMED:
            raise SqlError(
                f"{function_text(inner, self.sql)} is not supported with OVER",
                place=place_of(window, self.sql),
                hint="compute it in a subquery with GROUP BY, and join with that",
            )
        read = read_aggregate(inner, self.sql)
        column = None if read.argument is None else self._place(read.argument, first)
        return read.call(column)

    def _frame(self, window: exp.Window) -> TableFrame:
        """The frame as written; else all rows, or with an order those until the last peer."""
        spec = window.args.get("spec")
        if spec is None:
            return TableFrame(last=0 if window.args.get("order") else None)
        by_rows = spec.args.get("kind") == "ROWS"
        first = self._bound(spec, "start", window, by_rows)
        last = self._bound(spec, "end", window, by_rows) if spec.args.get("end") else 0
        return TableFrame(first, last, by_rows)

    def _bound(
        self, spec: exp.Expr, name: str, window: exp.Window, by_rows: bool
    ) -> int | float | None:
        bound, side = spec.args[name], spec.args.get(f"{name}_side")
        if bound == "CURRENT ROW":
            return 0
        if bound == "UNBOUNDED":
            return None
        length = read_count(bound, self.sql) if by_rows else self._length(bound, window)
        return -length if side == "PRECEDING" else length

    def _length(self, bound: exp.Expr, window: exp.Window) -> int | float:
        """By how much values may be smaller or larger: a number, or a length of time."""
        if isinstance(bound, exp.Literal) and not bound.is_string and len(bound.this) <= _MOST:
            return int(bound.this) if bound.this.isdecimal() else float(bound.this)
        try:
            if isinstance(bound, exp.Interval):
                unit = bound.unit.name if bound.unit is not None else ""
                return parse_duration(f"{bound.this.name} {unit}")
        except (DurationError, AttributeError):
            pass
        raise SqlError(
            "RANGE needs a number or a length of time",
            place=place_of(window, self.sql),
            hint=_RANGE_HINT,
        )

    def _require_lengths(
        self, window: TableWindow, kinds: list[pa.DataType], tree: exp.Window
    ) -> None:
        """Refuse a frame by values unless rows are ordered by a single number or time."""
        if not window.frame.has_lengths:
            return
        spec = tree.args["spec"]
        by_time = any(isinstance(spec.args.get(one), exp.Interval) for one in ("start", "end"))
        by_number = any(isinstance(spec.args.get(one), exp.Literal) for one in ("start", "end"))
        kind = kinds[window.order[0].column] if len(window.order) == 1 else None
        is_time = kind is not None and (pat.is_timestamp(kind) or pat.is_date(kind))
        is_decimal = kind is not None and pat.is_decimal(kind)
        fits = is_time if by_time else kind is not None and is_number(kind) and not is_decimal
        if not fits or (by_time and by_number):
            raise SqlTypeError(
                "RANGE needs exactly one ORDER BY column, a number or a time",
                place=place_of(tree, self.sql),
                detail=None if kind is None else f"they are ordered by {type_name(kind)}",
                hint=_RANGE_HINT,
            )

    def _type(
        self, function: TableFunction, kinds: list[pa.DataType], window: exp.Window
    ) -> pa.DataType:
        place = place_of(window, self.sql)
        match function:
            case Ranked(kind):
                return pa.float64() if kind in _REALS else pa.int32()
            case Nth(column):
                return kinds[column]
            case Shifted(column, _, default):
                other = kinds[column if default is None else default]
                common = common_type(kinds[column], other)
                if common is None:
                    raise SqlTypeError(
                        "the default value has a different type than the column",
                        place=place,
                        detail=f"{type_name(kinds[column])} and {type_name(other)}",
                    )
                return common
            case AggregateCall():
                try:
                    return aggregate_type(function, kinds, text_of(window.this, self.sql))
                except PredicateError as error:
                    raise SqlTypeError.at(place, error) from None
