"""STEAM's executor: operators that pull find all results, each once, and wait for no stream."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from nilometer.errors import InputError
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.m_tuple import one_tuple
from nilometer_papers.algorithms.nile.answer import AnswerOperator
from nilometer_papers.algorithms.nile.pipeline import Approach, Pipeline, Scheduling
from nilometer_papers.algorithms.registry import ALGORITHMS, Windows
from nilometer_papers.algorithms.steam.executor import Clock, Executor
from nilometer_papers.algorithms.steam.multiway_join import MultiwayJoin
from nilometer_papers.algorithms.steam.plan_operator import END, PlanOperator
from nilometer_papers.algorithms.steam.select import Project, Select
from nilometer_papers.algorithms.steam.source import Reading, Status, TimedSource
from nilometer_papers.algorithms.steam.stream_manager import StreamManager
from nilometer_papers.algorithms.steam.stream_scan import SensorRow, StreamScan
from nilometer_papers.algorithms.steam.w_join import Release, WJoin, WJoinSpec
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.columnar import serve_columnar
from nilometer_papers.experiments.service import fingerprint_of
from nilometer_papers.experiments.workloads.exponential import Rate, exponential_streams
from tests import nile_plans
from tests.arrivals import generate

WORKS = [name for name, one in ALGORITHMS.items() if one.windows is Windows.UNIFORM]


def start(streams: Sequence[Sequence[StreamTuple]]) -> tuple[Executor, list[StreamScan]]:
    executor = Executor(streams, Clock(lambda: 0))
    scans = [StreamScan(executor.manager, [SensorRow((), one)]) for one in executor.sources]
    return executor, scans


def left_deep(scans: Sequence[PlanOperator], spec: WJoinSpec) -> PlanOperator:
    root, *rest = scans
    for scan in rest:
        root = WJoin(root, scan, spec)
    return root


def results_of(executor: Executor, root: PlanOperator) -> list[tuple[int, ...]]:
    return sorted(tuple(m.number for m in one.members) for _, one in executor.run(root))


@pytest.mark.parametrize("release", Release)
@pytest.mark.parametrize("buckets", [1, 3])
def test_w_joins_that_pull_find_what_there_is(release: Release, buckets: int) -> None:
    random, count = Random("pulled"), 0
    for _ in range(40):
        case = generate(random, Windows.UNIFORM)
        executor, scans = start(case.streams)
        assert case.task.window is not None
        root = left_deep(scans, WJoinSpec(case.task.window, buckets=buckets, release=release))
        assert results_of(executor, root) == case.expected
        count += len(case.expected)
    assert count > 40


@pytest.mark.parametrize("name", WORKS)
def test_every_algorithm_runs_as_a_plan_operator(name: str) -> None:
    random = Random(f"pulled {name}")
    for _ in range(8):
        case = generate(random, Windows.UNIFORM)
        executor, scans = start(case.streams)
        root = MultiwayJoin(scans, ALGORITHMS[name].start(case.task))
        assert results_of(executor, root) == case.expected


@pytest.mark.parametrize("approach", [Approach.ITA, Approach.NTA])
def test_plans_of_nile_run_by_pulling(approach: Approach) -> None:
    random, compared = Random(f"pulled {approach}"), 0
    for _ in range(30):
        plan = nile_plans.generate_plan(random, 2)
        arrivals = nile_plans.generate_inputs(random)
        running = Pipeline(
            AnswerOperator(nile_plans.operator(plan)), approach, lambda: 0, Scheduling.PULLED
        )
        running.replay(arrivals)
        running.finish()
        inputs = [(one.stream, one.time, one.values) for one in arrivals]
        for at in range(-1, max((one.time for one in arrivals), default=0) + 22):
            expected = nile_plans.evaluate(plan, inputs, at)
            assert nile_plans.fold(running.changes, at) == expected
            compared += expected.total()
    assert compared > 100


def tuples(stream: int, *times: int) -> list[StreamTuple]:
    return [StreamTuple(time, "k", stream, number) for number, time in enumerate(times)]


def test_figure_5_alternates_and_answers_with_null_when_both_inputs_are_empty() -> None:
    executor, scans = start([tuples(0, 1, 2, 3), tuples(1, 1, 9)])
    join = WJoin(scans[0], scans[1], WJoinSpec(2))
    join.open()
    assert join.get_next() is None
    assert (join.nulls, scans[0].nulls, scans[1].nulls) == (1, 1, 1)
    executor.clock.jump(3)
    while executor.manager.poll():
        pass
    pulled = [join.get_next() for _ in range(4)]
    assert [one and (one.members[0].number, one.members[1].number) for one in pulled] == [
        *((0, 0), (1, 0), (2, 0)),
        None,
    ]
    executor.clock.jump(9)
    executor.manager.poll()
    assert join.get_next() is None  # 9 joins nothing, and all of stream 0 is out.
    assert list(join.buffers[0]) == []
    executor.manager.poll()
    assert join.get_next() is END


def test_a_silent_stream_keeps_no_other_from_being_read() -> None:
    executor, scans = start([tuples(0, *range(1, 50)), tuples(1, *range(1, 50)), tuples(2, 1000)])
    root = left_deep(scans, WJoinSpec(0))
    root.open()
    executor.clock.jump(60)
    while executor.manager.poll():
        pass
    assert root.get_next() is None
    assert [len(scan.queue) for scan in scans] == [0, 0, 0]
    assert root.children[0].emitted == 49


def test_one_reading_of_figure_5_lets_higher_joins_starve() -> None:
    """A join that finds nothing and always has input never gives control back to those above."""
    many = [tuples(0, *range(0, 400, 2)), tuples(1, *range(1, 400, 2)), tuples(2, 0)]
    left = {}
    for release in Release:
        executor, scans = start(many)
        root = left_deep(scans, WJoinSpec(0, release=release))
        root.open()
        executor.clock.jump(1000)
        while executor.manager.poll():
            pass
        root.get_next()
        left[release] = len(scans[0].queue)
    assert left == {Release.BLOCKED: 0, Release.BOTH_PROCESSED: 199}


def test_select_asks_on_and_project_makes_members_anew() -> None:
    executor, scans = start([tuples(0, 1, 2, 3, 4)])
    even = Select(scans[0], lambda members: members[0].number % 2 == 1)
    twice = Project(even, lambda members: members * 2)
    assert results_of(executor, twice) == [(1, 1), (3, 3)]
    assert even.emitted == 2
    assert twice.newest == (4,)


def test_a_scan_registers_only_the_sensors_that_are_chosen() -> None:
    clock = Clock(lambda: 0)
    manager = StreamManager()
    sources = [TimedSource(tuples(i, 0, 0), clock) for i in range(4)]
    rows = [SensorRow((i,), source) for i, source in enumerate(sources)]
    scan = StreamScan(manager, rows, lambda static: static[0] in (1, 3))
    with pytest.raises(InputError, match="not open"):
        scan.get_next()
    scan.open()
    assert manager.streams == 2
    manager.poll()
    pulled = [scan.get_next() for _ in range(3)]
    assert pulled == [one_tuple(tuples(1, 0)[0]), one_tuple(tuples(3, 0)[0]), None]
    manager.poll()
    scan.close()
    assert manager.streams == 0
    assert sources[1].read_stream() == Reading(Status.END)


def test_a_stream_that_two_queries_want_is_read_once() -> None:
    manager, (source,) = StreamManager(), [TimedSource(tuples(0, 0, 0), Clock(lambda: 0))]
    scans = [StreamScan(manager, [SensorRow((), source)]) for _ in range(2)]
    for scan in scans:
        scan.open()
    assert manager.streams == 1
    assert manager.poll() == 1
    scans[0].close()
    assert manager.poll() == 1
    assert len(scans[1].queue) == 2


def test_tuples_of_a_stream_must_come_in_the_order_of_time() -> None:
    manager, source = StreamManager(), TimedSource(tuples(0, 0, -1), Clock(lambda: 0))
    manager.register(source, manager.create_streams_queue())
    manager.poll()
    with pytest.raises(InputError, match="older than the one before it"):
        manager.poll()


def test_executor_and_columnar_engine_agree() -> None:
    arrivals = exponential_streams([Rate(100, 20), Rate(10, 20), Rate(50, 20)], 1500, seed=3)
    task = JoinTask.uniform(3, 500_000)
    streams = [[one for one in arrivals if one.stream == i] for i in range(3)]
    executor, scans = start(streams)
    results = [one.members for _, one in executor.run(left_deep(scans, WJoinSpec(500_000)))]
    expected = serve_columnar(task, arrivals)
    assert len(results) == expected.results > 100
    assert fingerprint_of(results) == expected.fingerprint
