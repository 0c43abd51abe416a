"""Expressions over columns of several streams: the subset of SQL that is evaluated here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias


class Operator(StrEnum):
    """Binary operators, as SQL writes them."""

    EQUAL = "="
    SAME = "<=>"
    DIFFERENT = "<>"
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    DIVIDE = "/"
    WHOLE_DIVIDE = "div"
    REMAINDER = "%"
    AND = "AND"
    OR = "OR"

    @property
    def is_comparison(self) -> bool:
        return self in _COMPARISONS

    @property
    def is_sum(self) -> bool:
        return self in (Operator.PLUS, Operator.MINUS)

    @property
    def is_logic(self) -> bool:
        return self in (Operator.AND, Operator.OR)


_COMPARISONS = frozenset(
    {
        Operator.EQUAL,
        Operator.SAME,
        Operator.DIFFERENT,
        Operator.LESS,
        Operator.AT_MOST,
        Operator.GREATER,
        Operator.AT_LEAST,
    }
)


@dataclass(frozen=True, slots=True)
class Interval:
    """A length of time as a value."""

    microseconds: int
    in_days: bool = False
    """Whether it was written in days or weeks: a date plus such an interval is a date."""


Value: TypeAlias = bool | int | float | Decimal | str | date | datetime | Interval | None


@dataclass(frozen=True, slots=True)
class Argument:
    """The n-th input column of the expression and, below it, a field of a struct, if any."""

    number: int
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    value: Value


@dataclass(frozen=True, slots=True)
class Binary:
    operator: Operator
    left: Expression
    right: Expression
    zone: str = ""
    """The time zone for days in intervals and for texts read as instants; empty: not known."""


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression


@dataclass(frozen=True, slots=True)
class Negative:
    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression


@dataclass(frozen=True, slots=True)
class Case:
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    written: str = field(default="CASE WHEN", compare=False)
    """How it was written: IF and FILTER are such branches as well."""
    zone: str = ""
    """As in `Apply`: a date among instants is a midnight of this zone."""


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first of some values that is not NULL; those after it are not evaluated."""

    operands: tuple[Expression, ...]
    zone: str = ""
    """As in `Case`."""


@dataclass(frozen=True, slots=True)
class Cast:
    operand: Expression
    kind: Any
    """The Arrow type of its values."""
    zone: str = ""
    """As in `Apply`."""
    safe: bool = False
    """Whether a value that cannot be cast becomes NULL instead of an error."""


@dataclass(frozen=True, slots=True)
class Apply:
    """One of SQL's own functions, named as in `kernels.functions.table`, applied to some values."""

    name: str
    operands: tuple[Expression, ...]
    zone: str = ""
    """The time zone of days and hours; empty: not known, so that nothing may depend on it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A user's function applied to values; it gets a pandas Series for each, or plain values."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Expression, ...]
    returns: Any
    """The Arrow type of its values."""
    by_row: bool = False


@dataclass(frozen=True, slots=True)
class Lambda:
    """x -> …: it sees the columns and, after them, its parameters, counted from the end."""

    parameters: int
    body: Expression


@dataclass(frozen=True, slots=True)
class Iterate:
    """A function that applies lambdas to the items of arrays or maps, such as transform."""

    name: str
    operands: tuple[Expression, ...]
    lambdas: tuple[Lambda, ...]


Expression: TypeAlias = (
    Argument
    | Constant
    | Binary
    | Not
    | Negative
    | IsNull
    | Case
    | Coalesce
    | Cast
    | Apply
    | Call
    | Iterate
)


def arguments_in(expression: object) -> frozenset[int]:
    """The numbers of the columns that an expression reads; those of lambdas are negative."""
    if isinstance(expression, Argument):
        return frozenset([expression.number])
    if isinstance(expression, tuple):
        return frozenset().union(*map(arguments_in, expression))
    if not is_dataclass(expression) or isinstance(expression, type):
        return frozenset()
    parts = (getattr(expression, one.name) for one in fields(expression))
    return frozenset().union(*map(arguments_in, parts))
