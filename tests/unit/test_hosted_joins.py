"""The papers' algorithms as operators: the naive join, for any split, order and restart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels.window_join import Residual
from nilometer.local.run_stage import LocalStage
from nilometer.model.algorithm_parameters import AlgorithmParameters
from nilometer.model.network import TimeNetwork
from nilometer.model.windows import PairWindow, RangeWindow, UniformWindow
from nilometer.operators import stream_buffer
from nilometer.operators.stage import Stage
from nilometer_papers.algorithms import hosted_join
from nilometer_papers.algorithms.hosted_join import HostedJoinSpec
from nilometer_papers.algorithms.registry import ALGORITHMS, NO_PARAMETERS, Windows
from tests import naive
from tests.cases import JoinCase, join_cases, networks, splits
from tests.graph_cases import GraphCase, key_graphs, stream_rows

CASES = 18

HOSTED = [name for name, one in ALGORITHMS.items() if one.windows is not Windows.ROWS]


@st.composite
def hosted_cases(draw: st.DrawFn, name: str) -> GraphCase:
    """Joins that an algorithm can take: keys of all forms, streams that have ended, lateness."""
    n = draw(st.integers(2, 4))
    network = draw(_networks(ALGORITHMS[name].windows, n))
    keys = draw(_common_keys(n) if ALGORITHMS[name].needs_key else key_graphs(n))
    lateness = tuple(draw(st.sampled_from((0, 0, 1, 4))) for _ in range(n))
    streams = tuple(draw(stream_rows(late, False, 18 - 3 * n)) for late in lateness)
    ended = frozenset(i for i in range(n) if draw(st.integers(0, 4)) == 0)
    return GraphCase(network, keys, (None,) * n, streams, lateness, ended)


@st.composite
def _networks(draw: st.DrawFn, windows: Windows, n: int) -> TimeNetwork:
    names, length = tuple("ABCD"[:n]), st.integers(0, 8)
    match windows:
        case Windows.UNIFORM:
            return TimeNetwork(names, (UniformWindow(draw(length)),))
        case Windows.PER_STREAM:
            return TimeNetwork(names, tuple(RangeWindow(one, draw(length)) for one in names))
        case Windows.PATH:
            steps = [PairWindow(a, b, 0, draw(length)) for a, b in pairwise(names)]
            return TimeNetwork(names, tuple(steps))
    return draw(networks(n))


def _common_keys(n: int):
    """One column, two of one key, two keys; of real numbers, too."""
    forms = (((1,),), ((3,),), ((2, 3),), ((1,), (3,)))
    return st.sampled_from([(form,) * n for form in forms])


def host(stage: Stage, name: str, given: AlgorithmParameters = NO_PARAMETERS) -> Stage:
    return replace(stage, operator=HostedJoinSpec(stage.operator, name, given))


def rows_of(batches: Sequence) -> list[tuple[int, ...]]:
    columns = [[c.to_pylist() for c in batch.columns] for batch in batches]
    return sorted(row for one in columns for row in zip(*one, strict=True))


def check_store(running: LocalStage) -> None:
    """Nothing is in the store but what the operator refers to."""
    for store, bucket in zip(running.stores, running.buckets, strict=True):
        refs = [ref.id for buffer in bucket.operator.stored for ref in buffer.refs]
        assert sorted(store.chunks) == sorted(refs)


def watch(running: LocalStage, latest: dict[tuple[int, int], int]) -> None:
    """Let every tuple be compared with the latest of its stream so far."""
    for number, bucket in enumerate(running.buckets):
        algorithm = bucket.operator.algorithm

        def process(arrival, bucket=number, given=algorithm.process):
            before = latest.get((bucket, arrival.stream), arrival.time)
            assert arrival.time >= before
            latest[bucket, arrival.stream] = arrival.time
            return given(arrival)

        algorithm.process = process


def run(case: GraphCase, parts, stage: Stage, restarts: Sequence[bool]) -> tuple[list, int]:
    """The results of micro-batches, and the watermark in the end."""
    running, batches, latest = LocalStage(stage), [], {}
    watch(running, latest)
    for stream in case.ended:
        running.hold(stream, case.batch(stream))
    for part, restart in zip(parts, restarts, strict=True):
        if restart:
            running = running.resume(running.snapshot())
            watch(running, latest)
        rows = [None if i in case.ended else case.batch(i, *own) for i, own in enumerate(part)]
        batches += running.feed(rows)
        check_store(running)
    return rows_of(batches), min(running.buckets[0].watermarks.marks)


def check_against_naive_join(
    name: str, data: st.DataObject, given: Callable[[GraphCase], AlgorithmParameters] | None = None
) -> None:
    case = data.draw(hosted_cases(name))
    parameters = given(case) if given else NO_PARAMETERS
    parts = data.draw(splits(case))
    restarts = [data.draw(st.booleans()) for _ in parts]
    stage = host(case.stage(buckets=data.draw(st.sampled_from((1, 2, 3)))), name, parameters)
    results, watermark = run(case, parts, stage, restarts)
    every = naive.graph_join(case)
    assert [one for one in results if one[0] < watermark] == naive.graph_join(case, watermark)
    assert len(set(results)) == len(results)
    assert set(results) <= set(every)
    everything = [case.batch(i) for i in range(len(case.streams))]
    assert rows_of(LocalStage(stage).run_all(everything)) == every


@pytest.mark.parametrize("name", HOSTED)
@settings(max_examples=CASES)
@given(data=st.data())
def test_all_results_before_the_watermark_and_none_wrong_or_twice(
    name: str, data: st.DataObject
) -> None:
    check_against_naive_join(name, data)


@pytest.mark.parametrize("tau", [None, 3])
@settings(max_examples=CASES)
@given(data=st.data())
def test_the_same_where_several_keys_are_in_a_bucket(tau: int | None, data: st.DataObject) -> None:
    def given(case: GraphCase) -> AlgorithmParameters:
        return AlgorithmParameters(tau, buckets=(2 if case.keys[0] else 0,))

    check_against_naive_join("HYBRID", data, given)


@pytest.mark.soak
@pytest.mark.limit(1800)
@pytest.mark.parametrize("name", HOSTED)
@settings(max_examples=5 * CASES, derandomize=False)
@given(data=st.data())
def test_the_same_for_ever_new_cases(name: str, data: st.DataObject) -> None:
    check_against_naive_join(name, data)


@pytest.mark.parametrize("name", [name for name in HOSTED if not ALGORITHMS[name].needs_key])
@settings(max_examples=CASES // 3)
@given(data=st.data())
def test_predicates_are_asked_of_the_results(name: str, data: st.DataObject) -> None:
    case = data.draw(join_cases(max_streams=3, max_rows=8))
    network = data.draw(_networks(ALGORITHMS[name].windows, len(case.streams)))
    case = JoinCase(network, case.streams, case.lateness)
    close = Residual(((0, 2), (1, 2)), lambda c: abs(c[0].to_numpy() - c[1].to_numpy()) <= 1)
    even = Residual(((1, 2),), lambda c: c[0].to_numpy() % 2 == 0)
    stage = host(case.stage(residuals=(close, even)), name)
    running, batches = LocalStage(stage), []
    for part in data.draw(splits(case)):
        batches += running.feed([case.batch(i, *own) for i, own in enumerate(part)])
    watermark = min(running.buckets[0].watermarks.marks)
    settled = [one for one in rows_of(batches) if one[0] < watermark]
    expected = naive.window_join(
        case.streams,
        network,
        test=lambda rows: (
            abs(rows[0][2] - rows[1][2]) <= 1
            and rows[1][2] % 2 == 0
            and max(row[0] for row in rows) < watermark
        ),
    )
    assert sorted(one[1:] for one in settled) == expected


@pytest.mark.parametrize("name", ["MW", "BEW_HASH", "GENERAL_NLJ"])
@settings(max_examples=CASES // 2)
@given(data=st.data())
def test_many_micro_batches_merge_chunks_and_many_results_come_in_blocks(
    name: str, data: st.DataObject
) -> None:
    case = data.draw(join_cases(max_streams=3, max_rows=40))
    network = data.draw(_networks(Windows.UNIFORM, len(case.streams)))
    case = JoinCase(network, case.streams, case.lateness)
    running, batches = LocalStage(host(case.stage(), name)), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_buffer, "FANOUT", 3)
        patch.setattr(hosted_join, "MOST_RESULTS", 4)
        for part in data.draw(splits(case, max_batches=30)):
            running = running.resume(running.snapshot())
            batches += running.feed([case.batch(i, *own) for i, own in enumerate(part)])
            check_store(running)
    watermark = min(running.buckets[0].watermarks.marks)
    expected = naive.window_join(
        case.streams, network, test=lambda rows: max(row[0] for row in rows) < watermark
    )
    assert sorted(one[1:] for one in rows_of(batches) if one[0] < watermark) == expected


@pytest.mark.parametrize("name", HOSTED)
def test_rows_are_dropped_with_the_tuples_of_the_algorithm(name: str) -> None:
    windows = ALGORITHMS[name].windows
    window = PairWindow("A", "B", 0, 3) if windows is Windows.PATH else UniformWindow(3)
    rows = tuple((10 * n, n % 2, 0, n) for n in range(100))
    case = JoinCase(TimeNetwork(("A", "B"), (window,)), (rows, rows), (0, 0))
    running = LocalStage(host(case.stage(), name))
    for first in range(0, 100, 10):
        running.feed([case.batch(i, first, first + 10) for i in range(2)])
    hosted = running.buckets[0].operator
    tables = hosted.algorithm.save().tables.values()
    used = {one for table in tables for combination in table for one in combination}
    for stream, held in enumerate(hosted.rows_held):
        own = sum(one.stream == stream for one in used)
        assert own <= held <= 2 * own


def test_rows_that_waited_come_once_however_their_chunks_lie() -> None:
    late = tuple((time, 1, 0, n) for n, time in enumerate((10, 9, 8, 7, 6, 12, 13, 40)))
    case = JoinCase(TimeNetwork(("A", "B"), (UniformWindow(20),)), (late, ((9, 1, 0, 0),)), (4, 0))
    running, batches = LocalStage(host(case.stage(), "BEW")), []
    for first, last in ((0, 5), (5, 6), (6, 7), (7, 8)):
        running = running.resume(running.snapshot())
        batches += running.feed([case.batch(0, first, last), case.batch(1, first, last)])
    expected = [(max(time, 9), number, 0) for time, _, _, number in late[:-1]]
    assert rows_of(batches) == sorted(expected)
