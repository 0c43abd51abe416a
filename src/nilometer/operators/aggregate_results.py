"""Counts, sums, averages and variances from totals: pure functions of exact sums."""

from __future__ import annotations

from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.exact_results import (
    Integers,
    as_decimals,
    as_int64,
    as_integers,
    decimals_of_words,
    rounded,
    scaled,
)
from nilometer.kernels.exact_sums import BITS, SMALLEST_DOUBLE, Doubles, unit_of
from nilometer.kernels.expression_types import INTERVAL, type_name
from nilometer.operators.aggregate_arguments import ArgumentRef
from nilometer.operators.aggregate_totals import POWERS, Totals
from nilometer.operators.change_specs import AggregateFunction

_VARIANCES: Final = (
    AggregateFunction.VAR_SAMP,
    AggregateFunction.VAR_POP,
    AggregateFunction.STDDEV_SAMP,
    AggregateFunction.STDDEV_POP,
)
POWER: Final = {
    **dict.fromkeys(_VARIANCES, 2),
    AggregateFunction.SKEWNESS: 3,
    AggregateFunction.KURTOSIS: 4,
}
"""Functions that need sums of powers, with the highest power."""
SUMMED: Final = (AggregateFunction.SUM, AggregateFunction.AVG, *POWER)
"""Functions that need a sum."""

COVARIANCES: Final = (AggregateFunction.COVAR_SAMP, AggregateFunction.COVAR_POP)
"""Functions that need the sums of pairs and of their products."""

_SAMPLES: Final = (
    AggregateFunction.VAR_SAMP,
    AggregateFunction.STDDEV_SAMP,
    AggregateFunction.COVAR_SAMP,
)
_ROOTS: Final = (AggregateFunction.STDDEV_SAMP, AggregateFunction.STDDEV_POP)


