"""The arguments of a table function, by kind: keys, columns, options, static tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import SqlError, SqlTypeError
from nilometer.kernels.expression_types import type_name
from nilometer.mining.registry import FunctionKind, kind_of
from nilometer.mining.table_function import OptionArgument, OptionKind, TableFunction, Takes
from nilometer.model.names import nearest
from nilometer.model.time import format_duration
from nilometer.sql.parse.call_parser import Length, NamedArgument, TableCall
from nilometer.sql.parse.places import place_of, text_of

BY: Final = "by"
EVERY: Final = "every"


@dataclass(frozen=True)
class CallArguments:
    """The arguments of a table function, by name."""

    keys: tuple[exp.Expr, ...] = ()
    columns: Mapping[str, exp.Expr] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, exp.Expr] = field(default_factory=dict)
    every: int | None = None
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class ArgumentReader:
    """Reads the arguments of one call."""

    call: TableCall
    function: TableFunction
    sql: str

    def read(self) -> CallArguments:
        """All arguments, checked as far as they can be without the input."""
        arguments = self._by_name()
        columns = {
            one.name: arguments.pop(one.name) for one in self._columns if one.name in arguments
        }
        tables = {
            one.name: arguments.pop(one.name) for one in self._tables if one.name in arguments
        }
        for name, tree in tables.items():
            self._require_query(name, tree)
        for name, tree in columns.items():
            self._require_expression(name, tree)
        options = {one.name: self._option(one, arguments) for one in self.function.options}
        self._require_all({**columns, **tables}, options)
        every = self._every(arguments)
        return CallArguments(
            self._keys(arguments), columns, options, tables, every, tuple(self._texts())
        )

    @property
    def _columns(self) -> Sequence[Any]:
        return self.function.columns

    @property
    def _tables(self) -> Sequence[Any]:
        return self.function.tables

    @property
    def _answers(self) -> bool:
        return kind_of(self.function.name) is FunctionKind.ANSWERS

    def _by_name(self) -> dict[str, exp.Expr]:
        """The arguments by name; raises an error if one is unknown or given twice."""
        known = [one.name for one in (*self._columns, *self.function.options, *self._tables)]
        known += [] if kind_of(self.function.name) is FunctionKind.ROWS else [BY]
        known += [EVERY] if self._answers else []
        arguments: dict[str, exp.Expr] = {}
        for one in self.call.expressions:
            assert isinstance(one, NamedArgument)
            if one.this not in known:
                raise SqlError(
                    f"{self.function.name} has no argument {one.this}",
                    place=place_of(one, self.sql),
                    detail=f"it has {', '.join(known)}",
                    hint=nearest(one.this, known),
                )
            if one.this in arguments:
                raise SqlError(f"{one.this} is given twice", place=place_of(one, self.sql))
            arguments[one.this] = one.expression
        return arguments

    def _keys(self, arguments: Mapping[str, exp.Expr]) -> tuple[exp.Expr, ...]:
        tree = arguments.get(BY)
        if tree is None:
            return ()
        parts = tree.expressions if isinstance(tree, exp.Tuple) else [tree]
        for part in parts:
            self._require_expression(BY, part)
        return tuple(part.this if isinstance(part, exp.Paren) else part for part in parts)

    def _every(self, arguments: Mapping[str, exp.Expr]) -> int | None:
        tree = arguments.get(EVERY)
        if tree is None:
            return None
        if not isinstance(tree, Length) or tree.this <= 0:
            raise SqlError(
                "every must be a positive length of time",
                place=place_of(tree, self.sql),
                hint="write every => 5 SECONDS",
            )
        return int(tree.this)

    def _require_all(self, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        missing = [one for one in (*self._columns, *self._tables) if one.required]
        missing = [one for one in missing if one.name not in arguments]
        missing += [o for o in self.function.options if o.required and options[o.name] is None]
        for one in missing:
            raise SqlError(
                f"{self.function.name} needs {one.name}: {one.about}",
                place=place_of(self.call, self.sql),
                hint=f"write {self.function.name}(…, {one.name} => …)",
            )

    def _require_query(self, name: str, tree: exp.Expr) -> None:
        if not isinstance(tree, exp.Query):
            raise SqlError(
                f"{name} must be a query over static tables, in parentheses",
                place=place_of(tree, self.sql),
                hint=f"write {name} => (SELECT … FROM …)",
            )

    def _require_expression(self, name: str, tree: exp.Expr) -> None:
        if isinstance(tree, exp.Query | Length | exp.Tuple) or tree.is_star:
            raise SqlError(
                f"{name} must be a column of the input, or an expression over its columns",
                place=place_of(tree, self.sql),
                detail=f"got {text_of(tree, self.sql)}",
            )

    def _option(self, option: OptionArgument, arguments: Mapping[str, exp.Expr]) -> Any:
        tree = arguments.get(option.name)
        if tree is None:
            return option.default
        value = constant_of(tree, option.kind)
        if value is None:
            raise SqlTypeError(
                f"{option.name} must be {option.kind.value}",
                place=place_of(tree, self.sql),
                detail=f"got {text_of(tree, self.sql)}",
            )
        self._require_allowed(option, value, tree)
        return value

    def _require_allowed(self, option: OptionArgument, value: Any, tree: exp.Expr) -> None:
        if option.choices and value not in option.choices:
            raise SqlError(
                f"{option.name} must be one of {', '.join(option.choices)}",
                place=place_of(tree, self.sql),
                detail=f"got {value}",
                hint=nearest(str(value), list(option.choices)),
            )
        if not isinstance(value, int | float):
            return
        allowed = None
        if option.minimum is not None and value < option.minimum:
            allowed = f"at least {_shown(option.minimum, option.kind)}"
        elif option.maximum is not None and value > option.maximum:
            allowed = f"at most {_shown(option.maximum, option.kind)}"
        if allowed is not None:
            raise SqlError(
                f"{option.name} must be {allowed}",
                place=place_of(tree, self.sql),
                detail=f"got {text_of(tree, self.sql)}",
            )

    def _texts(self) -> list[str]:
        return [text_of(one, self.sql) for one in self.call.expressions]


def constant_of(tree: exp.Expr, kind: OptionKind) -> Any:
    """The value of a constant of this kind; None if it is not one."""
    match kind:
        case OptionKind.DURATION:
            return int(tree.this) if isinstance(tree, Length) else None
        case OptionKind.TEXT:
            is_text = isinstance(tree, exp.Literal) and tree.is_string
            return str(tree.this) if is_text else None
        case OptionKind.NUMBERS:
            if not isinstance(tree, exp.Array):
                return None
            values = [_number(one) for one in tree.expressions]
            return None if None in values or not values else values
    value = _number(tree)
    if value is None or kind is OptionKind.NUMBER:
        return value
    return int(value) if value == int(value) else None


def _number(tree: exp.Expr) -> float | None:
    if isinstance(tree, exp.Neg):
        inner = _number(tree.this)
        return None if inner is None else -inner
    if isinstance(tree, exp.Cast):  # 1e3 and 5L are written with their types
        return _number(tree.this)
    if not isinstance(tree, exp.Literal) or tree.is_string:
        return None
    value = float(tree.this)
    return value if math.isfinite(value) else None


def _shown(bound: float, kind: OptionKind) -> str:
    return format_duration(int(bound)) if kind is OptionKind.DURATION else f"{bound:g}"


def fits(kind: pa.DataType, takes: Takes) -> bool:
    """Whether a column of a type is accepted."""
    match takes:
        case Takes.NUMBER:
            return _is_number(kind)
        case Takes.NUMBERS:
            return (pat.is_list(kind) or pat.is_large_list(kind)) and _is_number(kind.value_type)
        case Takes.PLAIN:
            return not (pat.is_nested(kind) or pat.is_binary(kind) or pat.is_large_binary(kind))
    return not pat.is_map(kind)


def require_type(name: str, kind: pa.DataType, takes: Takes, tree: exp.Expr, sql: str) -> None:
    """Refuse a column of a type that a function cannot use."""
    if not fits(kind, takes):
        raise SqlTypeError(
            f"{name} must be {takes.value}",
            place=place_of(tree, sql),
            detail=f"{text_of(tree, sql)} is {type_name(kind)}",
        )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))
