"""Expressions are told apart by their texts, for instance as keys of groups: no two share one."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from nilometer.sql.expressions.compile_scalar import compile_over
from nilometer.sql.plan.join_plan import JoinPlan
from tests.expressions import read_conditions
from tests.function_values import CASTS, LISTS, NUMBERS, TEXTS, TIMES, rows
from tests.unit.test_unsafe_functions import plan_of


def test_expressions_of_one_text_mean_the_same() -> None:
    schema = rows().schema
    types = {name: schema.field(name).type for name in schema.names}
    meanings: dict[str, set[Any]] = defaultdict(set)
    for text in (*CASTS, *LISTS, *NUMBERS, *TEXTS, *TIMES):
        [bound] = read_conditions(text, {"x_": types})
        meanings[str(bound)].add(repr(compile_over(bound, bound.columns, {}, "UTC")))
    assert [text for text, different in meanings.items() if len(different) > 1] == []
    assert len(meanings) > 600


@pytest.mark.parametrize(("unit", "read"), [("s", "A.s"), ("lower(s)", "LOWER(A.s)")])
def test_a_unit_of_date_trunc_that_is_not_written_out_is_a_value(unit: str, read: str) -> None:
    """A column called s was read as seconds, and lower(s) as the name of a unit."""
    plan = plan_of(f"SELECT date_trunc({unit}, ts) AS x FROM A")
    assert isinstance(plan, JoinPlan)
    assert str(plan.items[0].value) == f"DATE_TRUNC({read}, A.ts)"
