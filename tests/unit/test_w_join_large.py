"""The W-joins on thousands of tuples, with DuckDB as the judge, and on conditions of any kind."""

from __future__ import annotations

from random import Random

import pytest

from nilometer.model.network import TimeNetwork
from nilometer.model.windows import PairWindow
from nilometer_papers.algorithms.conditions import Where
from nilometer_papers.algorithms.join_algorithm import run
from nilometer_papers.algorithms.join_task import JoinTask, names
from nilometer_papers.algorithms.registry import ALGORITHMS, Windows
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from tests import naive, oracle
from tests.arrivals import Case, generate

WINDOW = 400
TASKS = {
    Windows.UNIFORM: JoinTask.uniform(3, WINDOW),
    Windows.PATH: JoinTask(
        TimeNetwork(names(3), (PairWindow("A", "B", 0, 300), PairWindow("B", "C", 0, 500)))
    ),
    Windows.ANY: JoinTask(
        TimeNetwork(names(3), (PairWindow("A", "B", -100, 400), PairWindow("A", "C", -300, 300)))
    ),
}
W_JOINS = ["NLW", "HW", "BEW", "BEW_HASH", "RIPPLE", "XJOIN", "NLW_PATH", "HW_PATH", "GRAPH_BEW"]
NESTED_LOOPS = ["NLW", "BEW", "RIPPLE", "NLW_PATH", "GRAPH_BEW"]


def arrivals() -> list[StreamTuple]:
    """Streams of different rates; C is late by more than the window."""
    random = Random("large")
    arriving = []
    for stream, (count, pause, delay) in enumerate(((1500, 8, 0), (1500, 8, 50), (750, 16, 1000))):
        time = 0
        for number in range(count):
            time += random.randint(0, 2 * pause)
            arriving.append((time + delay, StreamTuple(time, random.randrange(20), stream, number)))
    return [one for _, one in sorted(arriving)]


@pytest.fixture(scope="module")
def judged() -> dict[Windows, list[tuple[int, ...]]]:
    streams = Case(TASKS[Windows.UNIFORM], tuple(arrivals())).streams
    rows = [[(one.time, one.key, 0, one.number) for one in line] for line in streams]
    return {form: oracle.window_join(rows, task.network) for form, task in TASKS.items()}


@pytest.mark.parametrize("name", W_JOINS)
def test_duckdb_finds_the_same(name: str, judged: dict[Windows, list[tuple[int, ...]]]) -> None:
    windows = ALGORITHMS[name].windows
    results = run(ALGORITHMS[name].start(TASKS[windows]), arrivals())
    numbers = sorted(tuple(one.number for one in result) for result in results)
    assert len(numbers) > 1000
    assert numbers == judged[windows]


@pytest.mark.parametrize("name", NESTED_LOOPS)
def test_nested_loops_join_on_any_condition(name: str) -> None:
    """Keys no more than 2 apart, and those of earlier streams not above those of later ones."""
    random, total = Random(f"conditions of {name}"), 0
    for _ in range(30):
        case = generate(random, ALGORITHMS[name].windows)
        near = Where(lambda a, b: a.key <= b.key <= a.key + 2)  # type: ignore[operator]
        task = JoinTask(case.task.network, near)
        results = run(ALGORITHMS[name].start(task), case.arrivals)
        numbers = sorted(tuple(one.number for one in result) for result in results)
        streams = [[(one.time, one.key, 0, one.number) for one in line] for line in case.streams]
        assert numbers == naive.window_join(streams, case.task.network, keyed=False, test=_near)
        total += len(numbers)
    assert total > 100


def _near(rows: tuple[tuple[int, int, int, int], ...]) -> bool:
    keys = [row[1] for row in rows]
    return keys == sorted(keys) and max(keys) - min(keys) <= 2
