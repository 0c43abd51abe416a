"""Numbers as digits, so that their sums stay exact under additions and removals.

A number is sign · Σ digit[i] · 2^(32 (place + i)) in units of a power of two. Digits of one place
are summed as plain integers; `kernels.exact_results` converts such totals back to numbers. Totals
stay exact as long as fewer than MOST_COPIES numbers are summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arrays import Int64s, UInt64s

BITS: Final = 32
MASK: Final = np.int64((1 << BITS) - 1)
MOST_COPIES: Final = 1 << 31
SMALLEST_DOUBLE: Final = -1074
"""The unit of doubles: all of them are multiples of 2^-1074."""

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Digits:
    """Some numbers, split into digits."""

    signs: Int64s
    places: Int64s
    digits: tuple[Int64s, ...]
    """Lowest first, none negative, all below 2^32."""

    def times(self, other: Digits) -> Digits:
        """Their products with others, in the product of the units."""
        size = len(self.digits) + len(other.digits) + 1
        sums = [np.zeros(len(self.signs), np.int64) for _ in range(size)]
        for i, one in enumerate(self.digits):
            for j, another in enumerate(other.digits):
                product = one.view(np.uint64) * another.view(np.uint64)
                sums[i + j] += (product & np.uint64(MASK)).view(np.int64)
                sums[i + j + 1] += (product >> np.uint64(BITS)).view(np.int64)
        for i in range(len(sums) - 1):
            sums[i + 1] += sums[i] >> BITS
            sums[i] &= MASK
        return Digits(self.signs * other.signs, self.places + other.places, tuple(sums))


def digits_of(column: pa.Array) -> Digits:
    """The digits of numbers or intervals, without NULL, NaN and infinities."""
    if pat.is_decimal(column.type):
        return _of_decimals(column)
    if pat.is_floating(column.type):
        return _of_doubles(column.cast(pa.float64()).to_numpy())
    return _of_integers(column.cast(pa.int64()).to_numpy())


def unit_of(kind: pa.DataType) -> int:
    """The exponent of the power of two that is the unit of numbers of a type."""
    return SMALLEST_DOUBLE if pat.is_floating(kind) else 0


def _of_doubles(values: Doubles) -> Digits:
    bits = values.view(np.int64)
    exponents = (bits >> 52) & 0x7FF
    mantissas = bits & ((1 << 52) - 1)
    mantissas |= (exponents > 0).astype(np.int64) << 52
    offsets = np.maximum(exponents, 1) - 1
    shifts = offsets & (BITS - 1)
    low = (mantissas & MASK) << shifts
    middle = (low >> BITS) + (((mantissas >> BITS) << shifts) & MASK)
    high = (((mantissas >> BITS) << shifts) >> BITS) + (middle >> BITS)
    return Digits((bits >> 63) | 1, offsets >> 5, (low & MASK, middle & MASK, high))


def _of_integers(values: Int64s) -> Digits:
    sizes = np.abs(values).view(np.uint64)  # the smallest integer becomes 2^63, as it should
    return Digits((values >> 63) | 1, np.zeros_like(values), _halves(sizes))


def _of_decimals(column: pa.Array) -> Digits:
    words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)
    words = words[column.offset : column.offset + len(column)]
    low, high = words[:, 0].copy(), words[:, 1].copy()
    signs = (high >> 63) | 1
    if column.type.precision <= 18:
        return Digits(signs, np.zeros_like(signs), _halves(np.abs(low).view(np.uint64)))
    negative = signs < 0
    high[negative] = ~high[negative] + (low[negative] == 0)
    low[negative] = -low[negative]
    digits = (*_halves(low.view(np.uint64)), *_halves(high.view(np.uint64)))
    return Digits(signs, np.zeros_like(signs), digits)


def _halves(words: UInt64s) -> tuple[Int64s, Int64s]:
    low, high = words & np.uint64(MASK), words >> np.uint64(BITS)
    return low.view(np.int64), high.view(np.int64)


def add_digits(numbers: Digits, copies: Int64s, rows: Int64s, size: int) -> dict[int, Int64s]:
    """What copies of numbers add to each place, in each row; by place.

    Only places to which something was added are present.
    """
    factors = numbers.signs * copies
    used = _used_places(numbers.places, len(numbers.digits))
    numbering = np.zeros(len(used), np.int64)
    numbering[used] = np.arange(np.count_nonzero(used))
    sums = np.zeros((np.count_nonzero(used), size), np.int64)
    for i, digits in enumerate(numbers.digits):
        targets = numbering[numbers.places + i] * size + rows
        np.add.at(sums.reshape(-1), targets, factors * digits)
    places = np.flatnonzero(used).tolist()
    return {place: sums[i] for i, place in enumerate(places) if sums[i].any()}


def _used_places(places: Int64s, length: int) -> npt.NDArray[np.bool_]:
    occurring = np.bincount(places) > 0 if len(places) else np.zeros(0, np.bool_)
    used = np.zeros(len(occurring) + length - 1, np.bool_)
    for i in range(length):
        used[i : i + len(occurring)] |= occurring
    return used
