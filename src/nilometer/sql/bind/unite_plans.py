"""UNION ALL of append queries: one plan each, columns of the same types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import Place, SqlError, SqlTypeError
from nilometer.kernels.expression_types import type_name
from nilometer.sql.bind.windowed.set_operators import unite_kinds
from nilometer.sql.expressions.scalars import RESULT_TIME
from nilometer.sql.parse.placed_parser import operator_place
from nilometer.sql.plan.changes_plan import UnionPlan
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.types import Types

Kinds = tuple[pa.DataType | None, ...]


def unite_plans(
    plans: Sequence[JoinPlan], operators: Sequence[exp.SetOperation | None], sql: str
) -> UnionPlan:
    """The plans with the first one's column names, and types that can hold all values."""
    first = plans[0]
    kinds = _kinds(first)
    united = [first]
    for plan, operator in zip(plans[1:], operators[1:], strict=True):
        assert operator is not None
        place = operator_place(operator, sql)
        kinds = _united(first, kinds, plan, place)
        items = tuple(
            replace(item, name=named.name)
            for item, named in zip(plan.items, first.items, strict=True)
        )
        united.append(replace(plan, items=items))
    return UnionPlan(tuple(united), kinds)


def _kinds(plan: JoinPlan) -> Kinds:
    types = Types(plan.catalog, plan.sources)
    return tuple(types.of(item.value) for item in plan.items)


def _united(first: JoinPlan, kinds: Kinds, plan: JoinPlan, place: Place) -> Kinds:
    own = _kinds(plan)
    if len(own) != len(kinds):
        raise SqlTypeError(
            f"both sides of UNION ALL must have the same number of columns, got {_count(first)} "
            f"and {_count(plan)}",
            place=place,
            detail=f"{_schema(first, kinds)} and {_schema(plan, own)}",
            hint="select the same columns on both sides",
        )
    if _time_place(first) != _time_place(plan):
        raise SqlError(
            "_time is at different positions on the two sides of UNION ALL",
            place=place,
            hint="leave it out: it is the last column of every result",
        )
    both = []
    for number, (left, right) in enumerate(zip(kinds, own, strict=True)):
        kind = None if left is None or right is None else unite_kinds(left, right)
        if kind is None and left is not None and right is not None:
            one, other = first.items[number].name, plan.items[number].name
            raise SqlTypeError(
                "both sides of UNION ALL must have the same column types: "
                f"{one} is {type_name(left)}, {other} is {type_name(right)}",
                place=place,
                detail=f"{_schema(first, kinds)} and {_schema(plan, own)}",
                hint=f"cast one side, such as CAST({other} AS {type_name(left)})",
            )
        both.append(kind)
    return tuple(both)


def _time_place(plan: JoinPlan) -> int:
    names = [item.name.lower() for item in plan.items]
    return names.index(RESULT_TIME.column)


def _count(plan: JoinPlan) -> int:
    return len(plan.items) - (_time_place(plan) == len(plan.items) - 1)


def _schema(plan: JoinPlan, kinds: Kinds) -> str:
    """The columns of a query, for an error message."""
    named = zip(plan.items, kinds, strict=True)
    listed = [
        f"{item.name} {'?' if kind is None else type_name(kind)}"
        for item, kind in named
        if item.name.lower() != RESULT_TIME.column
    ]
    return f"({', '.join(listed)})"
