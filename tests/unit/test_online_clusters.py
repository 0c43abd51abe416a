"""Online clusters: against clusters by definition and scikit-learn; any split, window, restart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score

from nilometer.mining.clusters import FUNCTION
from nilometer.mining.group_by_ward import group_by_ward
from nilometer.mining.online_clusters import Cluster, OnlineClusters
from nilometer.mining.registry import find_function
from nilometer.mining.saved_state import decode, encode
from nilometer.mining.table_function import CheckedCall, MiningError
from tests.naive_mining_clusters import Group, NaiveClusters

Items = npt.NDArray[np.float64]

seeds = st.integers(0, 10_000)
cuts = st.lists(st.integers(0, 40), max_size=6)
variants = st.sampled_from(
    [
        {},
        {"metric": "cosine"},
        {"dimensions": 2},
        {"apart": 2.0},
        {"metric": "cosine", "dimensions": 3},
    ]
)


def _items(seed: int, number: int = 40, length: int = 5) -> Items:
    """Items around some centres; some come twice."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(4, length)) * chance.choice([0.5, 3, 30])
    items = centres[chance.integers(0, 4, number)] + chance.normal(size=(number, length))
    return items[np.sort(chance.integers(0, number, number))] if seed % 3 == 0 else items


def _split(number: int, places: Sequence[int]) -> list[slice]:
    borders = sorted({0, *(min(place, number) for place in places), number})
    return [slice(begin, end) for begin, end in pairwise(borders)]


def _same(some: list[Cluster], others: list[Cluster]) -> bool:
    """Bit for bit."""
    return [(c.cluster, c.size, c.share, c.radius, c.centre.tolist()) for c in some] == [
        (c.cluster, c.size, c.share, c.radius, c.centre.tolist()) for c in others
    ]


def _check(clusters: list[Cluster], naive: NaiveClusters, groups: list[Group]) -> None:
    total = sum(map(len, groups))
    assert [one.size for one in clusters] == [len(group) for group in groups]
    assert [one.cluster for one in clusters] == list(range(1, len(groups) + 1))
    for one, group in zip(clusters, groups, strict=True):
        assert one.centre == pytest.approx(naive.items[group].mean(axis=0), rel=1e-9, abs=1e-9)
        radius = np.sqrt(naive.scatter(group) / len(group))
        assert one.radius == pytest.approx(radius, rel=1e-6, abs=1e-9)
        assert one.share == pytest.approx(len(group) / total)


@given(seeds, st.integers(8, 24), st.integers(1, 4), st.none() | st.floats(0.1, 20))
def test_clusters_are_those_of_the_definition(
    seed: int, limit: int, clusters: int, apart: float | None
) -> None:
    items = np.random.default_rng(seed).normal(size=(26, 3)) * [1, 5, 20]
    operator = OnlineClusters(clusters, apart=apart, micro_clusters=limit)
    operator.add(items)
    naive = NaiveClusters(items, limit, clusters, apart)
    _check(operator.answer(), naive, naive.groups())


@given(seeds, cuts, variants)
def test_the_split_and_restarts_do_not_matter(
    seed: int, places: list[int], variant: dict[str, Any]
) -> None:
    items = _items(seed)
    whole = OnlineClusters(3, micro_clusters=12, **variant)
    whole.add(items)
    cut = OnlineClusters(3, micro_clusters=12, **variant)
    for part in _split(len(items), places):
        cut.add(items[part])
        saved = decode(encode(cut.save()))
        cut = OnlineClusters(3, micro_clusters=12, **variant)
        cut.load(saved)
    assert _same(cut.answer(), whole.answer())
    assert sum(one.size for one in whole.answer()) == len(items)


@given(seeds, cuts, variants, st.integers(1, 60))
def test_in_a_window_only_its_items_matter(
    seed: int, places: list[int], variant: dict[str, Any], window: int
) -> None:
    items = _items(seed)
    times = np.cumsum(np.random.default_rng(seed).integers(0, 4, len(items))) - 20
    operator = OnlineClusters(3, micro_clusters=8, window=window, **variant)
    for number, part in enumerate(_split(len(items), places)):
        operator.add(items[part], times[part])
        before = int(times[part][-1]) - window
        operator.forget(before)
        if number % 2:
            operator.answer()
            saved = decode(encode(operator.save()))
            operator = OnlineClusters(3, micro_clusters=8, window=window, **variant)
            operator.load(saved)
        inside = (times >= before) & (np.arange(len(items)) < part.stop)
        fresh = OnlineClusters(3, micro_clusters=8, window=window, **variant)
        fresh.add(items[inside], times[inside])
        assert _same(operator.answer(), fresh.answer())
        assert sum(one.size for one in operator.answer()) == inside.sum()


