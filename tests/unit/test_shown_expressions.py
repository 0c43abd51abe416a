"""Expressions are told apart by their texts, for instance as keys of groups: no two share one."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from nilometer.sql.expressions.compile_scalar import compile_over
from tests.expressions import read_conditions
from tests.function_values import CASTS, LISTS, NUMBERS, TEXTS, TIMES, rows


def test_expressions_of_one_text_mean_the_same() -> None:
    schema = rows().schema
    types = {name: schema.field(name).type for name in schema.names}
    meanings: dict[str, set[Any]] = defaultdict(set)
    for text in (*CASTS, *LISTS, *NUMBERS, *TEXTS, *TIMES):
        [bound] = read_conditions(text, {"x_": types})
        meanings[str(bound)].add(repr(compile_over(bound, bound.columns, {}, "UTC")))
    assert [text for text, found in meanings.items() if len(found) > 1] == []
    assert len(meanings) > 600