class SumResults:
    """Results of the functions that are computed from totals, in every state."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals
        self._rounded: dict[ArgumentRef, tuple[Doubles, Int64s]] = {}
        self.refused: list[tuple[Bools, PredicateError]] = []
        """The states in which a result does not fit its type, with the error message."""

    def result(
        self, function: AggregateFunction, ref: ArgumentRef, kind: pa.DataType, wanted: pa.DataType
    ) -> pa.Array:
        """A function of an argument of some type, as a column of its result type."""
        counts = self._totals.count(ref)
        if function is AggregateFunction.COUNT:
            return pa.array(counts)
        if pat.is_null(kind):
            return pa.nulls(self._totals.size, wanted)
        if function in _VARIANCES:
            return self._variance(function, ref, kind, counts)
        if function in POWER:
            return self._shape(function, ref, counts)
        if function in COVARIANCES:
            return self._covariance(function, ref, counts)
        if pat.is_floating(wanted):
            values = self._doubles(ref, kind, counts if function is AggregateFunction.AVG else None)
            return pa.array(values, mask=_mask(counts > 0))
        if function is AggregateFunction.AVG:
            return self._whole_average(ref, kind, wanted, counts)
        if pat.is_decimal(wanted):
            sums, bad = as_decimals(self._totals.digits(ref, "sum"), wanted, counts > 0)
        else:
            whole, bad = as_int64(self._totals.digits(ref, "sum"), self._totals.size)
            sums = pa.array(whole, mask=_mask(counts > 0)).view(wanted)
        self._refuse(function, bad, wanted)
        return sums

    def _doubles(self, ref: ArgumentRef, kind: pa.DataType, divisors: Int64s | None) -> Doubles:
        """Sums, or averages where there are divisors."""
        if ref not in self._rounded:
            digits = self._totals.digits(ref, "sum")
            self._rounded[ref] = rounded(digits, unit_of(kind), self._totals.size)
        values, exponents = self._rounded[ref]
        if divisors is not None:
            values = values / np.maximum(divisors, 1)
        result = scaled(values, exponents)
        plus, minus = self._totals[f"{ref.label} inf"] > 0, self._totals[f"{ref.label} -inf"] > 0
        result[plus] = np.inf
        result[minus] = -np.inf
        result[(plus & minus) | (self._totals[f"{ref.label} nan"] > 0)] = np.nan
        return result

    def _whole_average(
        self, ref: ArgumentRef, kind: pa.DataType, wanted: pa.DataType, counts: Int64s
    ) -> pa.Array:
        """Averages of decimals or intervals; halves are rounded away from zero, as in Spark."""
        sums = as_integers(self._totals.digits(ref, "sum"), self._totals.size)
        if pat.is_decimal(wanted):
            sums *= 10 ** (wanted.scale - kind.scale)
        divisors = np.maximum(counts, 1).astype(object)
        averages = (2 * abs(sums) + divisors) // (2 * divisors)
        negative = np.asarray(sums < 0, np.bool_)
        averages[negative] = -averages[negative]
        if not pat.is_decimal(wanted):
            return pa.array(averages.astype(np.int64), mask=_mask(counts > 0)).view(wanted)
        bad = np.asarray(abs(averages) >= 10**wanted.precision, np.bool_)
        self._refuse(AggregateFunction.AVG, bad, wanted)
        words = np.stack([_word(averages), _word(averages >> 64)], axis=1)
        return decimals_of_words(words, wanted, counts > 0)

    def _variance(
        self, function: AggregateFunction, ref: ArgumentRef, kind: pa.DataType, counts: Int64s
    ) -> pa.Array:
        sample = function in _SAMPLES
        weights = counts.astype(object)
        squared, exponent = self._squared_deviations(ref, kind, weights)
        divisors = weights * (weights - 1 if sample else weights)
        valid = counts > (1 if sample else 0)
        divisors[~valid] = 1
        squared[~valid] = 0
        if pat.is_decimal(kind):
            divisors *= 10 ** (2 * kind.scale)
        values = _divide(squared, divisors, exponent)
        values[self._is_special(ref)] = np.nan
        return pa.array(np.sqrt(values) if function in _ROOTS else values, mask=_mask(valid))

    def _is_special(self, ref: ArgumentRef) -> Bools:
        """The states in which some value is infinite or NaN."""
        special = sum(self._totals[f"{ref.label} {name}"] for name in ("nan", "inf", "-inf"))
        return np.asarray(special != 0, np.bool_)

    def _covariance(
        self, function: AggregateFunction, ref: ArgumentRef, counts: Int64s
    ) -> pa.Array:
        """(n Σxy - Σx Σy) / n², or by n (n - 1), rounded once."""
        sample = function in _SAMPLES
        names = ("first", "second", "product")
        ones, others, products = (self._totals.digits(ref, name) for name in names)
        first = min([*ones, *others, *(place // 2 for place in products)], default=0)
        size, weights = self._totals.size, counts.astype(object)
        x, y = (as_integers(digits, size, first) for digits in (ones, others))
        numerators = weights * as_integers(products, size, 2 * first) - x * y
        divisors = weights * (weights - 1 if sample else weights)
        valid = counts > (1 if sample else 0)
        divisors[~valid], numerators[~valid] = 1, 0
        values = _divide(numerators, divisors, 2 * (BITS * first + SMALLEST_DOUBLE))
        values[self._totals[f"{ref.label} nan"] != 0] = np.nan
        return pa.array(values, mask=_mask(valid))

    def _shape(self, function: AggregateFunction, ref: ArgumentRef, counts: Int64s) -> pa.Array:
        """The third or fourth moment, to the power of the second that has no unit.

        NULL where all values are equal.
        """
        sums, _ = self._powers(ref, POWER[function])
        n, (s, squares, cubes, *rest) = counts.astype(object), sums
        spread = n * squares - s * s
        if function is AggregateFunction.SKEWNESS:
            third = n * n * cubes - 3 * n * s * squares + 2 * s**3
            signs = np.where(np.asarray(third < 0, np.bool_), -1.0, 1.0)
            upper, lower = third**2, spread**3
        else:
            (fourths,) = rest
            fourth = n**3 * fourths - 4 * n * n * s * cubes + 6 * n * s * s * squares - 3 * s**4
            upper, lower = fourth - 3 * spread**2, spread**2
        special, valid = self._is_special(ref), np.asarray(lower > 0, np.bool_)
        lower[~valid] = 1
        values = _divide(upper, lower, 0)
        if function is AggregateFunction.SKEWNESS:
            values = signs * np.sqrt(values)
        values[special] = np.nan
        return pa.array(values, mask=_mask(valid | special))

    def _powers(self, ref: ArgumentRef, highest: int) -> tuple[list[Integers], int]:
        """The sums of the first powers, exactly, in powers of a unit; and the place of that."""
        digits = [self._totals.digits(ref, name) for name in POWERS[:highest]]
        first = min(
            (place // power for power, sums in enumerate(digits, 1) for place in sums), default=0
        )
        size = self._totals.size
        return [as_integers(one, size, k * first) for k, one in enumerate(digits, 1)], first

    def _squared_deviations(
        self, ref: ArgumentRef, kind: pa.DataType, counts: Integers
    ) -> tuple[Integers, int]:
        """n Σx² - (Σx)², exactly, in units of a power of two with this exponent."""
        (sums, squares), first = self._powers(ref, 2)
        return counts * squares - sums * sums, 2 * (BITS * first + unit_of(kind))

    def _refuse(self, function: AggregateFunction, bad: Bools, kind: pa.DataType) -> None:
        if not bad.any():
            return
        hints = {pa.int64(): "cast the argument to DECIMAL(28,0)", INTERVAL: "shorten the window"}
        error = PredicateError(
            f"a result of {function} does not fit its type",
            detail=f"it is {type_name(kind)}",
            hint=hints.get(kind, "cast the argument to DOUBLE"),
        )
        self.refused.append((bad, error))


def _divide(numerators: Integers, divisors: Integers, exponent: int) -> Doubles:
    """numerator · 2^exponent / divisor, rounded once; infinite where that is too large."""
    if exponent > 0:
        numerators = numerators << exponent
    else:
        divisors = divisors << -exponent
    try:
        return (numerators / divisors).astype(np.float64)
    except OverflowError:
        pairs = zip(numerators.tolist(), divisors.tolist(), strict=True)
        return np.array([_quotient(a, b) for a, b in pairs], np.float64)


def _quotient(numerator: int, divisor: int) -> float:
    try:
        return numerator / divisor
    except OverflowError:
        return inf if numerator > 0 else -inf


def _word(integers: Integers) -> Int64s:
    return (integers & ((1 << 64) - 1)).astype(np.uint64).view(np.int64)


def _mask(valid: Bools) -> npt.NDArray[np.bool_] | None:
    return None if valid.all() else ~valid