def test_in_a_window_clusters_are_those_of_the_panes_together() -> None:
    items = np.random.default_rng(4).normal(size=(40, 3)) * [1, 5, 20]
    times = np.arange(40)
    operator = OnlineClusters(3, micro_clusters=6, window=160)
    operator.add(items, times)
    operator.forget(5)
    naive = NaiveClusters(items, 6, 3)
    panes = [range(max(begin, 5), begin + 10) for begin in range(0, 40, 10)]
    parts = [part for pane in panes for part in naive.micro(pane)]
    _check(operator.answer(), naive, naive.groups(naive.condensed(parts)))
    operator.forget(1000)
    assert operator.answer() == []


@given(seeds, st.integers(0, 40), variants)
def test_merged_parts_have_all_items(seed: int, cut: int, variant: dict[str, Any]) -> None:
    items = _items(seed)
    first, second, whole = (OnlineClusters(3, micro_clusters=12, **variant) for _ in range(3))
    first.add(items[:cut])
    second.add(items[cut:])
    whole.add(items)
    first.merge(second)
    assert sum(one.size for one in first.answer()) == len(items)
    means = [
        sum(one.centre * one.share for one in operator.answer()) for operator in (first, whole)
    ]
    assert means[0] == pytest.approx(means[1], rel=1e-9, abs=1e-9)
    scatters = [_total_scatter(operator.answer()) for operator in (first, whole)]
    assert scatters[0] == pytest.approx(scatters[1], rel=1e-9)
    if cut == 0:
        assert _same(first.answer(), whole.answer())


def _total_scatter(clusters: list[Cluster]) -> float:
    """Of all items around the mean of all: it does not depend on how they are grouped."""
    mean = sum(one.centre * one.share for one in clusters)
    return sum(one.share * (one.radius**2 + ((one.centre - mean) ** 2).sum()) for one in clusters)


def test_clusters_of_the_later_part_have_the_later_numbers() -> None:
    first, second = OnlineClusters(3, micro_clusters=8), OnlineClusters(3, micro_clusters=8)
    first.add([[50, 0], [0, 0], [0, 1], [51, 0], [50, 1]])
    second.add([[0, 90], [1, 0], [0, 91], [52, 0], [1, 91], [0, 92]])
    first.merge(second)
    assert first.assign([[50, 0], [0, 0], [0, 90]]).tolist() == [1, 2, 3]
    assert [one.size for one in first.answer()] == [4, 3, 4]


def test_merged_windows_are_one_window() -> None:
    items, times = _items(1), np.arange(40)
    first, second, whole = (OnlineClusters(3, micro_clusters=8, window=50) for _ in range(3))
    first.add(items[:17], times[:17])
    second.add(items[17:], times[17:])
    whole.add(items, times)
    first.merge(second)
    assert _same(first.answer(), whole.answer())


@given(seeds, st.integers(1, 6))
def test_single_items_are_grouped_as_by_scikit_learn(seed: int, clusters: int) -> None:
    items = np.random.default_rng(seed).normal(size=(30, 4))
    groups = group_by_ward(np.ones(30, np.int64), items, clusters)
    expected = AgglomerativeClustering(clusters, linkage="ward").fit_predict(items)
    assert adjusted_rand_score(expected, groups) == 1


@given(seeds)
def test_a_weight_is_as_good_as_so_many_equal_places(seed: int) -> None:
    chance = np.random.default_rng(seed)
    places, weights = chance.normal(size=(12, 2)), chance.integers(1, 5, 12)
    alike = np.repeat(places, weights, axis=0)
    expected = AgglomerativeClustering(3, linkage="ward").fit_predict(alike)
    groups = group_by_ward(weights, places, 3)
    assert adjusted_rand_score(expected, np.repeat(groups, weights)) == 1


@pytest.mark.parametrize("options", [{}, {"metric": "cosine"}, {"dimensions": 32}])
@pytest.mark.parametrize("length", [3, 40, 500])
def test_each_item_is_with_its_own_where_clusters_are_far_apart(
    length: int, options: dict[str, Any]
) -> None:
    chance = np.random.default_rng(length)
    truth = chance.integers(0, 6, 1500)
    centres = np.vstack([np.eye(length)[:3], -np.eye(length)[:3]]) * 40 * np.sqrt(length)
    items = centres[truth] + chance.normal(size=(1500, length))
    operator = OnlineClusters(6, micro_clusters=64, **options)
    operator.add(items)
    assert adjusted_rand_score(truth, operator.assign(items)) == 1
    assert sorted(one.size for one in operator.answer()) == sorted(np.bincount(truth).tolist())


@pytest.mark.parametrize("length", [100, 300])
def test_in_many_dimensions_it_is_as_good_as_k_means_over_all_items(length: int) -> None:
    """The noise of an item is larger than the distance between centres."""
    chance = np.random.default_rng(length)
    truth = chance.integers(0, 5, 1500)
    centres = chance.normal(size=(5, length)) * 0.65
    items = centres[truth] + chance.normal(size=(1500, length))
    operator = OnlineClusters(5, micro_clusters=128)
    operator.add(items)
    batch = KMeans(5, n_init=4, random_state=0).fit_predict(items)
    assert adjusted_rand_score(batch, operator.assign(items)) > 0.95


