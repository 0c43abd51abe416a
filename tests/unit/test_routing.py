"""Routing: every combination of rows that may join meets in exactly one bucket."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from nilometer.kernels.chunk import StreamKeys
from nilometer.kernels.routing import (
    Routing,
    route_by_keys,
    route_in_parts,
    route_with_rows,
    route_without_key,
)
from nilometer.kernels.rows_window import RowsWindow


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
        assert {len(copies) for copies in where[stream].values()} == {routing.copies(stream)}
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


def chain(streams: int) -> tuple[StreamKeys, ...]:
    """Neighbours are linked: column 0 leads on, column 1 back."""
    last = streams - 1
    return tuple(
        tuple((0,) if k == s else (1,) if k == s - 1 else None for k in range(last))
        for s in range(streams)
    )


@pytest.mark.parametrize("buckets", [1, 2, 4, 6, 7, 8])
@pytest.mark.parametrize(
    "keys",
    [
        chain(3),
        chain(4),
        (((0,), None), ((0,), (1,)), ((0,), (1,)), (None, None)),
        (((0, 1), (1,)), ((0, 1), None), (None, (1,))),
    ],
)
def test_what_several_keys_link_meets_in_one_bucket(
    keys: tuple[StreamKeys, ...], buckets: int
) -> None:
    check_meetings(route_by_keys(keys, buckets), keys)
    for parts in (one for one in range(2, buckets + 1) if buckets % one == 0):
        for stream in range(len(keys)):
            routing = route_in_parts(keys, buckets, parts, stream, (0, 1))
            assert routing.buckets == buckets
            check_meetings(routing, keys)


def check_meetings(routing: Routing, keys: tuple[StreamKeys, ...]) -> None:
    everything = rows(12, 3)
    table = list(zip(*everything.to_pydict().values(), strict=True))
    where = []
    for stream in range(len(keys)):
        homes: dict[tuple[int, ...], set[int]] = {row: set() for row in table}
        for bucket, part in enumerate(routing.split(everything, stream)):
            for row in zip(*part.to_pydict().values(), strict=True):
                homes[row].add(bucket)
        assert {len(buckets) for buckets in homes.values()} == {routing.copies(stream)}
        where.append(homes)
    for chosen in product(table, repeat=len(keys)):
        if belong_together(keys, chosen):
            common = [homes[row] for homes, row in zip(where, chosen, strict=True)]
            assert len(set.intersection(*common)) == 1


def belong_together(keys: tuple[StreamKeys, ...], chosen: tuple[tuple[int, ...], ...]) -> bool:
    for columns in zip(*keys, strict=True):
        both = zip(columns, chosen, strict=True)
        if len({tuple(row[c] for c in own) for own, row in both if own is not None}) > 1:
            return False
    return True


def test_the_rows_of_a_key_are_dealt_out_to_the_parts_alone() -> None:
    routing = route_in_parts((((1,),), ((1,),)), 8, 4, 1, (0, 1))
    assert (routing.shares, routing.copies(0), routing.copies(1)) == ((2, 4), 4, 1)
    hot = rows(4000, 1)
    dealt = [len(part) for part in routing.split(hot, 1)]
    assert sorted(dealt)[:4] == [0] * 4
    assert min(sorted(dealt)[4:]) > 900
    assert [len(part) for part in routing.split(hot, 0) if len(part)] == [4000] * 4


def test_several_keys_copy_as_rarely_as_possible() -> None:
    assert route_by_keys(chain(3), 4).shares == (2, 2)
    one_for_all = (((0,), None), ((0,), (1,)), ((0,), (1,)))
    assert route_by_keys(one_for_all, 8).shares == (8, 1)


def window(*partition: int) -> RowsWindow:
    return RowsWindow(3, partition, (0, 1), None)


def test_rows_windows_are_split_by_a_key_within_their_partitions() -> None:
    keys: tuple[StreamKeys, ...] = (((0,), (1,)), ((1,), (0,)))
    route = route_with_rows(keys, (window(1, 0), None), 4)
    assert (route.key, route.routing.buckets, route.undivided) == (0, 4, ())
    route = route_with_rows(keys, (window(1), window(0)), 4)
    assert (route.key, route.routing.places, route.undivided) == (1, (((1,),), ((0,),)), ())


@pytest.mark.parametrize(
    ("keys", "windows", "undivided"),
    [
        ((((0,),), ((0,),)), (window(), None), (0,)),
        ((((0,),), ((0,),)), (window(0), window(1)), (1,)),
        ((((0, 1),), ((0, 1),)), (window(0), None), (0,)),
        ((((0,), (1,)), ((0,), (1,))), (window(0), window(1)), ()),
        (chain(3), (window(0), None, None), (0,)),
        (((), ()), (None, window(0)), (1,)),
    ],
)
def test_a_rows_window_that_no_common_key_divides_needs_one_bucket(
    keys: tuple[StreamKeys, ...],
    windows: tuple[RowsWindow | None, ...],
    undivided: tuple[int, ...],
) -> None:
    route = route_with_rows(keys, windows, 4)
    assert (route.key, route.routing.buckets, route.undivided) == (None, 1, undivided)
    assert [len(part) for part in route.routing.split(rows(5, 2), 0)] == [5]
