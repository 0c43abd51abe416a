"""Find the part of an expression whose types are incompatible, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import NilometerError, PredicateError, SqlTypeError
from nilometer.kernels.expression_types import INTERVAL, is_number, type_name
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.parse.places import place_of, text_of

TypeOf = Callable[[exp.Expr], pa.DataType]
_MOST_NODES: Final = 200


def type_error(error: PredicateError, scalar: Scalar, type_of: TypeOf) -> SqlTypeError:
    """The error with the position of the faulty part, and a hint for SQL users."""
    if next(islice(scalar.tree.walk(), _MOST_NODES, None), None) is not None:
        return SqlTypeError(error.message, place=scalar.place, detail=error.detail)
    part = _to_blame(scalar.tree, type_of)
    place = scalar.place if part is scalar.tree else place_of(part, scalar.place.sql)
    hint = None
    if isinstance(part, exp.Binary) and not isinstance(part, exp.Connector):
        hint = _hint(part, scalar.place.sql, type_of)
    return SqlTypeError(error.message, place=place, detail=error.detail, hint=hint)


def _to_blame(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """The smallest part that has no type."""
    for child in tree.iter_expressions():
        try:
            type_of(child)
        except PredicateError:
            return _to_blame(child, type_of)
        except NilometerError:
            continue
    return tree


def _hint(part: exp.Binary, sql: str, type_of: TypeOf) -> str | None:
    try:
        kinds = [type_of(part.left), type_of(part.right)]
    except NilometerError:
        return None
    sides = [text_of(part.left, sql), text_of(part.right, sql)]
    if INTERVAL in kinds and any(map(is_number, kinds)):
        return "write a length of time, such as INTERVAL '5' SECOND"
    for side, kind in zip(sides, kinds, strict=True):
        if pat.is_map(kind):
            return f"take an entry of the map, such as {side}['key']"
        if pat.is_struct(kind):
            return f"take a field of the struct, such as {side}.{kind.field(0).name}"
    if kinds[0] == kinds[1]:
        return f"cast both sides, such as CAST({sides[0]} AS BIGINT)"
    return _cast_hint(sides, kinds, isinstance(part, exp.Predicate))


def _cast_hint(sides: list[str], kinds: list[pa.DataType], is_comparison: bool) -> str:
    """The hint to cast: texts are compared as texts, but computed with as numbers."""
    for side, kind, other in ((sides[1], *kinds), (sides[0], *reversed(kinds))):
        if pat.is_string(kind) and is_comparison:
            return f"cast one side, such as CAST({side} AS STRING)"
        if is_number(kind) and (pat.is_boolean(other) or pat.is_string(other) > is_comparison):
            return f"cast one side, such as CAST({side} AS {type_name(kind)})"
    return "cast one side to the type of the other"
