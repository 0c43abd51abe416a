"""Parameters of statements: `:name` becomes a typed constant of the tree, never text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from sqlglot import exp

from nilometer.errors import DurationError, InputError, Place, SqlSyntaxError
from nilometer.model.names import nearest
from nilometer.model.time import parse_signed_duration
from nilometer.sql.parse.places import place_of

_MOST_DIGITS: Final = 38
_TYPES: Final = "None, bool, int, float, Decimal, str, bytes, date, datetime or timedelta"
_LENGTHS: Final = (
    "give a timedelta or a text such as '5 minutes', or a number before a unit: :n MINUTES"
)
_NUMBERED: Final = (exp.Group, exp.Ordered)
"""Clauses in which a whole number would be the position of a column."""


@dataclass
class Parameters:
    """Values by name, and which of them have been used."""

    values: Mapping[str, object] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    may_be_unused: bool = False

    def bind(self, tree: exp.Expr, sql: str) -> exp.Expr:
        """The tree with constants for its parameters; every one must have a value."""
        for node in list(tree.find_all(exp.Placeholder)):
            constant = self._constant(node, sql)
            for part in constant.walk():
                part.meta.update(node.meta)
            if isinstance(node.parent, _NUMBERED):
                constant = exp.Paren(this=constant)
            if node is tree:
                return constant
            node.replace(constant)
        return tree

    def require_used(self) -> None:
        """Refuse values that the statement does not use."""
        for name in self.values:
            if name not in self.used and not self.may_be_unused:
                names = ", ".join(f":{one}" for one in sorted(self.used)) or "none"
                raise InputError(
                    f"the statement has no parameter :{name}",
                    detail=f"it has {names}",
                    hint=nearest(name, sorted(self.used)) or f"leave {name} out",
                )

    def length(self, name: str, unit: str, place: Place) -> int:
        """The length of time given by a parameter and the unit after it, if any."""
        value = self._value(name, place)
        if isinstance(value, timedelta) and not unit:
            return value // timedelta(microseconds=1)
        is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        if is_number if unit else isinstance(value, str):
            try:
                return parse_signed_duration(f"{value} {unit}".strip())
            except DurationError as error:
                raise SqlSyntaxError(
                    error.message, place=place, detail=f"got {value!r:.60}", hint=_LENGTHS
                ) from None
        raise SqlSyntaxError(
            f"the parameter :{name} is not a length of time",
            place=place,
            detail=f"got {value!r:.60}",
            hint=_LENGTHS,
        )

    def count(self, name: str, place: Place) -> int:
        """The number of rows given by a parameter."""
        value = self._value(name, place)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        raise SqlSyntaxError(
            f"the parameter :{name} is not a number of rows",
            place=place,
            detail=f"got {value!r:.60}",
            hint=f"give a whole number: {name}=10",
        )

    def _constant(self, node: exp.Placeholder, sql: str) -> exp.Expr:
        place = place_of(node, sql)
        name = node.name
        if not name.isidentifier() or isinstance(node.parent, exp.Table) or node.arg_key == "alias":
            raise SqlSyntaxError(
                "a parameter must have a name and stand for a value",
                place=place,
                hint="write WHERE k = :k, and give k=3",
            )
        value = self._value(name, place)
        try:
            return constant_of(value)
        except InputError as error:
            raise SqlSyntaxError(
                f"the parameter :{name} {error.message}",
                place=place,
                detail=error.detail,
                hint=error.hint,
            ) from None

    def _value(self, name: str, place: Place) -> object:
        if name not in self.values:
            known = ", ".join(self.values) or "no values"
            raise SqlSyntaxError(
                f"parameter :{name} has no value",
                place=place,
                detail=f"got {known}",
                hint=nearest(name, list(self.values)) or f"give it: {name}=…",
            )
        self.used.add(name)
        return self.values[name]


def constant_of(value: object) -> exp.Expr:
    """A value as a constant of its type; an InputError if there is no such constant.

    >>> constant_of(3).sql("spark"), constant_of(date(2026, 1, 31)).sql("spark")
    ('3', "CAST('2026-01-31' AS DATE)")
    """
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return _whole(value)
        case float():
            return _double(value)
        case Decimal():
            return _decimal(value)
        case str():
            return _text(value)
        case bytes():
            return exp.HexString(this=value.hex().upper())
        case datetime():
            return _instant(value)
        case date():
            return exp.cast(exp.Literal.string(f"{value:%Y-%m-%d}".zfill(10)), exp.DType.DATE)
        case timedelta():
            micros = str(value // timedelta(microseconds=1))
            unit = exp.Var(this="MICROSECOND")
            return exp.Interval(this=exp.Literal.string(micros), unit=unit)
    raise InputError(
        "cannot be of this type", detail=f"got {type(value).__name__}", hint=f"give {_TYPES}"
    )


def _number(text: str, *, negative: bool) -> exp.Expr:
    literal = exp.Literal.number(text)
    return exp.Neg(this=literal) if negative else literal


def _whole(value: int) -> exp.Expr:
    if not -(2**63) < value < 2**63:
        raise InputError(
            "is too large", detail=f"got {value}", hint="the largest whole number is 2^63 - 1"
        )
    return _number(str(abs(value)), negative=value < 0)


def _double(value: float) -> exp.Expr:
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
        return exp.cast(exp.Literal.string(name), exp.DType.DOUBLE)
    text = repr(abs(value))
    exact = text if "e" in text else f"{text}e0"
    return _number(exact, negative=math.copysign(1.0, value) < 0)


def _decimal(value: Decimal) -> exp.Expr:
    if not value.is_finite():
        raise InputError("is not a number", detail=f"got {value}", hint="give a float, or None")
    text = f"{abs(value):f}"
    whole, _, fraction = text.partition(".")
    scale, digits = len(fraction), len((whole.lstrip("0") + fraction) or "0")
    if max(digits, scale) > _MOST_DIGITS:
        raise InputError(
            f"has more than {_MOST_DIGITS} digits", detail=f"got {value}", hint="round it first"
        )
    literal = _number(text, negative=value.is_signed() and bool(value))
    kind = exp.DataType.build(f"DECIMAL({max(digits, scale, 1)}, {scale})", dialect="spark")
    return exp.cast(literal, kind)


def _text(value: str) -> exp.Expr:
    if "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
        raise InputError(
            "is not valid text",
            detail=f"got {value!r:.60}",
            hint="leave out NUL and lone surrogates",
        )
    return exp.Literal.string(value)


def _instant(value: datetime) -> exp.Expr:
    zone = ""
    if value.tzinfo is not None:
        try:
            value, zone = value.astimezone(UTC), "+00:00"
        except OverflowError:
            raise InputError("is not a time in UTC", detail=f"got {value}") from None
    day = f"{value.year:04}-{value.month:02}-{value.day:02}"
    text = f"{day} {value:%H:%M:%S}.{value.microsecond:06}{zone}"
    return exp.cast(exp.Literal.string(text), exp.DType.TIMESTAMPTZ)


def merged(mapping: Mapping[str, Any] | None, named: Mapping[str, Any]) -> Parameters:
    """Values given as a mapping, merged with values given by keyword."""
    both = {**(mapping or {}), **named}
    for name in both:
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(
                "a parameter name may only contain letters, digits and underscores",
                detail=f"got {name!r}",
            )
        if mapping is not None and name in mapping and name in named:
            raise InputError(f"the parameter :{name} is given twice")
    return Parameters(both)
