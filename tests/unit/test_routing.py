"""Routing: every combination of rows that may join meets in exactly one bucket."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from nilometer.kernels.routing import route_by_keys, route_without_key


def rows(n: int, keys: int) -> pa.RecordBatch:
    random = np.random.default_rng(n)
    return pa.RecordBatch.from_arrays(
        [pa.array(np.arange(n)), pa.array(random.integers(0, keys, n))], ["id", "k"]
    )


@pytest.mark.parametrize("buckets", [1, 2, 3, 8])
def test_equal_keys_meet_once(buckets: int) -> None:
    routing = route_by_keys((((1,),), ((1,),)), buckets)
    assert routing.buckets == buckets
    homes = []
    for stream, size in enumerate((50, 70)):
        parts = routing.split(rows(size, 20), stream)
        assert len(parts) == buckets
        assert sorted(i for part in parts for i in part.column("id").to_pylist()) == list(
            range(size)
        )
        homes.append({k: b for b, part in enumerate(parts) for k in part.column("k").to_pylist()})
    for key in homes[0].keys() & homes[1].keys():
        assert homes[0][key] == homes[1][key]


@pytest.mark.parametrize(("buckets", "streams"), [(1, 2), (2, 2), (4, 2), (6, 3), (8, 3), (7, 2)])
def test_without_a_key_every_combination_meets_in_one_bucket(buckets: int, streams: int) -> None:
    routing = route_without_key(((0, 1),) * streams, buckets)
    assert routing.buckets == buckets
    size = 9
    parts = [routing.split(rows(size + s, 5), s) for s in range(streams)]
    where = [{i: set() for i in range(size + s)} for s in range(streams)]
    for stream in range(streams):
        for bucket, part in enumerate(parts[stream]):
            for i in part.column("id").to_pylist():
                where[stream][i].add(bucket)
        assert {len(found) for found in where[stream].values()} == {routing.copies(stream)}
    for chosen in product(*(w.values() for w in where)):
        assert len(set.intersection(*chosen)) == 1


def test_without_a_key_rows_are_copied_as_rarely_as_possible() -> None:
    assert route_without_key(((0,),) * 2, 4).shares == (2, 2)
    assert route_without_key(((0,),) * 3, 8).shares == (2, 2, 2)
    assert sorted(route_without_key(((0,),) * 2, 2).shares) == [1, 2]


def test_all_buckets_get_work_without_a_key() -> None:
    for stream in range(2):
        for part in route_without_key(((0, 1),) * 2, 4).split(rows(1000, 1000), stream):
            assert len(part) > 400