def test_a_cluster_that_begins_late_is_not_swallowed() -> None:
    chance = np.random.default_rng(0)
    operator = OnlineClusters(3, micro_clusters=16)
    operator.add(chance.normal(size=(3000, 4)))
    operator.add(chance.normal([50, 0, 0, 0], size=(3000, 4)))
    operator.add(chance.normal([0, 60, 0, 0], size=(5, 4)))
    assert [one.size for one in operator.answer()] == [3000, 3000, 5]


def test_clusters_keep_their_numbers_while_items_come() -> None:
    chance = np.random.default_rng(3)
    centres = np.array([[0.0, 0], [100, 0], [0, 100]])
    operator = OnlineClusters(3, micro_clusters=16)
    operator.add(centres)
    for _ in range(20):
        truth = chance.integers(0, 3, 50)
        operator.add(centres[truth] + chance.normal(size=(50, 2)))
        assert operator.assign(centres).tolist() == [1, 2, 3]


def test_far_from_the_origin_distances_are_as_exact_as_near_it() -> None:
    items = _items(5)
    near, far = OnlineClusters(3, micro_clusters=12), OnlineClusters(3, micro_clusters=12)
    near.add(items)
    far.add(items + 2.0**24)
    for one, other in zip(near.answer(), far.answer(), strict=True):
        assert one.size == other.size
        assert one.radius == pytest.approx(other.radius, rel=1e-6)


def test_the_state_does_not_grow_with_the_stream() -> None:
    chance = np.random.default_rng(0)
    operator = OnlineClusters(3, micro_clusters=32)
    sizes = []
    for _ in range(40):
        operator.add(chance.normal(size=(50, 6)) * 10)
        sizes.append(len(encode(operator.save())))
    assert max(sizes) < 32 * (6 + 3) * 8 + 500


def test_items_that_cannot_be_used_are_left_out() -> None:
    operator = OnlineClusters(2, metric="cosine")
    operator.add([[1, np.nan], [0, 0], [3, 0], [1e200, 1], [1e-300, 0], [0, 5]])
    assert [(one.size, one.centre.tolist()) for one in operator.answer()] == [
        (2, [1, 0]),
        (1, [0, 1]),
    ]
    assert operator.assign([[np.inf, 1], [0, 0], [0, 1e-9]]).tolist() == [0, 0, 2]
    assert OnlineClusters().answer() == []
    assert OnlineClusters().assign([[1, 2]]).tolist() == [0]


def test_misuse_is_refused() -> None:
    operator = OnlineClusters()
    operator.add([[1, 2]])
    with pytest.raises(MiningError, match="items must be of one length"):
        operator.add([[1, 2, 3]])
    with pytest.raises(MiningError, match="only in a window"):
        operator.forget(3)
    with pytest.raises(MiningError, match="clustered in the same way"):
        operator.merge(OnlineClusters(3))
    operator.merge(OnlineClusters())
    with pytest.raises(MiningError, match="there is no metric taxi"):
        OnlineClusters(metric="taxi")
    with pytest.raises(MiningError, match="at least twice as many") as refused:
        _miner(clusters=9, micro_clusters=17)
    assert refused.value.argument == "micro_clusters"
    windowed = OnlineClusters(window=5)
    with pytest.raises(MiningError, match="every item has a time"):
        windowed.add([[1, 2]])
    windowed.add([[1, 2]], [3])
    with pytest.raises(MiningError, match="in order of time"):
        windowed.add([[1, 2]], [2])


def _miner(window: int | None = None, saved: Any = None, **options: Any) -> Any:
    defaults = {option.name: option.default for option in FUNCTION.options}
    call = CheckedCall({"item": pa.list_(pa.float64())}, defaults | options, window)
    assert [column.name for column in FUNCTION.results(call)] == NAMES
    return FUNCTION.miner(call, {}, saved)


NAMES = ["cluster", "size", "share", "radius", "centre"]


@pytest.mark.parametrize("window", [None, 10])
def test_the_table_function_leaves_out_what_is_no_item(window: int | None) -> None:
    assert find_function("CLUSTERS") is FUNCTION
    miner = _miner(window, clusters=1)
    batches = [
        [None, []],
        [[1.0, 2.0], None, [1.0], [None, 2.0], [3.0, 2.0]],
        [],
    ]
    for number, batch in enumerate(batches):
        column = pa.array(batch, pa.list_(pa.float64()))
        miner.add(np.full(len(batch), number), {"item": column})
        miner = _miner(window, decode(encode(miner.save())), clusters=1)
    answer = miner.answer()
    assert answer.schema.field("centre").type == pa.list_(pa.float64())
    assert answer.to_pylist() == [dict(zip(NAMES, (1, 2, 1.0, 1.0, [2.0, 2.0]), strict=True))]
    if window:
        miner.forget(2)
        assert miner.answer().num_rows == 0
