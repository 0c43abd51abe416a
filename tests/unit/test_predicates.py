"""Predicates over several streams: what is read, what is refused, what a function may return."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from nilometer.errors import PredicateError
from nilometer.kernels.expression_types import type_of
from nilometer.operators.predicates import PythonTest, SqlTest
from nilometer.sql.predicate import Scope, read_column, read_predicate

SCOPE = Scope({"A": ["ts", "v", "place"], "B": ["ts", "v", "Name"]})


def test_a_predicate_is_split_at_its_ands_and_its_columns_are_found() -> None:
    conditions = read_predicate("A.v < b.V AND (place.x > 1 AND name LIKE 'x%')", SCOPE)
    assert [sorted(condition.streams) for condition in conditions] == [["A", "B"], ["A"], ["B"]]
    assert conditions[2].sql == "`B`.`Name` LIKE 'x%'"
    assert conditions[1].columns[0].fields == ("x",)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (
            "v > 1",
            "column v is ambiguous\n  detail: the streams A, B have one each\n  hint: write A.v",
        ),
        (
            "A.w > B.v",
            "stream A has no column w\n  detail: it has ts, v, place",
        ),
        (
            "A.plase > B.v",
            "stream A has no column plase\n"
            "  detail: it has ts, v, place\n"
            "  hint: did you mean place?",
        ),
        ("C.x = 1", "there is no column C.x\n  detail: the streams are A, B"),
        ("A.v <", None),
        ("A.v < (SELECT 1)", "a predicate cannot hold a subquery"),
    ],
)
def test_unreadable_predicates(sql: str, text: str | None) -> None:
    with pytest.raises(PredicateError) as caught:
        read_predicate(sql, SCOPE)
    if text is None:
        assert caught.value.message == "cannot read the predicate"
        assert caught.value.hint == f"in: {sql}"
        assert "at line 1, column" in (caught.value.detail or "")
    else:
        assert str(caught.value) == text


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("levenshtein(A.v, B.v) < 3", "the function levenshtein"),
        ("sqrt(A.v) < B.v", "the function sqrt"),
        ("A.v RLIKE B.v", "the function regexp_like"),
    ],
)
def test_functions_that_are_not_available_across_streams(sql: str, what: str) -> None:
    [condition] = read_predicate(sql, SCOPE)
    with pytest.raises(PredicateError) as caught:
        condition.compile()
    assert caught.value.message == f"{what} is not available across several streams"
    assert caught.value.hint == (
        "compute it as a column of one stream before the join, or use nm.predicate(function, …)"
    )


def test_fields_of_structs_are_found_in_any_case_or_refused() -> None:
    [condition] = read_predicate("A.place.X > B.v", SCOPE)
    place = pa.array([{"x": 1}, {"x": 3}])
    test = SqlTest(condition.sql, condition.compile())
    assert test([place, pa.array([2, 2])]).tolist() == [False, True]
    for columns, detail in (
        ([pa.array([1])], "it is BIGINT"),
        ([pa.array([{"y": 1}])], "it has y"),
    ):
        with pytest.raises(PredicateError) as caught:
            type_of(condition.compile(), [*(c.type for c in columns), pa.int64()])
        assert str(caught.value) == f"there is no field X\n  detail: {detail}"


def test_a_function_gets_whole_columns() -> None:
    assert read_column("b.NAME", SCOPE).column == "Name"
    with pytest.raises(PredicateError, match="this is not the name of a column: A.v \\+ 1"):
        read_column("A.v + 1", SCOPE)
    with pytest.raises(PredicateError, match="whole columns, not fields of them: A.place.x"):
        read_column("A.place.x", SCOPE)


COLUMNS = [pa.array([1, 2, 3]), pa.array([1.0, 5.0, None])]


def test_a_python_predicate_gets_series() -> None:
    test = PythonTest("near", lambda a, b: (a - b).abs() < 1)
    assert test(COLUMNS).tolist() == [True, False, False]


@pytest.mark.parametrize(
    "answer",
    [
        [True, False, True],
        np.array([True, False, True]),
        pd.Series([True, False, True]),
        pd.Series([True, None, True]),
    ],
)
def test_any_kind_of_column_will_do_and_missing_is_false(answer: object) -> None:
    assert PythonTest("given", lambda a, b: answer)(COLUMNS).tolist() == [True, False, True]


def test_a_python_predicate_that_raises() -> None:
    def broken(a: pd.Series, b: pd.Series) -> pd.Series:
        raise KeyError("face")

    with pytest.raises(PredicateError) as caught:
        PythonTest("broken", broken)(COLUMNS)
    assert str(caught.value) == (
        "the predicate broken raised KeyError: 'face'\n"
        "  detail: it was given 3 rows of 2 columns\n"
        "  hint: it gets one pandas Series per column, like a pandas UDF"
    )


@pytest.mark.parametrize(
    ("answer", "what"),
    [([True], "1 values"), (True, "a bool"), (np.ones((3, 2), bool), "a ndarray")],
)
def test_a_python_predicate_of_the_wrong_length(answer: object, what: str) -> None:
    with pytest.raises(PredicateError) as caught:
        PythonTest("short", lambda a, b: answer)(COLUMNS)
    assert str(caught.value) == (
        f"the predicate short returned {what} for 3 rows\n"
        "  hint: it must return one boolean per row, in the same order"
    )


def test_a_python_predicate_that_returns_numbers() -> None:
    with pytest.raises(PredicateError) as caught:
        PythonTest("odd", lambda a, b: a % 2)(COLUMNS)
    assert str(caught.value) == (
        "the predicate odd returned values of type int64\n"
        "  hint: it must return booleans, such as (a - b).abs() < 3"
    )


def test_an_sql_predicate_that_fails_on_the_data_says_where() -> None:
    [condition] = read_predicate("A.v / B.v > 1", SCOPE)
    test = SqlTest(condition.sql, condition.compile())
    with pytest.raises(PredicateError) as caught:
        test([pa.array([1]), pa.array([0])])
    assert "division by zero" in str(caught.value)
    assert "in: `A`.`v` / `B`.`v` > 1" in str(caught.value)
