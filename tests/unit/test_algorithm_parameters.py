"""`/*+ LAZY(tau = '2 s', order = 'B, A') */`: parameters of algorithms, given or chosen."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import InputError, SqlError
from nilometer.local.database import LocalDatabase
from nilometer.model.algorithm_parameters import AlgorithmParameters
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer_papers.algorithms.in_time_order import InTimeOrder
from nilometer_papers.algorithms.join_algorithm import run
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.lazy_nlj import LazyNLJ
from nilometer_papers.algorithms.parameters import buckets_of
from nilometer_papers.algorithms.registry import ALGORITHMS, Windows
from tests.arrivals import generate
from tests.unit.test_algorithm_hints import rows, rows_of

JOIN = "SELECT {} A.v, B.v, C.v FROM A, B, C WINDOW = 2 SECONDS WHERE A.k = B.k AND B.k = C.k"
VALUES = {
    "tau": 3,
    "order": None,
    "buckets": (3,),
    "cleanup": 5,
}


@pytest.fixture
def db() -> LocalDatabase:
    made = LocalDatabase(buckets=2)
    for name in "ABC":
        made.create_stream(name, pa.table(rows(0, 12)), time="ts")
    return made


@pytest.mark.parametrize(
    "name",
    [n for n, one in ALGORITHMS.items() if one.parameters and one.windows is not Windows.ROWS],
)
def test_parameters_change_no_result(name: str) -> None:
    random, algorithm = Random(f"parameters of {name}"), ALGORITHMS[name]
    for _ in range(15):
        case = generate(random, algorithm.windows)
        order = list(case.task.network.streams)
        random.shuffle(order)
        every: dict[str, Any] = {**VALUES, "order": tuple(order)}
        given = AlgorithmParameters(**{one: every[one] for one in algorithm.parameters})
        found = run(algorithm.start(case.task, given), case.arrivals)
        numbers = sorted(tuple(one.number for one in result) for result in found)
        assert numbers == case.expected


def test_parameters_reach_the_algorithm() -> None:
    task = JoinTask.per_stream([100, 100, 100])
    started = ALGORITHMS["LAZY_NLJ"].start(task, AlgorithmParameters(tau=7, order=("C", "a", "B")))
    assert isinstance(started, InTimeOrder)
    lazy = started.inner
    assert isinstance(lazy, LazyNLJ)
    assert lazy._every == 7
    windows = [[window for window, _, _ in loops._loops] for loops in lazy._loops]
    a, b, c = lazy.windows
    assert windows == [[c, b], [c, a], [a, b]]


@pytest.mark.parametrize(
    "hint",
    [
        "/*+ LAZY(tau = '500 ms', order = 'C, A, B') */",
        "/*+ multiway_hash(buckets = 3) */",
        "/*+ HYBRID(buckets = '1, 2, 3', tau = '1 s') */",
        "/*+ XJOIN(cleanup = 4, buckets = 2) */",
    ],
)
def test_a_hint_with_parameters_changes_no_answer(db: LocalDatabase, hint: str) -> None:
    expected = sorted(map(tuple, rows_of(db.sql(JOIN.format("")))))
    assert expected
    assert sorted(map(tuple, rows_of(db.sql(JOIN.format(hint))))) == expected


def test_explain_tells_parameters_and_the_order_that_was_chosen(db: LocalDatabase) -> None:
    given = explain_plan(db.plan(JOIN.format("/*+ LAZY(tau = '2 s', order = 'B,C,A') */")))
    assert "  tau: 2s" in given
    assert "  order: B, C, A" in given
    chosen = explain_plan(db.plan(JOIN.format("/*+ LAZY */")))
    assert "  order: " in chosen


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ("MW(tau = '1 s')", "MW has no parameter tau"),
        ("LAZY(taw = '1 s')", "there is no parameter 'taw' of algorithms"),
        ("LAZY(order = 'A, B')", "an order names every stream once, got A, B"),
        ("LAZY(order = 'A, B, B')", "an order names every stream once, got A, B, B"),
        ("LAZY(tau = '0 s')", "tau must be longer than 0"),
        ("LAZY(tau = 'soon')", "cannot read tau, got 'soon'"),
        ("LAZY(tau)", "a hint parameter must have the form name = text or number"),
        ("LAZY(tau = '1 s', tau = '2 s')", "the parameter tau is given twice"),
        ("MULTIWAY_HASH(buckets = '1, 2')", "there are 2 numbers of buckets for 3 streams"),
        ("MULTIWAY_HASH(buckets = 0)", "a number of 1 or more is expected, got '0'"),
        ("HW(buckets = '1, 2, 3')", "have the same number of buckets"),
        ("WHOLE(tau = '1 s')", "there is no algorithm 'WHOLE'"),
    ],
)
def test_what_is_wrong_with_parameters_is_told_at_the_hint(
    db: LocalDatabase, hint: str, message: str
) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        db.sql(JOIN.format(f"/*+ {hint} */"))
    assert caught.value.place is not None


def test_numbers_of_buckets_are_for_all_streams_or_for_each() -> None:
    task = JoinTask.uniform(3, 5)
    assert buckets_of(AlgorithmParameters(buckets=(4,)), task) == [4, 4, 4]
    assert buckets_of(AlgorithmParameters(buckets=(1, 2, 3)), task) == [1, 2, 3]
    with pytest.raises(InputError, match="2 numbers of buckets"):
        buckets_of(AlgorithmParameters(buckets=(1, 2)), task)
