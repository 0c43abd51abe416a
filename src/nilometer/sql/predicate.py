"""Join predicates written in SQL: split into conditions, resolved against the streams' columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from nilometer.errors import NilometerError, PredicateError
from nilometer.model.expressions import (
    Absolute,
    Argument,
    Binary,
    Case,
    Constant,
    Expression,
    Interval,
    IsNull,
    Like,
    Negative,
    Not,
    Operator,
)
from nilometer.model.names import nearest
from nilometer.model.time import parse_signed_duration

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
_HINT: Final = (
    "compute it as a column of one stream before the join, or use nm.predicate(function, …)"
)


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of a stream, as its DataFrame spells it, and a field inside it, if any."""

    stream: str
    column: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Condition:
    """One of the conditions that a predicate joins by AND."""

    sql: str
    columns: tuple[ColumnRef, ...]
    tree: exp.Expr

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(column.stream for column in self.columns)

    def compile(self) -> Expression:
        """The condition over its columns, which are its arguments, in Nilometer's own terms."""
        numbers = {column: number for number, column in enumerate(self.columns)}
        return _Compiler(lambda c: Argument(numbers[c], c.fields)).convert(self.tree)


@dataclass(frozen=True)
class Scope:
    """The streams of a join and the names of their columns."""

    columns: Mapping[str, Sequence[str]]

    def resolve(self, column: exp.Column | exp.Dot) -> ColumnRef:
        """Whose column this is."""
        parts = [part.name for part in column.parts]
        stream = next((s for s in self.columns if s.lower() == parts[0].lower()), None)
        if stream is not None and len(parts) > 1:
            return ColumnRef(stream, self._column(stream, parts[1]), tuple(parts[2:]))
        owners = [s for s, names in self.columns.items() if _find(parts[0], names)]
        if len(owners) == 1:
            return ColumnRef(owners[0], self._column(owners[0], parts[0]), tuple(parts[1:]))
        if owners:
            raise PredicateError(
                f"column {parts[0]} is ambiguous",
                detail=f"the streams {', '.join(owners)} have one each",
                hint=f"write {owners[0]}.{parts[0]}",
            )
        known = [*self.columns, *(name for names in self.columns.values() for name in names)]
        raise PredicateError(
            f"there is no column {'.'.join(parts)}",
            detail=f"the streams are {', '.join(self.columns)}",
            hint=nearest(parts[0], known),
        )

    def _column(self, stream: str, name: str) -> str:
        found = _find(name, self.columns[stream])
        if found is None:
            raise PredicateError(
                f"stream {stream} has no column {name}",
                detail=f"it has {', '.join(self.columns[stream])}",
                hint=nearest(name, self.columns[stream]),
            )
        return found


def read_predicate(sql: str, scope: Scope) -> list[Condition]:
    """The conditions of a predicate, every column resolved."""
    return [_condition(part, scope) for part in _conjuncts(_parse(sql))]


def read_column(text: str, scope: Scope) -> ColumnRef:
    """The column that a name such as `A.v` means."""
    tree = _parse(text)
    if not isinstance(tree, exp.Column | exp.Dot):
        raise PredicateError(f"this is not the name of a column: {text}", hint="write A.v")
    ref = scope.resolve(tree)
    if ref.fields:
        raise PredicateError(
            f"a function is given whole columns, not fields of them: {text}",
            hint=f"pass {ref.stream}.{ref.column} and take the field in the function",
        )
    return ref


def _parse(sql: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(sql, read="spark")
    except SqlglotError as error:
        raise PredicateError(
            "cannot read the predicate", detail=_where(error), hint=f"in: {sql}"
        ) from None


def _conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        yield from _conjuncts(tree.left)
        yield from _conjuncts(tree.right)
    else:
        yield tree


def _condition(tree: exp.Expr, scope: Scope) -> Condition:
    columns: list[ColumnRef] = []

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Subquery | exp.Query):
            raise PredicateError("a predicate cannot hold a subquery")
        if isinstance(node, exp.Dot) or (isinstance(node, exp.Column) and node.parts):
            ref = scope.resolve(node)
            if ref not in columns:
                columns.append(ref)
            spelled = exp.Dot.build([exp.to_identifier(p, quoted=True) for p in _path(ref)])
            spelled.meta["column"] = ref
            return spelled
        return node

    resolved = tree.transform(replace)
    return Condition(resolved.sql(dialect="spark"), tuple(columns), resolved)


