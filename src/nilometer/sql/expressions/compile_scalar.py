"""Scalar expressions in Nilometer's own terms: the subset of SQL that is evaluated here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import inf, nan
from typing import Final

from sqlglot import exp

from nilometer.errors import NilometerError, SqlError
from nilometer.kernels.iterate import ITERATIONS
from nilometer.model.expressions import (
    Apply,
    Argument,
    Binary,
    Call,
    Case,
    Cast,
    Coalesce,
    Constant,
    Expression,
    Interval,
    IsNull,
    Iterate,
    Lambda,
    Negative,
    Not,
    Operator,
    Value,
)
from nilometer.model.time import parse_signed_duration
from nilometer.sql.catalog import UserFunction
from nilometer.sql.expressions.call_nodes import read_call
from nilometer.sql.expressions.months import months_of
from nilometer.sql.expressions.scalars import Ref, ResolvedColumn, Scalar
from nilometer.sql.parse.cast_types import read_type
from nilometer.sql.parse.clock_calls import is_clock_call
from nilometer.sql.parse.instants import is_instant, read_instant
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.parse.places import is_placed, place_of

_LEAST: Final = -(1 << 63)
_LARGEST: Final = (1 << 63) - 1
"""The range of BIGINT: larger whole numbers are DECIMALs."""
_MOST_DIGITS: Final = 38
_OPERATORS: Final[dict[type[exp.Expr], Operator]] = {
    exp.EQ: Operator.EQUAL,
    exp.NullSafeEQ: Operator.SAME,
    exp.NEQ: Operator.DIFFERENT,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.AT_MOST,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.AT_LEAST,
    exp.Add: Operator.PLUS,
    exp.Sub: Operator.MINUS,
    exp.Mul: Operator.TIMES,
    exp.Div: Operator.DIVIDE,
    exp.IntDiv: Operator.WHOLE_DIVIDE,
    exp.Mod: Operator.REMAINDER,
    exp.And: Operator.AND,
    exp.Or: Operator.OR,
}

_WORDS: Final[dict[type[exp.Expr], str]] = {
    exp.Bracket: "an element in brackets",
    exp.Dot: "a field of an expression",
    exp.Escape: "ESCAPE",
}
_IN_DAYS: Final = re.compile(r"[^a-z]*(days?|d|weeks?|w)\W*", re.IGNORECASE)
_NOT_FINITE: Final = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}
SAID: Final = "said"
"""The metadata key of a tree for the user's own text."""
ELSEWHERE_HINT: Final = (
    "register a Python function, or compute it in a subquery of one stream: "
    "FROM (SELECT *, f(x) AS y FROM A …) a"
)


_CLOCK_HINT: Final = (
    "an unbounded stream is not evaluated at one instant: write A [RANGE 1 DAY] for the rows of "
    "the last day; files and tables that are read once are"
)


_MONTHS_HINT: Final = (
    "months and years have no fixed length: add them to a time, ts + INTERVAL '1' MONTH; "
    "add_months(d, n) adds a number of them, and date_trunc('month', ts) truncates to them"
)


class NotInSubsetError(SqlError):
    """An expression that only Spark can evaluate."""


