"""Joins in two modes: their periods, what they keep, and for what they wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from random import Random

import pytest

from nilometer.model.network import TimeNetwork
from nilometer.model.windows import PairWindow
from nilometer_papers.algorithms.conditions import Where
from nilometer_papers.algorithms.few_hash_join import OrderedHashTable
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm, run
from nilometer_papers.algorithms.join_task import JoinTask, names
from nilometer_papers.algorithms.mw_join import MWJoin
from nilometer_papers.algorithms.registry import ALGORITHMS, Windows
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple
from tests import oracle
from tests.arrivals import Case, arrive, generate

FORWARD = ["MW", "FEW", "FEW_HASH", "GCA", "LCA"]


def tuples(stream: int, *times: int, keys: Sequence[int] = ()) -> list[StreamTuple]:
    same = keys or [0] * len(times)
    return [StreamTuple(t, k, stream, n) for n, (t, k) in enumerate(zip(times, same, strict=True))]


def named(results: Iterable[Result]) -> list[str]:
    """As the papers write it, from one: a1 b2."""
    return sorted(
        " ".join(f"{'abcdef'[one.stream]}{one.number + 1}" for one in result) for result in results
    )


def held(algorithm: JoinAlgorithm, table: str) -> list[StreamTuple]:
    return [one for (one,) in algorithm.save().tables[table]]


def buffers(algorithm: JoinAlgorithm) -> list[list[StreamTuple]]:
    return [held(algorithm, str(i)) for i in range(algorithm.task.streams)]


def queues(algorithm: JoinAlgorithm) -> list[list[StreamTuple]]:
    return [held(algorithm, f"waiting {i}") for i in range(algorithm.task.streams)]


def mode(algorithm: JoinAlgorithm) -> int:
    """As TR-010 numbers them."""
    included, _ = algorithm.save().numbers["sweep"]
    return 2 if included == algorithm.task.streams else 1


def lengths(lines: Sequence[Sequence[StreamTuple]]) -> list[int]:
    return [len(line) for line in lines]


def times(result: Result) -> list[int]:
    return [one.time for one in result]


def number(one: StreamTuple) -> int:
    assert isinstance(one.key, int)
    return one.key


def test_figure_6_step_by_step() -> None:
    """TR-010 section 3.2; the report gives no times, these under a window of 10 make its steps."""
    a, b, c = tuples(0, 5, 20, 40), tuples(1, 8, 22, 24, 41), tuples(2, 15, 42)
    d, e = tuples(3, 2, 23, 43), tuples(4, 1, 21, 44)
    algorithm = MWJoin(JoinTask.uniform(5, 10))

    def bring(*arrivals: StreamTuple) -> list[str]:
        return named(result for one in arrivals for result in algorithm.process(one))

    # Steps 1 to 3: the period around a1 shrinks with b1 and c1; D is next.
    for arrival, period in ((a[0], [-5, 15]), (b[0], [-2, 15]), (c[0], [5, 15])):
        assert bring(arrival) == []
        assert algorithm.save().numbers["period"] == period
    # Step 4: d1 is left of the period and is dropped.
    assert bring(d[0]) == []
    assert lengths(queues(algorithm)) == [1, 1, 1, 0, 0]
    # Steps 5 and 6: d2 is right of the period; one around d2 begins, and stream D with it.
    assert bring(d[1]) == []
    assert algorithm.save().numbers["period"] == [13, 33]
    assert lengths(queues(algorithm)) == [1, 1, 1, 1, 0]
    # Steps 7 to 9: e1 is dropped, e2 is in the period; back at A, a1 is dropped.
    assert bring(e[0], e[1]) == []
    assert algorithm.save().numbers["period"] == [13, 31]
    assert lengths(queues(algorithm)) == [0, 1, 1, 1, 1]
    # Steps 9 and 10: a2 is in the period, b1 is dropped.
    assert bring(a[1]) == []
    assert algorithm.save().numbers["period"] == [13, 30]
    assert lengths(queues(algorithm)) == [1, 0, 1, 1, 1]
    assert mode(algorithm) == 1
    # Steps 11 and 12: b2 and c1 are in the period, which ends Mode 1.
    assert bring(b[1]) == ["a2 b2 c1 d2 e2"]
    assert mode(algorithm) == 2
    assert buffers(algorithm) == [[a[1]], [b[1]], [c[0]], [d[1]], [e[1]]]
    assert algorithm.save().numbers["period"] == [23 - 10, 15 + 10]
    # Mode 2 admits b3, and holds back what is right of the period.
    assert bring(b[2]) == ["a2 b3 c1 d2 e2"]
    assert bring(a[2], b[3], d[2], e[2]) == []
    assert mode(algorithm) == 2
    # The last of the next tuples ends it: c1 is dropped, and the period begins again with c2,
    # which is out of reach for all others that are buffered.
    assert bring(c[1]) == ["a3 b4 c2 d3 e3"]
    assert buffers(algorithm) == [[a[2]], [b[3]], [c[1]], [d[2]], [e[2]]]
    assert algorithm.save().numbers["period"] == [44 - 10, 40 + 10]
    assert algorithm.counters.removed == 5 + 5


def test_a_new_starting_tuple_joins_all_that_is_buffered() -> None:
    """Of the starting tuples a1 and b2 only b2 is new, and a2 has been admitted before."""
    arrivals = [*tuples(0, 1, 2, 9), *tuples(1, 0, 3, 9)]
    algorithm = MWJoin(JoinTask.uniform(2, 2))
    results = named(run(algorithm, sorted(arrivals)))
    assert results == ["a1 b1", "a1 b2", "a2 b1", "a2 b2", "a3 b3"]


def test_starting_tuples_that_all_were_joined_before_give_nothing_again() -> None:
    algorithm = MWJoin(JoinTask.uniform(2, 5))
    for one in (*tuples(0, 0, 2), *tuples(1, 1)):
        algorithm.process(one)
    assert algorithm.reach(0, 9) == algorithm.reach(1, 6) == []
    # a1 was dropped, and a2 and b1 are the starting tuples of the next period
    assert buffers(algorithm) == [tuples(0, 0, 2)[1:], tuples(1, 1)]
    assert algorithm.save().numbers["period"] == [-3, 6]


def test_results_wait_until_the_others_have_left_the_period() -> None:
    """Both members of (a2, b2) have come, but stream B might bring more for the period."""
    a, b = tuples(0, 0, 2), tuples(1, 0, 1, 4)
    algorithm = MWJoin(JoinTask.uniform(2, 1))
    results = [named(algorithm.process(one)) for one in (a[0], b[0], b[1], a[1])]
    assert results == [[], ["a1 b1"], ["a1 b2"], []]
    assert named(algorithm.process(b[2])) == ["a2 b2"]


@pytest.mark.parametrize("name", FORWARD)
def test_a_silent_stream_is_passed_when_it_says_so(name: str) -> None:
    a, b = tuples(0, 0, 2), tuples(1, 0, 1)
    algorithm = ALGORITHMS[name].start(JoinTask.uniform(2, 1))
    for one in (a[0], b[0], b[1], a[1]):
        algorithm.process(one)
    assert algorithm.reach(1, 1) == []
    assert named(algorithm.reach(1, 2)) == ["a2 b2"]


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.parametrize("silent", range(3))
def test_nothing_is_kept_for_what_a_silent_stream_cannot_bring_any_more(
    name: str, silent: int
) -> None:
    algorithm = ALGORITHMS[name].start(JoinTask.uniform(3, 10))
    for time in range(100):
        for stream in range(3):
            if stream == silent:
                algorithm.reach(stream, time)
            else:
                algorithm.process(StreamTuple(time, 0, stream, time))
        # The window, and the instant itself, in two streams; one more that came after the clock.
        assert sum(map(len, algorithm.save().tables.values())) <= 2 * 12


@pytest.mark.parametrize("name", FORWARD)
def test_what_a_silent_stream_cannot_meet_any_more_is_dropped(name: str) -> None:
    algorithm = ALGORITHMS[name].start(JoinTask.uniform(2, 10))
    for one in tuples(0, *range(100)):
        algorithm.process(one)
    algorithm.reach(1, 95)
    assert [one.time for one in queues(algorithm)[0]] == list(range(85, 100))
    assert algorithm.counters.removed == 85


def test_a_period_that_a_silent_stream_begins_has_no_end_yet() -> None:
    algorithm = MWJoin(JoinTask.uniform(2, 10))
    algorithm.process(StreamTuple(50, 0, 0, 0))
    algorithm.reach(1, 100)
    assert queues(algorithm) == [[], []]
    algorithm.process(StreamTuple(105, 0, 0, 1))
    assert len(algorithm.process(StreamTuple(103, 0, 1, 0))) == 1
    assert algorithm.save().numbers["period"] == [105 - 10, 103 + 10]


@pytest.mark.parametrize("name", FORWARD)
def test_buffers_hold_what_can_still_join_and_what_is_within_a_window(name: str) -> None:
    random, both_modes = Random(f"buffers of {name}"), set()
    for _ in range(40):
        case = generate(random, Windows.UNIFORM)
        algorithm, to_come = ALGORITHMS[name].start(case.task), set(case.results)
        for count, arrival in enumerate(case.arrivals, 1):
            to_come -= set(algorithm.process(arrival))
            if random.random() < 0.3:
                to_come -= set(pass_silence(algorithm, random, case.arrivals[count:]))
            assert case.task.window is not None
            check_periods(algorithm, case.task.window)
            check_nothing_is_lost(algorithm, to_come, case.arrivals[:count])
            both_modes.add(mode(algorithm))
    assert both_modes == {1, 2}


def pass_silence(
    algorithm: JoinAlgorithm, random: Random, rest: Sequence[StreamTuple]
) -> list[Result]:
    """One of the streams says when it will go on, at the earliest."""
    stream = random.randrange(algorithm.task.streams)
    return algorithm.reach(
        stream, min((one.time for one in rest if one.stream == stream), default=99)
    )


def check_periods(algorithm: JoinAlgorithm, window: int) -> None:
    """Mode 2 holds one window of tuples; Mode 1 has swept to where some streams meet."""
    held_back, buffered, streams = queues(algorithm), buffers(algorithm), algorithm.task.streams
    included, sweeping = algorithm.save().numbers["sweep"]
    everything = [one.time for line in buffered for one in line]
    if everything:
        assert max(everything) - min(everything) <= window
    if mode(algorithm) == 2:
        assert all(buffered)
        end = min(line[0].time for line in buffered) + window
        assert all(one.time > end for line in held_back for one in line)
        return
    swept = [(sweeping - 1 - k) % streams for k in range(included)]
    first = [(buffered[i] + held_back[i])[0].time for i in swept]
    assert not first or max(first) - min(first) <= window
    assert not buffered[sweeping]
    assert not held_back[sweeping]


def check_nothing_is_lost(
    algorithm: JoinAlgorithm, to_come: set[Result], arrived: Sequence[StreamTuple]
) -> None:
    needed = {one for result in to_come for one in result} & set(arrived)
    assert needed <= {one for line in buffers(algorithm) + queues(algorithm) for one in line}


def test_ordered_hash_tables_keep_the_order_of_all_and_of_each_bucket() -> None:
    table = OrderedHashTable()
    ones = tuples(0, 1, 2, 3, 4, keys=(7, 8, 7, 7))
    for one in ones:
        table.append(one)
    assert list(table.buckets[7]) == [ones[0], ones[2], ones[3]]
    assert [table.popleft(), table.popleft()] == ones[:2]
    assert {key: list(bucket) for key, bucket in table.buckets.items()} == {7: ones[2:]}


def test_few_hash_joins_test_no_values_and_no_times_but_one_per_admission() -> None:
    arrivals = sorted([*tuples(0, *range(50)), *tuples(1, *range(50))])
    algorithm = ALGORITHMS["FEW_HASH"].start(JoinTask.uniform(2, 100))
    for one in arrivals:
        algorithm.process(one)
    assert algorithm.counters.value_tests == 0
    assert algorithm.counters.probes == 99
    assert algorithm.counters.time_tests == 98 + 2 * 3
    assert algorithm.counters.results == 50 * 50


@pytest.mark.parametrize("name", [name for name in FORWARD if not ALGORITHMS[name].needs_key])
def test_conditions_of_any_kind(name: str) -> None:
    random = Random(f"conditions of {name}")
    rising = Where(lambda first, second: number(first) < number(second))
    for _ in range(20):
        arrivals = arrive(random, 3)
        case = Case(JoinTask.uniform(3, 5, rising), tuple(arrivals))
        expected = [
            result
            for result in product(*case.streams)
            if max(times(result)) - min(times(result)) <= 5
            and number(result[0]) < number(result[1]) < number(result[2])
        ]
        results = run(ALGORITHMS[name].start(case.task), arrivals)
        assert sorted(results) == sorted(expected)


@pytest.mark.parametrize("name", FORWARD)
def test_thousands_of_tuples(name: str) -> None:
    random = Random("thousands of tuples")
    lines = []
    for stream, pause in enumerate((3, 5, 40)):
        time, line = 0, []
        for n in range(9000 // pause):
            time += random.randint(0, 2 * pause)
            line.append(StreamTuple(time, random.randrange(8), stream, n))
        lines.append(line)
    delays = (0, 70, 30)
    arrivals = sorted(
        (one for line in lines for one in line), key=lambda one: one.time + delays[one.stream]
    )
    network = UNLIKE if ALGORITHMS[name].windows is Windows.ANY else UNIFORM
    rows = [[(one.time, one.key, 0, one.number) for one in line] for line in lines]
    expected = oracle.window_join(rows, network)
    results = run(ALGORITHMS[name].start(JoinTask(network)), arrivals)
    assert sorted(tuple(one.number for one in result) for result in results) == expected
    assert len(expected) > 1000


UNIFORM = JoinTask.uniform(3, 90).network
UNLIKE = TimeNetwork(names(3), (PairWindow("A", "B", -90, 60), PairWindow("B", "C", 5, 120)))
