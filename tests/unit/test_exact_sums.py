"""Sums of digits against fractions and math.fsum."""

from __future__ import annotations

import math
from collections import deque
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels.exact_results import as_decimals, as_int64, as_integers, rounded, scaled
from nilometer.kernels.exact_sums import SMALLEST_DOUBLE, add_digits, digits_of
from nilometer.local.memory_store import MemoryStore
from nilometer.model.expressions import Argument
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.change_operator import make_changes, row_columns, times_of
from nilometer.operators.change_specs import AggregateCall, AggregateFunction

_WIDE = Context(prec=100)

finite = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e300, -1e300, 1e-300, 5e-324, -5e-324, 1e20, 1.0, -1e20, 2.0**53, 0.1]),
)
copies = st.integers(-3, 3)


def sums(column: pa.Array, counts: list[int], *, squares: bool = False) -> dict[int, Any]:
    digits = digits_of(column)
    rows = np.zeros(len(counts), np.int64)
    return add_digits(
        digits.times(digits) if squares else digits, np.array(counts, np.int64), rows, 1
    )


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(finite, copies), max_size=12))
def test_sums_of_doubles_are_rounded_once(terms: list[tuple[float, int]]) -> None:
    totals = sums(pa.array([x for x, _ in terms], pa.float64()), [n for _, n in terms])
    (got,) = scaled(*rounded(totals, SMALLEST_DOUBLE, 1)).tolist()
    exact = sum((Fraction(x) * n for x, n in terms), Fraction())
    try:
        expected = float(exact)
    except OverflowError:
        expected = math.inf if exact > 0 else -math.inf
    assert got == expected
    assert math.copysign(1, got) == (-1 if exact < 0 else 1)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(finite, copies), max_size=8))
def test_squares_of_doubles_are_exact(terms: list[tuple[float, int]]) -> None:
    column = pa.array([x for x, _ in terms], pa.float64())
    totals = sums(column, [n for _, n in terms], squares=True)
    (got,) = as_integers(totals, 1)
    exact = sum((Fraction(x) ** 2 * n for x, n in terms), Fraction())
    assert Fraction(int(got)) * Fraction(2) ** (2 * SMALLEST_DOUBLE) == exact


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), copies), max_size=8))
def test_sums_of_integers_fit_or_say_so(terms: list[tuple[int, int]]) -> None:
    column = pa.array([x for x, _ in terms], pa.int64())
    exact = sum(x * n for x, n in terms)
    (got,), (bad,) = as_int64(sums(column, [n for _, n in terms]), 1)
    assert bad == (not -(2**63) <= exact < 2**63)
    assert bad or got == exact
    (squares,) = as_integers(sums(column, [n for _, n in terms], squares=True), 1)
    assert squares == sum(x * x * n for x, n in terms)


@pytest.mark.parametrize("precision", [5, 18, 19, 28, 38])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_sums_of_decimals_fit_or_say_so(precision: int, data: st.DataObject) -> None:
    largest = 10**precision - 1
    terms = data.draw(st.lists(st.tuples(st.integers(-largest, largest), copies), max_size=8))
    kind = pa.decimal128(precision, 2)
    column = pa.array([Decimal(x).scaleb(-2, _WIDE) for x, _ in terms], kind)
    wanted = pa.decimal128(min(38, precision + 10), 2)
    totals = sums(column.slice(0), [n for _, n in terms])
    got, (bad,) = as_decimals(totals, wanted, np.ones(1, np.bool_))
    exact = sum(x * n for x, n in terms)
    assert bad == (abs(exact) >= 10**wanted.precision)
    assert bad or got[0].as_py().scaleb(2, _WIDE) == exact


def test_a_slice_of_decimals() -> None:
    column = pa.array([Decimal(5), Decimal(-7), Decimal(9)], pa.decimal128(30, 0)).slice(1, 1)
    assert as_integers(sums(column, [1]), 1)[0] == -7


def test_cancellation() -> None:
    totals = sums(pa.array([1e20, 1.0, -1e20]), [1, 1, 1])
    assert scaled(*rounded(totals, SMALLEST_DOUBLE, 1)).tolist() == [1.0]


@pytest.mark.parametrize("least", [2.0**-70, 2.0**-200, -(2.0**-200)])
def test_what_is_far_below_decides_ties(least: float) -> None:
    terms = [1.0, 2.0**-53, least]
    totals = sums(pa.array(terms), [1, 1, 1])
    assert scaled(*rounded(totals, SMALLEST_DOUBLE, 1)).tolist() == [math.fsum(terms)]


def test_millions_of_expirations_leave_no_error() -> None:
    """A sliding window of 50 values of all sizes; the sum is that of its contents at the end."""
    spec = AggregateSpec(
        0,
        (pa.float64(),),
        (AggregateCall(AggregateFunction.SUM, 0),),
        None,
        (Argument(0),),
        (pa.float64(),),
    )
    store, snapshot = MemoryStore(), None
    rng = np.random.default_rng(7)
    window: deque[float] = deque()
    size, length = 200_000, 50
    for period in range(10):
        new = rng.normal(0, 1, size) * 10.0 ** rng.integers(-12, 12, size)
        new[rng.integers(0, size - length, 5)] = math.nan
        new[rng.integers(0, size - length, 5)] = math.inf
        new[rng.integers(0, size - length, 5)] = -math.inf
        old = np.concatenate([np.array(window), new[: size - length]])[-size:]
        start = period * size
        times = np.arange(start, start + size)
        leaving = times[size - len(old) :]
        batch = make_changes(
            [pa.array(np.concatenate([new, old]))],
            np.concatenate([times, leaving]),
            np.concatenate([np.ones(size, np.int64), np.full(len(old), -1)]),
        )
        operator = spec.start(store)
        if snapshot is not None:
            operator.restore(snapshot)
        out = operator.process([batch], start + size)
        snapshot = operator.snapshot()
        window = deque(new[-length:].tolist())
        last = np.lexsort((np.arange(len(out)), times_of(out)))[-1]
        assert row_columns(out)[0][int(last)].as_py() == math.fsum(window)
