"""docs/functions.md names every function of Spark, and says the truth about those that are ours."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from nilometer.kernels.functions.table import FUNCTIONS
from nilometer.kernels.iterate import ITERATIONS
from nilometer.kernels.type_of import type_of
from nilometer.sql.expressions.compile_scalar import compile_over
from nilometer.sql.expressions.spark_text import safe_functions
from scripts.list_functions import PAGE, WORDS, named, page
from tests.expressions import read_conditions
from tests.function_values import CASTS, LISTS, NUMBERS, TEXTS, TIMES, rows


def test_the_list_is_that_of_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(), "run: python scripts/list_functions.py"
    assert named() <= set(re.findall(r"`(\w+)`", text))


@pytest.mark.parametrize("sql", WORDS.values())
def test_words_are_evaluated_here(sql: str) -> None:
    types = {field.name: field.type for field in rows().schema}
    [bound] = read_conditions(f"nvl({sql}, NULL)", {"A": types})
    kinds = [types[one.column] for one in bound.columns]
    assert isinstance(type_of(compile_over(bound, bound.columns, {}, "UTC"), kinds), pa.DataType)


def test_every_function_of_the_table_is_compared_with_spark() -> None:
    written = " ".join([*TEXTS, *NUMBERS, *LISTS, *TIMES, *CASTS]).lower()
    called = set(re.findall(r"(\w+)\(", written))
    missing = {name for name in (*FUNCTIONS, *ITERATIONS) if name.isidentifier()} - called
    by_operators = {"timestampadd", "timestampdiff", "like", "ilike", "rlike"}
    assert missing - by_operators == set()


def test_functions_of_the_table_may_be_called() -> None:
    names = {name for name in (*FUNCTIONS, *ITERATIONS) if name.isidentifier()}
    assert names - safe_functions() == {"timestampadd", "timestampdiff"}  # written as DATEADD
