"""The k-th smallest of changing values, at many instants and in many groups at once.

Elements are counts of values that are added one after another, group by group. A query asks
for the k-th smallest after some of its group's elements. All queries descend together through
the bits of the values' ranks: in each round elements are parted, in order, into those with a
zero bit and those with a one, and a query goes where its k-th value is (a wavelet matrix).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nilometer.kernels.arrays import Int64s, changes


@dataclass(frozen=True, slots=True)
class Elements:
    """Counts of values, ordered by group and by when they are added."""

    groups: Int64s
    values: Int64s
    counts: Int64s


def kth_smallest(elements: Elements, begins: Int64s, ends: Int64s, ranks: Int64s) -> Int64s:
    """The value with a rank (from 0) among elements begins[q] … ends[q]-1, all of one group.

    There must be such a value, and no value may count less than zero times.
    """
    order = order_by_two(elements.groups, elements.values)
    groups, values = elements.groups[order], elements.values[order]
    new_group = changes(groups)
    distinct = np.cumsum(new_group | changes(values)) - 1
    firsts = distinct[np.flatnonzero(new_group)]
    codes = np.empty(len(order), np.int64)
    codes[order] = distinct - firsts[np.cumsum(new_group) - 1]
    chosen = _descend(codes, elements.counts, begins, ends, ranks)
    values_of = np.zeros(len(order), np.int64)
    values_of[distinct] = values
    first_of_element = np.empty(len(order), np.int64)
    first_of_element[order] = firsts[np.cumsum(new_group) - 1]
    answers: Int64s = values_of[first_of_element[begins] + chosen]
    return answers


def _descend(codes: Int64s, counts: Int64s, begins: Int64s, ends: Int64s, ranks: Int64s) -> Int64s:
    """The code with a rank among each query's elements."""
    chosen = np.zeros(len(ranks), np.int64)
    ranks = ranks.copy()
    for bit in reversed(range(int(codes.max(initial=0)).bit_length())):
        zero = (codes >> bit) & 1 == 0
        zeros = _running(zero.astype(np.int64))
        copies = _running(np.where(zero, counts, 0))
        at_begin, at_end = zeros[begins], zeros[ends]
        smaller = copies[ends] - copies[begins]
        right = ranks >= smaller
        ranks -= np.where(right, smaller, 0)
        chosen |= right.astype(np.int64) << bit
        begins = np.where(right, zeros[-1] + begins - at_begin, at_begin)
        ends = np.where(right, zeros[-1] + ends - at_end, at_end)
        parted = np.concatenate([np.flatnonzero(zero), np.flatnonzero(~zero)])
        codes, counts = codes[parted], counts[parted]
    return chosen


def order_by_two(major: Int64s, minor: Int64s) -> Int64s:
    """An order by two integers, the first of which are not negative; faster than lexsort."""
    by_minor = np.argsort(minor)
    bits = len(minor).bit_length()
    if int(major.max(initial=0)).bit_length() + bits > 63:
        return np.lexsort((minor, major))
    packed = (major[by_minor] << bits) | np.arange(len(minor))
    packed.sort()
    order: Int64s = by_minor[packed & ((1 << bits) - 1)]
    return order


def _running(values: Int64s) -> Int64s:
    """The sum of the values before each place, and of all."""
    sums = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    return sums
