"""Convert totals of digits back into numbers; see `kernels.exact_sums`.

Every result depends on the exact sum only, not on the order of additions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.exact_sums import BITS, MASK, Doubles

Totals: TypeAlias = Mapping[int, Int64s]
"""The sums of the digits of each place."""

Integers: TypeAlias = npt.NDArray[Any]
"""Python integers, which are unbounded."""


def rounded(totals: Totals, unit: int, size: int) -> tuple[Doubles, Int64s]:
    """The exact sums as doubles x and exponents e, so that x · 2^e is the nearest double.

    Results below the smallest normal double are exact; x is at most 2^64.
    """
    first, digits, negative = _magnitudes(totals, size)
    filled = digits != 0
    top = len(digits) - 1 - np.argmax(filled[::-1], axis=0)
    bottom = np.argmax(filled, axis=0)
    padded = np.concatenate([np.zeros((2, size), np.int64), digits]).reshape(-1).view(np.uint64)
    at = top * size + np.arange(size)
    a, b, c = padded[at + 2 * size], padded[at + size], padded[at]
    length = np.maximum(np.frexp(a.astype(np.float64))[1], 1)
    bits = length.astype(np.uint64)
    head = (a << (np.uint64(64) - bits)) | (b << (np.uint64(32) - bits)) | (c >> bits)
    rest = (c << (np.uint64(64) - bits)) != 0
    head |= (rest | ((bottom < top - 2) & (a != 0))).astype(np.uint64)
    values = head.astype(np.float64)
    values[negative] *= -1.0
    return values, BITS * (top + first) + unit - 64 + length


def scaled(values: Doubles, exponents: Int64s) -> Doubles:
    """x · 2^e, infinite where that is too large for a double."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(values, exponents.astype(np.int32))


def _magnitudes(totals: Totals, size: int) -> tuple[int, Int64s, Bools]:
    """The first place, the digits of the sums' sizes from there on, and which are negative."""
    first, digits, top = _carried(totals, size)
    negative: Bools = top < 0
    if negative.any():
        opposite = {place: -values[negative] for place, values in totals.items()}
        _, flipped, top[negative] = _carried(opposite, int(np.count_nonzero(negative)))
        digits[:, negative] = flipped
    return first, np.concatenate([digits, top[None, :]]), negative


def _carried(totals: Totals, size: int) -> tuple[int, Int64s, Int64s]:
    """The first place, digits from there on, and the signed digit above them."""
    first, last = (min(totals), max(totals)) if totals else (0, 0)
    digits = np.zeros((last - first + 1, size), np.int64)
    carry = np.zeros(size, np.int64)
    for row in range(len(digits)):
        place = totals.get(first + row)
        # the carry is below 2^32, so this stays in range: a total of digits is below 2^63 - 2^32
        whole = carry if place is None else place + carry
        np.bitwise_and(whole, MASK, out=digits[row])
        carry = whole >> BITS
    return first, digits, carry


def as_int64(totals: Totals, size: int) -> tuple[Int64s, Bools]:
    """The sums of integers, and which of them do not fit."""
    _, digits, top = _carried({0: np.zeros(size, np.int64), **totals}, size)
    high = top if len(digits) == 1 else digits[1] + (top << BITS)
    fits: Bools = (high >= -(1 << 31)) & (high < 1 << 31)
    return (high << BITS) | digits[0], ~fits


def as_decimals(totals: Totals, kind: pa.DataType, valid: Bools) -> tuple[pa.Array, Bools]:
    """The sums of decimals, NULL where they are not valid, and which do not fit the type."""
    size = len(valid)
    _, digits, top = _carried({**dict.fromkeys(range(4), np.zeros(size, np.int64)), **totals}, size)
    low = digits[0] | (digits[1] << BITS)
    high = digits[2] | (digits[3] << BITS)
    limit = 10**kind.precision - 1
    fits = (top == high >> 63) & _between(low, high, -limit, limit)
    values = np.stack([low, high], axis=1)
    return decimals_of_words(values, kind, valid), ~fits


def decimals_of_words(words: Int64s, kind: pa.DataType, valid: Bools) -> pa.Array:
    """Decimals from their low and high words."""
    buffers = [None if valid.all() else _bitmap(valid), pa.py_buffer(np.ascontiguousarray(words))]
    return pa.Array.from_buffers(kind, len(valid), buffers)


def _between(low: Int64s, high: Int64s, minimum: int, maximum: int) -> Bools:
    def at_least(a: Int64s, b: Int64s, bound: int) -> Bools:
        word = np.uint64(bound & ((1 << 64) - 1))
        result: Bools = (b > bound >> 64) | ((b == bound >> 64) & (a.view(np.uint64) >= word))
        return result

    return at_least(low, high, minimum) & ~at_least(low, high, maximum + 1)


def _bitmap(valid: Bools) -> pa.Buffer:
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def as_integers(totals: Totals, size: int, first: int = 0) -> Integers:
    """The sums as Python integers, in units of a place that is not above any of the totals."""
    result: Integers = np.zeros(size, dtype=object)
    for place, values in totals.items():
        result += values.astype(object) << (BITS * (place - first))
    return result
