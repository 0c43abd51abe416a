"""The buffers of the W-joins hold what is needed, and where the papers remove, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from nilometer.model.network import TimeNetwork
from nilometer.model.time import FOREVER
from nilometer.model.windows import PairWindow
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, Saved
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.registry import ALGORITHMS, Windows
from nilometer_papers.algorithms.ripple_join import RippleJoin
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.algorithms.xjoin import XJoin
from tests.arrivals import Case, generate
from tests.w_join_buffers import HASHED, Books

EAGER = [
    *("NLW", "HW", "BEW", "BEW_HASH", "NLW_PATH", "HW_PATH", "GRAPH_BEW"),
    *("NLW_PULLED", "HW_PULLED", "HW_BUCKETS"),
]
CLEANUP = 7


def cases(name: str) -> list[Case]:
    random = Random(f"buffers of {name}")
    return [generate(random, ALGORITHMS[name].windows) for _ in range(30)]


def steps(
    algorithm: JoinAlgorithm, books: Books, case: Case
) -> Iterator[tuple[StreamTuple, Saved]]:
    for arrival in case.arrivals:
        algorithm.process(arrival)
        books.enter(arrival)
        yield arrival, algorithm.save()


def check_all_that_is_needed_is_there(books: Books, saved: Saved) -> None:
    for table in books.tables:
        ever, held = set(books.ever(table)), saved.tables[table]
        assert len(set(held)) == len(held)
        assert set(held) <= ever
        assert {one for one in ever if not books.is_out(table, one)} <= set(held)


@pytest.mark.parametrize("name", EAGER)
def test_buffers_hold_what_can_still_join_and_where_visited_nothing_else(name: str) -> None:
    removed = 0
    for case in cases(name):
        algorithm, books = ALGORITHMS[name].start(case.task), Books(name, case.task)
        for arrival, saved in steps(algorithm, books, case):
            check_all_that_is_needed_is_there(books, saved)
            for table in books.visited(arrival):
                left = [one for one in saved.tables[table] if books.is_out(table, one)]
                assert not [one for one in left if name not in HASHED or one[0].key == arrival.key]
        removed += algorithm.counters.removed
    assert removed > 30


@pytest.mark.parametrize("name", sorted(HASHED))
def test_buckets_that_nobody_probes_are_updated_within_a_window(name: str) -> None:
    for case in cases(name):
        algorithm, books = ALGORITHMS[name].start(case.task), Books(name, case.task)
        since: dict[tuple[str, object], int] = {}
        for arrival, saved in steps(algorithm, books, case):
            for table in books.tables:
                new = [one for one in saved.tables[table] if arrival in one]
                since |= {(table, one): books.oldest(table) for one in new}
                if new:
                    limit = books.oldest(table) - window_of(books.task, table)
                    for one in saved.tables[table]:
                        came = since[table, one]
                        assert came >= limit or books.time(one) >= limit


@pytest.mark.parametrize("name", ["RIPPLE", "XJOIN"])
def test_only_a_cleanup_removes_and_it_removes_all_that_is_out(name: str) -> None:
    make = RippleJoin if name == "RIPPLE" else XJoin
    ever_removed = 0
    for case in cases(name):
        algorithm, books, removed = make(case.task, CLEANUP), Books(name, case.task), 0
        for n, (_, saved) in enumerate(steps(algorithm, books, case), 1):
            check_all_that_is_needed_is_there(books, saved)
            if n % CLEANUP == 0:
                removed = algorithm.counters.removed
                for table in books.tables:
                    assert not [one for one in saved.tables[table] if books.is_out(table, one)]
            assert algorithm.counters.removed == removed
        ever_removed += removed
    assert ever_removed > 30


@pytest.mark.parametrize("name", ["NLW", "HW", "BEW", "BEW_HASH", "GRAPH_BEW"])
def test_buffers_stay_small_where_no_key_comes_twice(name: str) -> None:
    algorithm = ALGORITHMS[name].start(JoinTask.uniform(3, 10))
    for time in range(600):
        for stream in range(3):
            algorithm.process(StreamTuple(time, (time, stream), stream, time))
        held = sum(len(table) for table in algorithm.save().tables.values())
        # Twice the window, and the tuple itself, in four buffers.
        assert held <= 4 * 22


@pytest.mark.parametrize("name", EAGER)
def test_nothing_is_kept_for_a_stream_that_has_ended(name: str) -> None:
    path = TimeNetwork(("A", "B"), (PairWindow("A", "B", 0, 10),))
    uniform = ALGORITHMS[name].windows is not Windows.PATH
    algorithm = ALGORITHMS[name].start(JoinTask.uniform(2, 10) if uniform else JoinTask(path))
    algorithm.reach(0, FOREVER)
    for time in range(50):
        algorithm.process(StreamTuple(time, time, 1, time))
        assert not any(algorithm.save().tables.values())


@pytest.mark.parametrize("name", EAGER)
def test_a_clock_alone_empties_the_buffers(name: str) -> None:
    for case in cases(name)[:5]:
        algorithm = ALGORITHMS[name].start(case.task)
        for arrival in case.arrivals:
            algorithm.process(arrival)
        for stream in range(case.task.streams):
            algorithm.reach(stream, 10_000)
        assert not any(algorithm.save().tables.values())


def window_of(task: JoinTask, table: str) -> int:
    *side, place = table.split()
    return task.bounds[int(place)][int(place) + 1] if side else task.bounds[0][1]
