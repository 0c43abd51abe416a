"""Arithmetic of DECIMALs against Python's own, with the digits that Spark keeps."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import PredicateError
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.type_of import type_of
from nilometer.model.expressions import Argument, Binary, Constant, Operator

WIDE = Context(prec=200)
JAVA = Context(prec=39, rounding=ROUND_HALF_UP)


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.DataType, list[Decimal | None]]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    largest = 10**precision - 1
    whole = st.integers(-largest, largest) | st.integers(-min(largest, 20), min(largest, 20))
    made = whole.map(lambda v: Decimal(v).scaleb(-scale, WIDE))
    return pa.decimal128(precision, scale), draw(st.lists(st.none() | made, min_size=4, max_size=4))


def plainly(operator: Operator, a: Decimal, b: Decimal, kind: pa.DataType) -> Decimal | None:
    """The value by Python's decimals; None if it does not fit, or cannot be."""
    match operator:
        case Operator.PLUS:
            exact = WIDE.add(a, b)
        case Operator.MINUS:
            exact = WIDE.subtract(a, b)
        case Operator.TIMES:
            exact = JAVA.multiply(a, b)
        case Operator.DIVIDE:
            if b == 0:
                return None
            exact = WIDE.divide(a, b).quantize(Decimal((0, (1,), -39)), ROUND_HALF_UP, WIDE)
        case _:
            if b == 0 or abs(WIDE.divide_int(a, b)) >= 10**39:
                return None
            exact = WIDE.remainder(a, b)
    rounded = exact.quantize(Decimal((0, (1,), -kind.scale)), ROUND_HALF_UP, WIDE)
    return rounded if abs(rounded) < 10 ** (kind.precision - kind.scale) else None


@given(
    columns(),
    columns(),
    st.sampled_from(
        [Operator.PLUS, Operator.MINUS, Operator.TIMES, Operator.DIVIDE, Operator.REMAINDER]
    ),
)
@settings(max_examples=400, deadline=None)
def test_every_digit_is_right(
    left: tuple[pa.DataType, list[Decimal | None]],
    right: tuple[pa.DataType, list[Decimal | None]],
    operator: Operator,
) -> None:
    expression = Binary(operator, Argument(0), Argument(1))
    kind = type_of(expression, [left[0], right[0]])
    given_columns = [pa.array(values, of) for of, values in (left, right)]
    for row in range(4):
        a, b = left[1][row], right[1][row]
        one = [column.slice(row, 1) for column in given_columns]
        if a is None or b is None:
            assert evaluate(expression, one, 1).to_pylist() == [None]
            continue
        right_value = plainly(operator, a, b, kind)
        if right_value is None:
            with pytest.raises(PredicateError, match="overflow|division by zero"):
                evaluate(expression, one, 1)
        else:
            assert evaluate(expression, one, 1).to_pylist() == [right_value]


@pytest.mark.parametrize(
    ("operator", "right", "kind"),
    [
        (Operator.DIVIDE, 3, pa.decimal128(10, 6)),
        (Operator.DIVIDE, -1000, pa.decimal128(11, 7)),
        (Operator.REMAINDER, 7, pa.decimal128(3, 2)),
        (Operator.PLUS, 1, pa.decimal128(7, 2)),
        (Operator.TIMES, 10, pa.decimal128(9, 2)),
    ],
)
def test_a_number_that_is_written_has_its_own_digits(
    operator: Operator, right: int, kind: pa.DataType
) -> None:
    """As in Spark: an INT column would have ten."""
    expression = Binary(operator, Argument(0), Constant(right))
    assert type_of(expression, [pa.decimal128(6, 2)]) == kind
    column = evaluate(expression, [pa.array([Decimal("12.34")], pa.decimal128(6, 2))], 1)
    assert column.type == kind
