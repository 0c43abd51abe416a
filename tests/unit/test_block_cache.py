"""Blocks that were decoded lately are kept, and never more of them than there is room for."""

from __future__ import annotations

import random

import pyarrow as pa

from nilometer.log.block_cache import BlockCache


def block(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array([number] * 100, pa.int64())})


def test_it_keeps_the_newest_within_its_bound() -> None:
    size = block(0).nbytes
    cache, chance = BlockCache(5 * size), random.Random(1)
    newest: list[int] = []
    for _ in range(500):
        number = chance.randrange(12)
        decoded: list[int] = []

        def decode(number: int = number, decoded: list[int] = decoded) -> pa.RecordBatch:
            decoded.append(number)
            return block(number)

        assert cache.get(number, decode).equals(block(number))
        assert bool(decoded) is (number not in newest)
        newest = [*[one for one in newest if one != number][-4:], number]
        assert len(cache._blocks) <= 5
