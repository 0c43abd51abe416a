"""Rows that cannot be computed are left out alone: as if each row were computed by itself."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.row_errors import (
    MOST_NOTED,
    RowErrors,
    Rows,
    compute,
    leaving_out,
    passing,
)
from nilometer.model.expressions import (
    Apply,
    Argument,
    Binary,
    Cast,
    Constant,
    Expression,
    Operator,
)

A, B = Argument(0), Argument(1)
QUOTIENT = Binary(Operator.DIVIDE, A, B)
SUM = Binary(Operator.PLUS, A, B)
EXPRESSIONS: list[Expression] = [
    QUOTIENT,
    SUM,
    Cast(A, pa.int8()),
    Binary(Operator.REMAINDER, B, A),
    Binary(Operator.TIMES, QUOTIENT, SUM),
]
VALUES = st.none() | st.integers(-3, 3) | st.sampled_from([100, 2**31 - 1, -(2**31)])
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=40)


def columns_of(rows: Sequence[tuple[int | None, int | None]]) -> list[pa.Array]:
    return [pa.array([row[i] for row in rows], pa.int32()) for i in (0, 1)]


def value_alone(expression: Expression, row: tuple[int | None, int | None]) -> object:
    """The value of one row; an error if there is none."""
    return evaluate(expression, columns_of([row]), 1)[0].as_py()


@given(ROWS, st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=3))
def test_what_is_left_is_what_can_be_computed(
    rows: list[tuple[int | None, int | None]], expressions: list[Expression]
) -> None:
    kinds = [evaluate(one, columns_of([]), 0).type for one in expressions]
    errors = RowErrors()
    with leaving_out(errors):
        columns, mask = compute(
            list(zip(expressions, kinds, strict=True)),
            Rows(columns_of(rows), len(rows), ["a", "b"], "S"),
        )
    expected, bad = [], []
    for row in rows:
        try:
            expected.append(tuple(value_alone(one, row) for one in expressions))
        except PredicateError:
            bad.append(dict(zip("ab", row, strict=True)))
    assert list(zip(*(one.to_pylist() for one in columns), strict=True)) == expected
    assert (mask is None) == (not bad)
    assert errors.count == len(bad)
    assert [json.loads(one.row) for one in errors.noted] == bad
    assert {one.stream for one in errors.noted} <= {"S"}


@given(ROWS)
def test_a_condition_does_not_hold_where_it_cannot_be_computed(
    rows: list[tuple[int | None, int | None]],
) -> None:
    test = Binary(Operator.GREATER, QUOTIENT, Constant(0))
    errors = RowErrors()
    with leaving_out(errors):
        mask = passing(test, Rows(columns_of(rows), len(rows)), "a / b > 0")
    bad = [a is not None and b == 0 for a, b in rows]
    held = [None not in (a, b) and b != 0 and a / b > 0 for a, b in rows]
    assert mask.tolist() == held
    assert errors.count == sum(bad)
    assert all("in: a / b > 0" in one.reason for one in errors.noted)


def test_without_leave_they_are_errors() -> None:
    rows = Rows(columns_of([(1, 1), (1, 0)]), 2)
    with pytest.raises(PredicateError, match="division by zero"):
        compute([(QUOTIENT, pa.float64())], rows)
    is_one = Binary(Operator.EQUAL, QUOTIENT, Constant(1))
    with (
        pytest.raises(PredicateError, match="division by zero"),
        leaving_out(RowErrors()),
        leaving_out(None),
    ):
        passing(is_one, rows)


def test_what_no_row_could_help_stays_an_error() -> None:
    rows = Rows([pa.array(["1"]), pa.array([True])], 1)
    with pytest.raises(UnavailableError), leaving_out(RowErrors()):
        compute([(Apply("sqrt", (Argument(1),)), pa.float64())], rows)


def test_rows_that_go_are_not_counted_again_and_only_the_first_are_noted() -> None:
    size = MOST_NOTED + 10
    rows = [(1, 0)] * (2 * size)
    counted = np.arange(2 * size) % 2 == 0
    errors = RowErrors()
    with leaving_out(errors):
        compute([(QUOTIENT, pa.float64())], Rows(columns_of(rows), len(rows), counted=counted))
    assert errors.count == size
    assert len(errors.noted) == MOST_NOTED
    more = RowErrors()
    more.add(RowErrors.from_json(json.loads(json.dumps(errors.to_json()))))
    more.add(errors)
    assert (more.count, len(more.noted)) == (2 * size, MOST_NOTED)
