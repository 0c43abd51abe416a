"""Bucket numbers that Spark's shuffle sends to different partitions.

Spark places a row by a hash of its bucket number, and the hashes of 0, 1, 2, … collide (0 and
1 fall into the same of two partitions). So bucket b travels under a number chosen
to land in a partition of its own. The numbers depend only on how many there are, and 0 is
always among them: a query resumed with another number of buckets finds its old state.
"""

from __future__ import annotations

from typing import Final

_MASK: Final = 0xFFFFFFFF
_SEED: Final = 42


def bucket_numbers(buckets: int) -> list[int]:
    """The numbers under which buckets 0 … buckets-1 travel.

    >>> bucket_numbers(2)
    [0, 2]
    """
    numbers: list[int] = []
    taken: set[int] = set()
    candidate = 0
    while len(numbers) < buckets:
        partition = partition_of(candidate, buckets)
        if partition not in taken:
            taken.add(partition)
            numbers.append(candidate)
        candidate += 1
    return numbers


def partition_of(number: int, partitions: int) -> int:
    """The partition to which Spark's hash partitioning sends an INT column with this value."""
    hashed = murmur3(number)
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return signed % partitions


def murmur3(number: int) -> int:
    """Spark's hash of an INT: Murmur3 x86 32 of its four bytes with seed 42."""
    k = (number * 0xCC9E2D51) & _MASK
    k = (_rotate(k, 15) * 0x1B873593) & _MASK
    h = (_rotate(_SEED ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    return h ^ (h >> 16)


def _rotate(word: int, by: int) -> int:
    return ((word << by) | (word >> (32 - by))) & _MASK
