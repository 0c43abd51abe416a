"""Pictures of plans: windows and what they follow from, operators, contradictions."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise, permutations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import ContradictionError, SqlWindowError, WindowError
from nilometer.local.database import LocalDatabase
from nilometer.model.network import TimeNetwork
from nilometer.model.time import FOREVER
from nilometer.model.windows import PairWindow
from nilometer.sql.catalog import Statistics
from nilometer.sql.explain.picture import QueryPicture, picture_contradiction, picture_plan
from nilometer.sql.explain.picture_graph import PicturedBound, PicturedWindow

_READING = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", tz="UTC")), ("v", pa.float64())])
_PATH = """SELECT A.k, A.ts, C.ts FROM S1 A, S2 B, S3 C
WINDOW (A,B) = 5 SECONDS AND DWINDOW (B,C) = 10 SECONDS WHERE A.k = B.k AND B.k = C.k"""


@pytest.fixture
def db() -> LocalDatabase:
    made = LocalDatabase(buckets=4)
    for name in ("S1", "S2", "S3"):
        made.create_stream(name, _READING.empty_table(), time="ts", statistics=Statistics(100.0))
    made.create_table("T", pa.schema([("id", pa.int64())]).empty_table())
    return made


def pictured(db: LocalDatabase, sql: str) -> QueryPicture:
    return picture_plan(db.plan(sql))


def windows(picture: QueryPicture, graph: int = 0) -> dict[str, PicturedWindow]:
    return {one.first + one.second: one for one in picture.graphs[graph].windows}


def test_a_path_has_a_derived_window_that_says_what_it_follows_from(db: LocalDatabase) -> None:
    picture = pictured(db, _PATH)
    by_name = windows(picture)
    assert {name: one.is_derived for name, one in by_name.items()} == {
        "AB": False,
        "AC": True,
        "BC": False,
    }
    assert by_name["AC"].after == PicturedBound(
        "A",
        "C",
        15_000_000,
        None,
        ("B at most 5s after A (WINDOW(A, B) = 5s)", "C at most 10s after B (DWINDOW(B, C) = 10s)"),
    )
    assert by_name["BC"].before == PicturedBound("C", "B", 0, 0, ())
    assert picture.emits == "append"
    assert picture.columns == ("k", "ts", "ts", "_time")


def test_streams_say_what_they_keep_and_until_when(db: LocalDatabase) -> None:
    first, second, _ = pictured(db, _PATH).graphs[0].streams
    assert (first.name, first.relation, first.rate) == ("A", "S1", 100.0)
    assert first.columns == ("k", "ts")
    assert [(one.stream, one.bound) for one in first.expiry] == [
        ("B", 5_000_000),
        ("C", 15_000_000),
    ]
    assert first.kept.startswith("15s, about 1,500 rows: until B has passed t + 5s")
    assert second.kept.startswith("10s")


def test_a_window_that_others_bind_more_is_tightened(db: LocalDatabase) -> None:
    sql = """SELECT A.k FROM S1 A, S2 B, S3 C
    WINDOW(A,B) = 1 S AND WINDOW(B,C) = 1 S AND WINDOW(A,C) = 1 MINUTE"""
    tightened = windows(pictured(db, sql))["AC"]
    assert tightened.is_tightened
    assert not tightened.is_derived
    assert tightened.after is not None
    assert (tightened.after.limit, tightened.after.given) == (2_000_000, 60_000_000)


def test_static_tables_and_rows_windows(db: LocalDatabase) -> None:
    picture = pictured(
        db, "SELECT A.k FROM S1 [RANGE 5 S] A, S2 [ROWS 5] B, T WHERE A.k = B.k AND T.id = A.k"
    )
    (graph,) = picture.graphs
    assert [(one.name, one.rows) for one in graph.streams] == [("A", None), ("B", "[ROWS 5]")]
    assert graph.streams[1].expiry == ()


def test_changes_have_a_graph_for_each_join_and_a_tree(db: LocalDatabase) -> None:
    grouped = _PATH.replace("A.ts, C.ts", "COUNT(*) AS n") + " GROUP BY A.k"
    picture = pictured(db, grouped)
    (graph,) = picture.graphs
    assert windows(picture)["AC"].is_derived, "a lifetime is not a window that somebody wrote"
    assert graph.written == ("WINDOW(A, B) = 5s", "DWINDOW(B, C) = 10s")
    assert picture.emits == "changelog"
    assert picture.plan is not None
    assert picture.plan.head.startswith("Groups by")
    assert len(picture.stages) >= 2


def test_ranges_that_somebody_wrote_stay(db: LocalDatabase) -> None:
    sql = """SELECT A.k, COUNT(*) FROM S1 [RANGE 1 MINUTE] A, S2 [RANGE 5 S] B
    WHERE A.k = B.k GROUP BY A.k"""
    graph = pictured(db, sql).graphs[0]
    assert graph.written == ("A [RANGE 60s]", "B [RANGE 5s]")
    assert not any(one.is_derived for one in graph.windows)


def test_set_operations_and_unions_have_several_graphs(db: LocalDatabase) -> None:
    minus = pictured(db, "SELECT k FROM S1 [RANGE 5 S] EXCEPT SELECT k FROM S2 [RANGE 5 S]")
    assert [graph.streams[0].name for graph in minus.graphs] == ["S1", "S2"]
    assert minus.graphs[0].streams[0].kept == "in the answer for 5s"
    union = pictured(db, "SELECT k FROM S1 UNION ALL SELECT k FROM S2")
    assert [graph.title for graph in union.graphs] == ["Query 1", "Query 2"]
    assert union.plan is not None
    assert len(union.plan.inputs) == 2


def test_what_is_used_twice_is_drawn_once(db: LocalDatabase) -> None:
    sql = """WITH w AS (SELECT k, COUNT(*) AS n FROM S1 [RANGE 5 S] GROUP BY k)
    SELECT x.k FROM w x, w y WHERE x.k = y.n"""
    picture = pictured(db, sql)
    assert len(picture.graphs) == len({id(one) for one in picture.graphs})
    json.dumps(asdict(picture))


def test_contradictory_windows_are_drawn_as_their_cycle(db: LocalDatabase) -> None:
    sql = """SELECT A.k FROM S1 A, S2 B, S3 C WINDOW(A,B) BETWEEN 5 S AND 9 S
    AND WINDOW(B,C) BETWEEN 5 S AND 9 S AND WINDOW(A,C) = 1 S"""
    with pytest.raises(SqlWindowError) as raised:
        db.plan(sql)
    cause = raised.value.__cause__
    assert isinstance(cause, ContradictionError)
    assert sum(cause.limits) < 0
    picture = picture_contradiction(cause)
    assert picture.emits == "nothing"
    assert picture.cycle is not None
    assert "contradict each other" in picture.cycle
    assert {one.name for one in picture.graphs[0].streams} == {"A", "B", "C"}
    assert len(picture.graphs[0].windows) == 3


def test_a_cycle_of_two_streams_is_one_window() -> None:
    error = ContradictionError("no", streams=("A", "B"), limits=(-5, 2))
    (window,) = picture_contradiction(error).graphs[0].windows
    assert [(one.later, one.limit) for one in window.bounds] == [("B", -5), ("A", 2)]


_PAIR = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-8, 8), st.integers(0, 9))


@settings(deadline=None, max_examples=150)
@given(st.lists(_PAIR, min_size=1, max_size=8))
def test_what_a_bound_follows_from_adds_up_and_is_the_least(
    pairs: list[tuple[int, int, int, int]],
) -> None:
    names = "ABCD"
    given_windows = tuple(
        PairWindow(names[a], names[b], low, low + size) for a, b, low, size in pairs if a != b
    )
    try:
        network = TimeNetwork(tuple(names), given_windows, rows=frozenset(names))
    except WindowError:
        return
    for i, j in permutations(range(4), 2):
        least = _least_way(network, i, j)
        assert least == network.closed[i][j]
        if least < FOREVER:
            behind = network.bounds_behind(i, j)
            assert sum(one.limit for one in behind) == least
            assert [one.earlier for one in behind] == [names[i], *(b.later for b in behind[:-1])]
            assert behind[-1].later == names[j]


def _least_way(network: TimeNetwork, i: int, j: int) -> int:
    """The least sum of bounds as written along any way without a stream twice."""
    others = [k for k in range(4) if k not in (i, j)]
    ways = [
        (i, *between, j)
        for size in range(len(others) + 1)
        for between in permutations(others, size)
    ]
    sums = []
    for way in ways:
        steps = [network.given[a][b] for a, b in pairwise(way)]
        sums.append(FOREVER if max(steps) >= FOREVER else sum(steps))
    return min(sums)
