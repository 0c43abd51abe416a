"""What buckets save and what looking into them for old tuples costs, by counts (Golab Figure 4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pytest

from nilometer_papers.algorithms.multiway_hash_join import MultiwayHashJoin
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.experiment import Profile, Row, Setting
from nilometer_papers.experiments.golab import figure_4b
from nilometer_papers.experiments.golab.looks import CLAIMS, TABLES, allowed, best, measure
from nilometer_papers.experiments.golab.workload import make_workload
from nilometer_papers.experiments.measured import select


class LookedInto(tuple[deque[StreamTuple], ...]):
    """Buckets that count how often all of them are gone through, as `expire` does."""

    times = 0

    def __iter__(self) -> Iterator[deque[StreamTuple]]:
        self.times += 1
        return super().__iter__()


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return measure(Setting(Profile.QUICK))


def test_all_buckets_are_looked_into_at_each_expiration(rows: list[Row]) -> None:
    workload = make_workload(figure_4b.LOADS, 40 * 53, seed=1)
    every = figure_4b.TAU * workload.unit
    algorithm = MultiwayHashJoin(workload.task, figure_4b.allot(12, 1), every=every)
    workload.fill(algorithm)
    buckets = [LookedInto(window.lists) for window in algorithm.windows]
    for window, lists in zip(algorithm.windows, buckets, strict=True):
        window.lists = lists
    for one in workload.measured:
        algorithm.process(one)
    looks = sum(one.times * len(one) for one in buckets) / len(workload.measured)
    (row,) = select(rows, case=TABLES, at=12)
    assert looks == pytest.approx(float(row["looks"]), rel=0.15)


@pytest.mark.parametrize(("look", "fewer"), [(0, False), (1, False), (100, False), (260, True)])
def test_the_best_table_is_small_only_if_looks_cost_hundreds(
    rows: list[Row], look: float, fewer: bool
) -> None:
    assert (best(rows, TABLES, look) <= 8) == fewer
    assert look > 1 or best(rows, TABLES, look) == 14


def test_the_best_intervals_of_the_paper_say_that_looks_cost_tens(rows: list[Row]) -> None:
    found = allowed(rows)
    assert list(found) == ["HASH2", "HASH10", "HASH30"]
    assert all(1 < first <= last < 60 for first, last in found.values())
    assert all(claim.check(rows).holds for claim in CLAIMS)