@dataclass(frozen=True)
class SubsetCompiler:
    """Compiles expressions over columns; `argument` compiles a column."""

    sql: str
    argument: Callable[[Ref], Argument]
    functions: Mapping[str, UserFunction]
    zone: str = ""
    """The time zone of days and hours; empty: unknown here."""
    variables: tuple[str, ...] = ()
    """Parameters of the enclosing lambdas, in lower case."""

    def compile(self, node: exp.Expr) -> Expression:
        """The expression; raises NotInSubsetError with the part that is not available."""
        converted = self._convert(node)
        return Not(converted) if node.args.get("negate") else converted

    def _convert(self, node: exp.Expr) -> Expression:
        operator = _OPERATORS.get(type(node))
        if operator is not None and isinstance(node, exp.Binary):
            return self._binary(operator, node)
        match node:
            case ResolvedColumn():
                return self.argument(node.ref)
            case exp.Identifier():
                return self._variable(node)
            case exp.Paren():
                return self.compile(node.this)
            case exp.Literal() | exp.Boolean() | exp.Null():
                return Constant(self._constant(node))
            case exp.Interval():
                return Constant(self._interval(node))
            case exp.NullSafeNEQ():
                return Not(self._binary(Operator.SAME, node))
            case exp.Not():
                return Not(self.compile(node.this))
            case exp.Neg() if node.this == exp.Literal.number(-_LEAST):
                return Constant(_LEAST)
            case exp.Neg():
                return Negative(self.compile(node.this))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self.compile(node.this))
            case exp.Between():
                return self._between(node)
            case exp.In() if node.expressions and not node.args.get("query"):
                return self._in(node)
            case exp.Case() | exp.If():
                return self._case(node)
        return self._function(node)

    def _function(self, node: exp.Expr) -> Expression:
        match node:
            case exp.Coalesce():
                operands = map(self.compile, [node.this, *node.expressions])
                return Coalesce(tuple(operands), self.zone)
            case exp.Nullif():
                value = self.compile(node.this)
                same = self._joined(Operator.EQUAL, value, self.compile(node.expression))
                return Case(((same, Constant(None)),), value)
            case exp.Cast() if (number := _not_finite(node)) is not None:
                return Constant(number)
            case exp.Nvl2():
                is_there = Not(IsNull(self.compile(node.this)))
                branches = ((is_there, self._part(node, "true")),)
                return Case(branches, self._part(node, "false"), zone=self.zone)
            case exp.Cast() if (instant := read_instant(node, self.zone)) is not None:
                return Constant(instant)
            case exp.Cast() if is_instant(node):  # that Spark may be able to parse
                raise self._unavailable(node)
            case exp.Cast() if (kind := read_type(node.args["to"])) is not None:
                return Cast(self.compile(node.this), kind, self.zone, bool(node.args.get("safe")))
        return self._call(node)

    def _binary(self, operator: Operator, node: exp.Binary) -> Expression:
        if operator.is_sum:
            for moment, other in ((node.left, node.right), (node.right, node.left)):
                months = months_of(other)
                is_sum = operator is Operator.PLUS
                if months is not None and (is_sum or other is node.right):
                    number = Constant(months if is_sum else -months)
                    return Apply("+ months", (self.compile(moment), number), self.zone)
        return self._joined(operator, self.compile(node.left), self.compile(node.right))

    def _joined(self, operator: Operator, left: Expression, right: Expression) -> Binary:
        is_of_time = operator.is_comparison or operator in (Operator.PLUS, Operator.MINUS)
        return Binary(operator, left, right, self.zone if is_of_time else "")

    def _between(self, node: exp.Between) -> Expression:
        value = self.compile(node.this)
        low, high = self._part(node, "low"), self._part(node, "high")

        def within(first: Expression, last: Expression) -> Expression:
            return Binary(
                Operator.AND,
                self._joined(Operator.AT_LEAST, value, first),
                self._joined(Operator.AT_MOST, value, last),
            )

        if node.args.get("symmetric"):
            return Binary(Operator.OR, within(low, high), within(high, low))
        return within(low, high)

    def _in(self, node: exp.In) -> Expression:
        value = self.compile(node.this)
        tests = [self._joined(Operator.EQUAL, value, self.compile(v)) for v in node.expressions]
        return _any_of(tests)

    def _case(self, node: exp.Case | exp.If) -> Expression:
        if isinstance(node, exp.If):
            branches = [node]
            otherwise = node.args.get("false")
        else:
            branches = node.args.get("ifs") or []
            otherwise = node.args.get("default")
        subject = self.compile(node.this) if isinstance(node, exp.Case) and node.this else None
        return Case(
            tuple((self._test(subject, one.this), self._part(one, "true")) for one in branches),
            Constant(None) if otherwise is None else self.compile(otherwise),
            node.meta.get(SAID) or ("IF" if isinstance(node, exp.If) else "CASE WHEN"),
            self.zone,
        )

    def _part(self, node: exp.Expr, name: str) -> Expression:
        """A part of an expression, which the parser may have left out of a broken one."""
        part = node.args.get(name)
        if part is None:
            raise self._unavailable(node)
        return self.compile(part)

    def _test(self, subject: Expression | None, test: exp.Expr) -> Expression:
        tested = self.compile(test)
        return tested if subject is None else self._joined(Operator.EQUAL, subject, tested)

    def _call(self, node: exp.Expr) -> Expression:
        function = self.functions.get(node.name.lower())
        if function is not None and isinstance(node, exp.Anonymous):
            own = tuple(self.compile(argument) for argument in node.expressions)
            return Call(function.name, function.function, own, function.returns, function.by_row)
        call = read_call(node)
        if call is None:
            raise self._unavailable(node)
        name, operands = call
        if name in ITERATIONS:
            return self._iterate(name, operands)
        return Apply(name, tuple(map(self.compile, operands)), self.zone)

    def _iterate(self, name: str, operands: Sequence[exp.Expr]) -> Expression:
        """transform(a, x -> …) and the like."""
        values = tuple(self.compile(one) for one in operands if not isinstance(one, exp.Lambda))
        lambdas = tuple(map(self._lambda, (one for one in operands if isinstance(one, exp.Lambda))))
        return Iterate(name, values, lambdas)

    def _lambda(self, node: exp.Lambda) -> Lambda:
        names = [one.name.lower() for one in node.expressions]
        inner = replace(self, variables=(*self.variables, *names))
        return Lambda(len(names), inner.compile(node.this))

    def _variable(self, node: exp.Identifier) -> Expression:
        """A parameter of a lambda; of two with the same name the inner one."""
        known = len(self.variables)
        for place in range(known - 1, -1, -1):
            if self.variables[place] == node.name.lower():
                return Argument(place - known)
        raise self._unavailable(node)

    def _constant(self, node: exp.Expr) -> Value:
        match node:
            case exp.Null():
                return None
            case exp.Boolean():
                return bool(node.this)
            case exp.Literal() if node.is_string:
                return node.name
        text = node.name
        try:
            if "e" in text.lower():
                return float(text)
            number = Decimal(text) if "." in text else int(text)
        except (ValueError, ArithmeticError):
            raise self._unavailable(node) from None
        if isinstance(number, int) and not _LEAST <= number <= _LARGEST:
            number = Decimal(number)
        if isinstance(number, Decimal) and len(number.as_tuple().digits) > _MOST_DIGITS:
            raise self._unavailable(node)
        return number

    def _interval(self, node: exp.Interval) -> Interval:
        try:
            unit = node.unit.name if node.unit else ""
            text = f"{node.this.name} {unit}"
            return Interval(parse_signed_duration(text), _IN_DAYS.fullmatch(text) is not None)
        except (NilometerError, AttributeError):
            raise self._unavailable(node) from None

    def _unavailable(self, node: exp.Expr) -> NotInSubsetError:
        hint = f"see docs/functions.md for supported functions; {ELSEWHERE_HINT}"
        return NotInSubsetError(
            f"{describe(node)} is not available here",
            place=place_of(node, self.sql),
            hint=_hint_for(node) or hint,
        )