def _path(ref: ColumnRef) -> tuple[str, ...]:
    return (ref.stream, ref.column, *ref.fields)


class _Compiler:
    """Turns a resolved SQL tree into an expression, or says what is not available."""

    def __init__(self, argument: Callable[[ColumnRef], Argument]) -> None:
        self._argument = argument

    def convert(self, node: exp.Expr) -> Expression:
        converted = self._convert(node)
        return Not(converted) if node.args.get("negate") else converted

    def _convert(self, node: exp.Expr) -> Expression:
        ref = node.meta.get("column")
        if ref is not None:
            return self._argument(ref)
        operator = _OPERATORS.get(type(node))
        if operator is not None and isinstance(node, exp.Binary):
            return Binary(operator, self.convert(node.left), self.convert(node.right))
        match node:
            case exp.Paren():
                return self.convert(node.this)
            case exp.Literal() | exp.Boolean() | exp.Null() | exp.Interval():
                return Constant(_value(node))
            case exp.NullSafeNEQ():
                same = Binary(Operator.SAME, self.convert(node.left), self.convert(node.right))
                return Not(same)
            case exp.Not():
                return Not(self.convert(node.this))
            case exp.Neg():
                return Negative(self.convert(node.this))
            case exp.Abs():
                return Absolute(self.convert(node.this))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self.convert(node.this))
            case exp.Between():
                return self._between(node)
            case exp.In() if node.expressions:
                return self._in(node)
            case exp.Like() if isinstance(node.expression, exp.Literal):
                return Like(self.convert(node.this), node.expression.name)
            case exp.Case() | exp.If():
                return self._case(node)
        raise PredicateError(
            f"{_what(node)} is not available across several streams",
            detail=f"in: {node.sql(dialect='spark')}",
            hint=_HINT,
        )

    def _between(self, node: exp.Between) -> Expression:
        value = self.convert(node.this)
        low, high = self.convert(node.args["low"]), self.convert(node.args["high"])
        return Binary(
            Operator.AND,
            Binary(Operator.AT_LEAST, value, low),
            Binary(Operator.AT_MOST, value, high),
        )

    def _in(self, node: exp.In) -> Expression:
        value = self.convert(node.this)
        tests = [Binary(Operator.EQUAL, value, self.convert(v)) for v in node.expressions]
        result: Expression = tests[0]
        for test in tests[1:]:
            result = Binary(Operator.OR, result, test)
        return result

    def _case(self, node: exp.Case | exp.If) -> Expression:
        if isinstance(node, exp.If):
            branches = [(node.this, node.args["true"])]
            otherwise = node.args.get("false")
        else:
            branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
            otherwise = node.args.get("default")
        subject = self.convert(node.this) if isinstance(node, exp.Case) and node.this else None
        return Case(
            tuple(
                (
                    self.convert(test)
                    if subject is None
                    else Binary(Operator.EQUAL, subject, self.convert(test)),
                    self.convert(value),
                )
                for test, value in branches
            ),
            Constant(None) if otherwise is None else self.convert(otherwise),
        )


def _value(node: exp.Expr) -> bool | int | float | Decimal | str | Interval | None:
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Interval():
            return _interval(node)
        case exp.Literal() if node.is_string:
            return node.name
    text = node.name
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text else int(text)


def _interval(node: exp.Interval) -> Interval:
    try:
        return Interval(
            parse_signed_duration(f"{node.this.name} {node.unit.name if node.unit else ''}")
        )
    except (NilometerError, AttributeError):
        raise PredicateError(
            "cannot read an interval",
            detail=f"in: {node.sql(dialect='spark')}",
            hint="write INTERVAL '5' SECOND; months and years have no fixed length",
        ) from None


def _find(name: str, names: Sequence[str]) -> str | None:
    if name in names:
        return name
    return next((known for known in names if known.lower() == name.lower()), None)


def _what(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name}"
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}"
    return node.key.upper()


def _where(error: SqlglotError) -> str:
    found = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    text = str(found.get("description") or "it is not an SQL expression").rstrip(".")
    if "Required keyword" in text:
        text = "something is missing"
    return f"{text} at line {found.get('line', 1)}, column {found.get('col', 1)}"
