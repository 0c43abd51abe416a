"""`/*+ LAZY(tau = '2 s', order = 'B, A') */`: parameters of algorithms, given or chosen."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import InputError, SqlError
from nilometer.local.database import LocalDatabase
from nilometer.model.algorithm_parameters import AlgorithmParameters
from nilometer.sql.catalog import Statistics
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
        results = run(algorithm.start(case.task, given), case.arrivals)
        numbers = sorted(tuple(one.number for one in result) for result in results)
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


TABLES = [
    "",
    "(buckets = 3)",
    "(buckets = '2, 3, 0')",
    "(buckets = 0)",
    "(buckets = 2, tau = '1 s')",
]
PARTLY_KEYED = [
    "A.k = B.k AND B.v = C.v",
    "A.k = B.k AND A.v < C.v",
    "A.k = B.k AND B.v = C.v AND A.v = C.v",
    "A.k = B.k AND B.k = C.k",
]


@pytest.mark.parametrize("condition", PARTLY_KEYED)
@pytest.mark.parametrize("given", TABLES)
def test_hash_tables_of_some_windows_change_no_answer(
    db: LocalDatabase, condition: str, given: str
) -> None:
    query = f"SELECT {{}} A.v, B.v, C.v FROM A, B, C WINDOW = 2 SECONDS WHERE {condition}"
    expected = sorted(map(tuple, rows_of(db.sql(query.format("")))))
    assert expected
    hinted = query.format(f"/*+ HYBRID{given} */")
    assert sorted(map(tuple, rows_of(db.sql(hinted)))) == expected
    running, results = db.query(hinted), []
    for first in range(0, 12, 3):
        running.restart()
        results += rows_of(running.feed({name: rows(first, first + 3) for name in "ABC"}))
    assert not set(map(tuple, results)) - set(expected)


def test_windows_that_share_a_key_have_hash_tables(db: LocalDatabase) -> None:
    """A and C one each, B one for each of its keys; without a key a window is scanned."""
    assert _lists(db, "A.k = B.k AND B.v = C.v", "(buckets = 3)") == [3, 6, 3]
    assert _lists(db, "A.k = B.k AND A.v < C.v", "(buckets = 3)") == [3, 3, 1]
    assert _lists(db, "A.k = B.k AND A.v < C.v", "(buckets = '0, 3, 0')") == [1, 3, 1]
    assert _lists(db, "A.k = B.k AND B.k = C.k", "") == [10, 10, 10]


def _lists(db: LocalDatabase, condition: str, given: str) -> list[int]:
    """How many lists of tuples the windows of a join are in."""
    hint = f"/*+ HYBRID{given} */"
    query = f"SELECT {hint} A.v FROM A, B, C WINDOW = 2 SECONDS WHERE {condition}"
    running = db.query(query).stage.buckets[0].operator.algorithm
    return [len(window.lists) for window in running.inner.windows]


@pytest.fixture
def known() -> LocalDatabase:
    """A is fast, so its window is large; the others hold a few rows."""
    made = LocalDatabase()
    for name, rate in (("A", 200.0), ("B", 3.0), ("C", 3.0)):
        stated = Statistics(rate, {"k": 5.0})
        made.create_stream(name, pa.table(rows(0, 12)), time="ts", statistics=stated)
    return made


def test_the_planner_chooses_the_windows_that_have_hash_tables(known: LocalDatabase) -> None:
    """Golab section 5.4: where they save more than it costs to expire tuples from buckets."""
    assert _parameters(known, "") == ["buckets: 10, 0, 0", "order: B, C, A"]
    assert _parameters(known, "(tau = '1 s')") == [
        "buckets: 10, 10, 10",
        "order: B, C, A",
        "tau: 1s",
    ]
    assert _parameters(known, "(buckets = '0, 5, 0')")[0] == "buckets: 0, 5, 0"
    assert _parameters(known, "(order = 'C, A, B')") == ["buckets: 10, 0, 0", "order: C, A, B"]
    made = LocalDatabase()
    for name in "ABC":
        made.create_stream(name, pa.table(rows(0, 12)), time="ts")
    assert _parameters(made, "") == ["order: A, B, C"], "nothing is known about rates"


def _parameters(db: LocalDatabase, given: str) -> list[str]:
    lines = explain_plan(db.plan(JOIN.format(f"/*+ HYBRID{given} */"))).splitlines()
    names = ("buckets:", "order:", "tau:")
    return sorted(line.strip() for line in lines if line.strip().startswith(names))


def test_explain_tells_parameters_and_the_order_that_was_chosen(db: LocalDatabase) -> None:
    given = explain_plan(db.plan(JOIN.format("/*+ LAZY(tau = '2 s', order = 'B,C,A') */")))
    assert "  tau: 2s" in given
    assert "  order: B, C, A" in given
    chosen = explain_plan(db.plan(JOIN.format("/*+ LAZY */")))
    assert "  order: A, B, C" in chosen, "nothing is known, so all orders cost the same"


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
        ("HYBRID(buckets = '1, 2')", "there are 2 numbers of buckets for 3 streams"),
        ("HYBRID(buckets = 'few')", "a number of 0 or more is expected, got 'few'"),
        ("MULTIWAY_HASH(buckets = 0)", "MULTIWAY_HASH has a hash table for every stream"),
        ("HW(buckets = 0)", "HW has a hash table for every stream, of 1 bucket or more, got 0"),
        ("XJOIN(cleanup = 0)", "a number of 1 or more is expected, got '0'"),
        ("HW(buckets = '1, 2, 3')", "have the same number of buckets"),
        ("WHOLE(tau = '1 s')", "there is no algorithm 'WHOLE'"),
    ],
)
def test_what_is_wrong_with_parameters_is_reported_at_the_hint(
    db: LocalDatabase, hint: str, message: str
) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        db.sql(JOIN.format(f"/*+ {hint} */"))
    assert caught.value.place is not None


@pytest.mark.parametrize(
    ("condition", "buckets", "names"),
    [("A.k = B.k AND A.v < C.v", "'3, 3, 3'", "C"), ("A.v < B.v", "3", "A, B, C")],
)
def test_a_hash_table_without_a_key_is_refused_at_the_hint(
    db: LocalDatabase, condition: str, buckets: str, names: str
) -> None:
    hint = f"/*+ HYBRID(buckets = {buckets}) */"
    query = f"SELECT {hint} A.v FROM A, B, C WINDOW = 2 S WHERE {condition}"
    with pytest.raises(SqlError) as caught:
        db.sql(query)
    assert caught.value.message == f"there is no key for a hash table of {names}"
    place = caught.value.place
    assert place is not None
    assert query[place.start : place.end] == hint


def test_numbers_of_buckets_are_for_all_streams_or_for_each() -> None:
    task = JoinTask.uniform(3, 5)
    assert buckets_of(AlgorithmParameters(buckets=(4,)), task) == [4, 4, 4]
    assert buckets_of(AlgorithmParameters(buckets=(1, 2, 3)), task) == [1, 2, 3]
    with pytest.raises(InputError, match="2 numbers of buckets"):
        buckets_of(AlgorithmParameters(buckets=(1, 2)), task)