def _hint_for(node: exp.Expr) -> str | None:
    """What to write for something that is often typed."""
    if is_clock_call(node):
        return _CLOCK_HINT
    return _MONTHS_HINT if months_of(node) is not None else None


def _any_of(tests: Sequence[Expression]) -> Expression:
    """The tests joined by OR, as a tree of minimal depth."""
    if len(tests) == 1:
        return tests[0]
    middle = len(tests) // 2
    return Binary(Operator.OR, _any_of(tests[:middle]), _any_of(tests[middle:]))


def compile_over(
    scalar: Scalar,
    columns: tuple[Ref, ...],
    functions: Mapping[str, UserFunction],
    zone: str = "",
) -> Expression:
    """The expression with the given columns as its arguments."""
    numbers = {column: number for number, column in enumerate(columns)}
    subset = SubsetCompiler(scalar.place.sql, lambda ref: Argument(numbers[ref]), functions, zone)
    return subset.compile(scalar.tree)


def describe(node: exp.Expr) -> str:
    """What a node is, in the words of the statement."""
    if isinstance(node, exp.Cast):
        return f"a cast to {node.to.sql('spark')}"
    if isinstance(node, exp.Func) and not (isinstance(node, exp.Binary) and not is_placed(node)):
        return f"the function {written(node).lower()}"
    return _WORDS.get(type(node)) or node.key.upper()


def _not_finite(cast: exp.Cast) -> float | None:
    """CAST('NaN' AS DOUBLE), or an infinity; None if it is another cast."""
    text = cast.this
    is_double = isinstance(cast.to, exp.DataType) and cast.to.this is exp.DType.DOUBLE
    if not is_double or not isinstance(text, exp.Literal) or not text.is_string:
        return None
    return _NOT_FINITE.get(text.name)
