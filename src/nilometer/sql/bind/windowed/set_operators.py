"""UNION, INTERSECT, EXCEPT: two queries with columns of the same types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import NilometerError, Place, SqlTypeError
from nilometer.kernels.expression_types import common_type, type_name
from nilometer.operators.change_specs import SetFunction
from nilometer.operators.compute import UnionAllSpec
from nilometer.sql.bind.windowed.build_nodes import cast_columns
from nilometer.sql.bind.windowed.refusals import require_comparable_rows
from nilometer.sql.parse.placed_parser import operator_place
from nilometer.sql.plan.changes_plan import RESULT_TIME_NAME, Column, Node, runs
from nilometer.sql.plan.operations import set_counts, union_all

_FUNCTIONS = {
    (exp.Union, True): SetFunction.UNION,
    (exp.Intersect, True): SetFunction.INTERSECT,
    (exp.Intersect, False): SetFunction.INTERSECT_ALL,
    (exp.Except, True): SetFunction.EXCEPT,
    (exp.Except, False): SetFunction.EXCEPT_ALL,
}


def set_operation(tree: exp.SetOperation, left: Node, right: Node, sql: str) -> Node:
    """Both queries combined; the columns have the names of the first's."""
    place = operator_place(tree, sql)
    columns = united(left.columns, right.columns, operator_name(tree, sql), place)
    sides = (cast_columns(left, columns), cast_columns(right, columns))
    distinct = bool(tree.args.get("distinct"))
    if isinstance(tree, exp.Union) and not distinct:
        inputs = [one for side in sides for one in _flat(side)]
        return union_all(inputs, columns)
    require_comparable_rows(columns, place, operator_name(tree, sql))
    function = next(
        function
        for (kind, is_distinct), function in _FUNCTIONS.items()
        if isinstance(tree, kind) and is_distinct == distinct
    )
    return set_counts(function, sides, columns)


def _flat(node: Node) -> tuple[Node, ...]:
    return node.inputs if runs(node, UnionAllSpec) else (node,)


def operator_name(tree: exp.SetOperation, sql: str) -> str:
    """The operator as it was written."""
    place = operator_place(tree, sql)
    return " ".join(sql[place.start : place.end].upper().split())


def united(
    left: Sequence[Column], right: Sequence[Column], name: str, place: Place
) -> tuple[Column, ...]:
    """The columns of both, by position; raises an error that shows both if they differ."""
    if len(left) != len(right):
        raise SqlTypeError(
            f"both sides of {name} must have the same number of columns, got {len(left)} and "
            f"{len(right)}",
            place=place,
            detail=both_schemas(left, right),
            hint="select the same columns on both sides",
        )
    columns = []
    for one, other in zip(left, right, strict=True):
        kind = unite_kinds(one.kind, other.kind)
        if kind is None:
            raise SqlTypeError(
                f"both sides of {name} must have the same column types: "
                f"{one.name} is {type_name(one.kind)}, {other.name} is {type_name(other.kind)}",
                place=place,
                detail=both_schemas(left, right),
                hint=_cast_hint(one, other),
            )
        columns.append(Column(one.name, kind))
    return tuple(columns)


def _cast_hint(one: Column, other: Column) -> str:
    """The hint for a cast that Spark supports."""
    kinds = (one.kind, other.kind)
    if any(pat.is_nested(kind) or pat.is_binary(kind) for kind in kinds):
        return "select columns of the same types on both sides"
    is_day = [pat.is_date(kind) or pat.is_timestamp(kind) for kind in kinds]
    if any(is_day) and not all(is_day) and not any(pat.is_string(kind) for kind in kinds):
        return f"cast both sides, such as CAST({other.name} AS STRING)"
    return f"cast one side, such as CAST({other.name} AS {type_name(one.kind)})"


def unite_kinds(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type that can hold values of both, if there is one."""
    try:
        return common_type(left, right)
    except NilometerError:
        return None


def both_schemas(left: Sequence[Column], right: Sequence[Column]) -> str:
    """The columns of both sides, for an error message."""
    first, second = (
        ", ".join(
            f"{one.name} {type_name(one.kind)}" for one in side if one.name != RESULT_TIME_NAME
        )
        for side in (left, right)
    )
    return f"({first}) and ({second})"
