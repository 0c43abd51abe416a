"""ROUND, FLOOR, CEIL, CAST and COALESCE over columns against plain decimal arithmetic."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nilometer.errors import PredicateError
from nilometer.kernels import arithmetic, arrays
from nilometer.kernels.cast_values import cast_values
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.function_types import round_type, whole_type
from nilometer.kernels.round_values import round_values, whole_values
from nilometer.model.expressions import Argument, Binary, Coalesce, Constant, Operator

WIDE = Context(prec=800)
BIGINT = st.integers(-(2**63), 2**63 - 1)
DOUBLE = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
SHORT = st.decimals(-10_000, 10_000, places=3).map(float)
MONEY = st.decimals(Decimal("-99999.999"), Decimal("99999.999"), places=3)


def rounded(value: Decimal, digits: int) -> Decimal:
    unit = Decimal((0, (1,), -digits))
    return value.quantize(unit, ROUND_HALF_UP, WIDE)


@given(st.lists(st.none() | DOUBLE | SHORT), st.integers(-30, 30))
@example([2.675, -2.675, 0.5, -0.5, 1e300, 2.0**52 + 0.5, 5e-324, None], 2)
@example([0.49999999999999994, 1.5, 2.5, -0.4, 4503599627370497.5], 0)
def test_doubles_are_rounded_as_they_are_read(values: list[float | None], digits: int) -> None:
    results = round_values(pa.array(values, pa.float64()), digits, pa.float64()).to_pylist()
    expected = [
        None if v is None else float(rounded(Decimal(repr(v)), digits)) + 0.0 for v in values
    ]
    assert list(map(repr, results)) == list(map(repr, expected))


@given(st.lists(st.none() | MONEY), st.integers(-6, 5))
def test_decimals_are_rounded(values: list[Decimal | None], digits: int) -> None:
    column = pa.array(values, pa.decimal128(8, 3))
    kind = round_type(column.type, digits)
    assert kind is not None
    results = round_values(column, digits, kind).to_pylist()
    assert results == [None if v is None else rounded(v, digits) for v in values]


@given(st.lists(BIGINT), st.integers(-20, 3))
def test_whole_numbers_are_rounded_or_overflow(values: list[int], digits: int) -> None:
    expected = [int(rounded(Decimal(v), min(digits, 0))) for v in values]
    column = pa.array(values, pa.int64())
    if all(-(2**63) <= v < 2**63 for v in expected):
        assert round_values(column, digits, pa.int64()).to_pylist() == expected
    else:
        with pytest.raises(PredicateError, match="arithmetic overflow"):
            round_values(column, digits, pa.int64())


@given(st.lists(st.none() | MONEY), st.lists(st.none() | st.floats(-1e18, 1e18)))
def test_floor_and_ceiling(money: list[Decimal | None], doubles: list[float | None]) -> None:
    for upward, mode, whole in ((True, ROUND_CEILING, math.ceil), (False, ROUND_FLOOR, math.floor)):
        column = pa.array(money, pa.decimal128(8, 3))
        results = whole_values(column, upward, whole_type(column.type)).to_pylist()
        assert results == [None if v is None else v.to_integral_value(mode) for v in money]
        results = whole_values(pa.array(doubles, pa.float64()), upward, pa.int64()).to_pylist()
        assert results == [None if v is None else whole(v) for v in doubles]


@given(st.lists(DOUBLE | SHORT), st.sampled_from([pa.int8(), pa.int32(), pa.int64()]))
@example([127.9, -128.9], pa.int8())
@example([128.0], pa.int8())
def test_casts_cut_what_is_behind_the_point(values: list[float], kind: pa.DataType) -> None:
    last = 2 ** (kind.bit_width - 1)
    expected = [math.trunc(v) for v in values]
    column = pa.array(values, pa.float64())
    if all(-last <= v < last for v in expected):
        assert cast_values(column, kind).to_pylist() == expected
    elif all(-last <= v <= last for v in expected) and kind == pa.int64():
        assert cast_values(column, kind).to_pylist() == [min(v, last - 1) for v in expected]
    else:
        with pytest.raises(PredicateError, match="arithmetic overflow"):
            cast_values(column, kind)


@given(st.lists(st.none() | MONEY))
def test_casts_of_decimals(values: list[Decimal | None]) -> None:
    column = pa.array(values, pa.decimal128(8, 3))
    doubles = cast_values(column, pa.float64()).to_pylist()
    assert doubles == [None if v is None else float(v) for v in values]
    shorter = cast_values(column, pa.decimal128(7, 1)).to_pylist()
    assert shorter == [None if v is None else rounded(v, 1) for v in values]
    again = cast_values(pa.array(doubles, pa.float64()), column.type)
    assert again.to_pylist() == values


@given(st.lists(st.tuples(*[st.none() | st.integers(-3, 3)] * 3)))
def test_coalesce_looks_no_further_than_it_must(rows: list[tuple[int | None, ...]]) -> None:
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in range(3)]
    divided = Binary(Operator.WHOLE_DIVIDE, Constant(6), Argument(1))
    expression = Coalesce((Argument(0), divided, Argument(2)))
    needed = [row for row in rows if row[0] is None]
    if any(row[1] == 0 for row in needed):
        with pytest.raises(PredicateError, match="division by zero"):
            evaluate(expression, columns, len(rows))
        return
    expected = [a if a is not None else (int(6 / b) if b is not None else c) for a, b, c in rows]
    assert evaluate(expression, columns, len(rows)).to_pylist() == expected


@given(st.decimals(min_value=-(10**8), max_value=10**8, places=3))
def test_a_decimal_beside_a_double_is_the_nearest_double(value: Decimal) -> None:
    """Arrow makes 119.10000000000001 of 119.1; found by a question over a capture."""
    for given_value in (value, Decimal("119.1")):
        decimals = pa.array([given_value], pa.decimal128(12, 3))
        for read in (arrays.as_type, arithmetic.as_type):
            assert read(decimals, pa.float64()).to_pylist() == [float(given_value)]
