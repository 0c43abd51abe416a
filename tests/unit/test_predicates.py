"""Conditions over several streams: what is read, what is refused, what a function may return."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import nilometer as nm
from nilometer.errors import NilometerError, PredicateError
from nilometer.kernels.arrays import Bools
from nilometer.model.expressions import Argument, Call
from nilometer.operators.predicates import SqlTest
from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from tests.expressions import compiled, read_conditions

TIMESTAMP = pa.timestamp("us", tz="UTC")
STREAMS = {
    "A": {"ts": TIMESTAMP, "v": pa.int64(), "place": pa.struct([("x", pa.int64())])},
    "B": {"ts": TIMESTAMP, "v": pa.int64(), "Name": pa.string()},
}


def test_a_predicate_is_split_at_its_ands_and_its_columns_are_found() -> None:
    conditions = read_conditions("A.v < b.V AND (place.x > 1 AND name LIKE 'x%')", STREAMS)
    assert [sorted(condition.streams) for condition in conditions] == [["A", "B"], ["A"], ["B"]]
    assert str(conditions[2]) == "B.Name LIKE 'x%'"
    assert conditions[1].columns[0].fields == ("x",)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (
            "v > 1",
            "column v is ambiguous\n"
            "  line 1, column 1:\n"
            "    v > 1\n"
            "    ^\n"
            "  detail: A, B each have one\n"
            "  hint: write A.v",
        ),
        (
            "1 < A.plase",
            "A has no column plase\n"
            "  line 1, column 5:\n"
            "    1 < A.plase\n"
            "        ^^^^^^^\n"
            "  detail: it has ts, v, place\n"
            "  hint: did you mean place?",
        ),
        (
            "A.place.y > B.v",
            "there is no field y in A.place\n"
            "  line 1, column 1:\n"
            "    A.place.y > B.v\n"
            "    ^^^^^^^^^\n"
            "  detail: it has x",
        ),
        (
            "A.v < (SELECT 1)",
            "a subquery is only allowed in FROM here\n"
            "  line 1, column 7:\n"
            "    A.v < (SELECT 1)\n"
            "          ^^^^^^^^^^\n"
            "  hint: join with it instead",
        ),
        (
            "A.v <",
            "cannot read the statement\n"
            "  line 1, column 5:\n"
            "    A.v <\n"
            "        ^\n"
            "  detail: something is missing",
        ),
    ],
)
def test_unreadable_predicates(sql: str, text: str) -> None:
    with pytest.raises(NilometerError) as caught:
        read_conditions(sql, STREAMS)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("format_number(A.v, 2) < B.v", "the function format_number"),
        ("soundex(A.v) < B.v", "the function soundex"),
        ("transform(A.v, x -> soundex(x)) = B.v", "the function soundex"),
    ],
)
def test_functions_that_only_spark_has(sql: str, what: str) -> None:
    [condition] = read_conditions(sql, STREAMS)
    with pytest.raises(NotInSubsetError) as caught:
        compiled(condition)
    assert caught.value.message == f"{what} is not available here"


COLUMNS = [pa.array([1, 2, 3]), pa.array([1.0, 5.0, None])]


def ask(name: str, function, by_row: bool = False) -> Bools:
    arguments = (Argument(0), Argument(1))
    call = Call(name, function, arguments, pa.bool_(), by_row)
    return SqlTest(f"{name}(A.v, B.v)", call)(COLUMNS)


def test_a_python_predicate_gets_series_or_values() -> None:
    assert ask("near", lambda a, b: (a - b).abs() < 1).tolist() == [True, False, False]
    by_row = ask("near", lambda a, b: b is not None and abs(a - b) < 1, by_row=True)
    assert by_row.tolist() == [True, False, False]


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
    assert ask("given", lambda a, b: answer).tolist() == [True, False, True]


def test_a_python_predicate_that_raises() -> None:
    def broken(a: pd.Series, b: pd.Series) -> pd.Series:
        raise KeyError("face")

    with pytest.raises(PredicateError) as caught:
        ask("broken", broken)
    assert str(caught.value) == (
        "the function broken raised KeyError: 'face'\n"
        "  detail: it was given 2 arguments: pandas Series of 3 rows; in: broken(A.v, B.v)\n"
        "  hint: a function of plain values is registered with by_row=True"
    )


@pytest.mark.parametrize(
    ("answer", "what"),
    [([True], "1 values"), (True, "a bool"), (np.ones((3, 2), bool), "a ndarray")],
)
def test_a_python_predicate_of_the_wrong_length(answer: object, what: str) -> None:
    with pytest.raises(PredicateError) as caught:
        ask("short", lambda a, b: answer)
    assert str(caught.value) == (
        f"the function short returned {what} for 3 rows\n"
        "  detail: in: short(A.v, B.v)\n"
        "  hint: it must return one value per row, in the same order"
    )


def test_a_python_predicate_that_returns_numbers() -> None:
    with pytest.raises(PredicateError) as caught:
        ask("odd", lambda a, b: a % 2)
    assert str(caught.value) == (
        "the function odd returned values of type int64\n"
        "  detail: it was declared to return BOOLEAN; in: odd(A.v, B.v)\n"
        "  hint: it must return booleans, such as (a - b).abs() < 3"
    )


def test_an_sql_predicate_that_fails_on_the_data_says_where() -> None:
    [condition] = read_conditions("A.v / B.v > 1", STREAMS)
    test = SqlTest(str(condition), compiled(condition))
    with pytest.raises(PredicateError) as caught:
        test([pa.array([1]), pa.array([0])])
    assert str(caught.value) == (
        "division by zero\n"
        "  detail: in: A.v / B.v > 1\n"
        "  hint: guard it: x <> 0 AND …, or CASE WHEN x <> 0 THEN … END"
    )


def test_bounds_of_a_symmetric_between_may_be_in_any_order() -> None:
    db = nm.connect()
    db.create_table("T", pa.table({"v": [0, 1, 2, 3, None]}))
    answer = db.sql("SELECT v BETWEEN SYMMETRIC 2 AND 1 AS within FROM T ORDER BY v")
    assert answer["within"].to_pylist() == [None, False, True, True, False]
