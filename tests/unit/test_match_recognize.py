"""MATCH_RECOGNIZE: generated patterns, rows and restarts against a naive matcher, and examples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from tests.match_cases import SECOND, generate, generate_rows
from tests.naive_match import Row

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("v", pa.float64()),
        ("s", pa.string()),
    ]
)


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = [[row[name] for row in rows] for name in ("t", "k", "v", "s")]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def database(rows: Sequence[Row], buckets: int = 1, lateness: int = 0) -> LocalDatabase:
    db = LocalDatabase(buckets)
    table = pa.Table.from_batches([to_batch(rows)])
    db.create_stream("S", table, time="ts", lateness=lateness)
    return db


def answer(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Results as tuples, times as numbers."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in table.columns
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


@pytest.mark.one_of(4)
@pytest.mark.parametrize("seed", range(150))
def test_generated_patterns(seed: int) -> None:
    """Each statement over 12 partitions, at once, and streamed with disorder and restarts."""
    rng = Random(seed)
    case = generate(rng)
    rows = generate_rows(rng, rng.choice([30, 90]), 12 if case.partitioned else 1)
    buckets = rng.choice([1, 2])
    expected = case.answer(rows, ended=True)
    assert answer(database(rows, buckets).sql(case.sql)) == expected, case.sql
    query = database([], buckets, lateness=2 * SECOND).query(case.sql)
    cuts = sorted(rng.randint(0, len(rows)) for _ in range(rng.randint(0, 6)))
    matches: Counter[tuple[Any, ...]] = Counter()
    for first, end in pairwise([0, *cuts, len(rows)]):
        matches += answer(query.feed({"S": to_batch(rows[first:end])}))
        query.restart()
    last = {"t": 10**6 * SECOND, "k": 99, "v": None, "s": None}
    matches += answer(query.feed({"S": to_batch([last])}))
    assert matches == case.answer(rows, ended=False), case.sql


def of_prices(prices: Sequence[float]) -> LocalDatabase:
    """A price every second."""
    return database(
        [{"t": n * SECOND, "k": 1, "v": price, "s": "ACME"} for n, price in enumerate(prices)]
    )


def test_the_shape_of_a_v() -> None:
    """As in Oracle's guide to pattern matching."""
    prices = (12, 17, 19, 21, 25, 12, 15, 20, 24, 25, 19, 15, 25, 25, 14, 12, 14, 24, 23, 22)
    matches = of_prices(prices).sql(
        "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY s ORDER BY ts MEASURES STRT.ts AS a, "
        "LAST(DOWN.ts) AS b, LAST(UP.ts) AS c ONE ROW PER MATCH AFTER MATCH SKIP TO LAST UP "
        "PATTERN (STRT DOWN+ UP+) WITHIN INTERVAL '1' HOUR "
        "DEFINE DOWN AS DOWN.v < PREV(DOWN.v), UP AS UP.v > PREV(UP.v)) MR"
    )
    seconds = [(a // SECOND, b // SECOND, c // SECOND) for _, a, b, c, _ in sorted(answer(matches))]
    assert seconds == [(4, 5, 9), (9, 11, 12), (13, 15, 17)]


def test_a_fall_and_the_first_rise() -> None:
    """As in Flink's documentation."""
    prices = (12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19)
    matches = of_prices(prices).sql(
        "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY s ORDER BY ts MEASURES START_ROW.ts AS a, "
        "LAST(PRICE_DOWN.ts) AS b, LAST(PRICE_UP.ts) AS c ONE ROW PER MATCH "
        "AFTER MATCH SKIP TO LAST PRICE_UP PATTERN (START_ROW PRICE_DOWN+ PRICE_UP) WITHIN 1 HOUR "
        "DEFINE PRICE_DOWN AS (LAST(PRICE_DOWN.v, 1) IS NULL AND PRICE_DOWN.v < START_ROW.v) OR "
        "PRICE_DOWN.v < LAST(PRICE_DOWN.v, 1), PRICE_UP AS PRICE_UP.v > LAST(PRICE_DOWN.v, 1)) M"
    )
    assert [(a // SECOND, b // SECOND, c // SECOND) for _, a, b, c, _ in answer(matches)] == [
        (4, 7, 8)
    ]


def test_while_a_mean_is_low() -> None:
    """As in Flink's documentation."""
    prices = (12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30)
    matches = of_prices(prices).sql(
        "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY s ORDER BY ts MEASURES FIRST(A.ts) AS a, "
        "LAST(A.ts) AS b, AVG(A.v) AS mean PATTERN (A+ B) WITHIN 1 HOUR "
        "DEFINE A AS AVG(A.v) < 15) M"
    )
    rows = sorted((a // SECOND, b // SECOND, mean) for _, a, b, mean, _ in answer(matches))
    assert rows == [(0, 3, 14.5), (5, 10, 13.5)]


def row(second: float, value: float, key: int = 1, text: str = "") -> Row:
    return {"t": int(second * SECOND), "k": key, "v": value, "s": text}


A_B_NOT_C = (
    "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.ts AS a, B.ts AS b "
    "PATTERN (A X*? B NOT C) WITHIN INTERVAL '5' SECONDS "
    "DEFINE A AS s = 'a', B AS s = 'b', C AS s = 'c') AS m"
)


@pytest.mark.parametrize("more", ["", " AND C.v >= A.v"])
def test_what_does_not_come_is_said_when_its_time_is_over(more: str) -> None:
    """By the clock of the stream, without another row of the partition."""
    query = database([]).query(A_B_NOT_C.replace("'c'", f"'c'{more}"))

    def feed(*rows: Row) -> list[tuple[Any, ...]]:
        matches = answer(query.feed({"S": to_batch(rows)}))
        query.restart()
        return [tuple(one // SECOND if n else one for n, one in enumerate(r)) for r in matches]

    assert feed(row(0, 0, 1, "a"), row(0, 0, 2, "a"), row(1, 0, 1, "x"), row(2, 0, 1, "b")) == []
    assert feed(row(3, 0, 2, "b"), row(5, 0, 2, "c")) == []  # exactly at the end is not absent
    assert feed(row(5, 0, 3, "x")) == []
    assert feed(row(5.000001, 0, 3, "x")) == [(1, 0, 2, 5)]
    assert feed(row(60, 0, 3, "x")) == []


def test_no_more_is_kept_than_may_be_part_of_a_match() -> None:
    statement = (
        "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n "
        "PATTERN (A X* B) WITHIN INTERVAL '2' SECONDS DEFINE A AS v > PREV(v), B AS v < 0) AS m"
    )
    query = database([]).query(statement)
    for number in range(30):
        part = [row(number * 10 + n / 10, n % 7, n % 3) for n in range(100)]
        query.feed({"S": to_batch(part)})
        query.restart()
        [program] = [bucket.operator for stage in query.stages for bucket in stage.buckets]
        assert sum(ref.rows for one in program.stored for ref in one.refs) <= 2 * 10 + 6


def test_states_of_the_automaton_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are too many to be kept, all that is open is followed again."""
    monkeypatch.setattr("nilometer.operators.match_rows.MOST_STATES", 20)
    statement = (
        "SELECT * FROM S MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n AFTER MATCH SKIP "
        "TO NEXT ROW PATTERN ((A | X)* A X{5} B) WITHIN INTERVAL '8' SECONDS "
        "DEFINE A AS v > 3, B AS s = 'b') AS m"
    )
    rng = Random(1)
    rows = [row(n / 10, rng.randrange(7), 1, "b" if n % 97 == 96 else "a") for n in range(300)]
    query = database([]).query(statement)
    matches: Counter[tuple[Any, ...]] = Counter()
    states = []
    for first in range(0, len(rows), 50):
        matches += answer(query.feed({"S": to_batch(rows[first : first + 50])}))
        query.restart()
        [program] = [bucket.operator for stage in query.stages for bucket in stage.buckets]
        states.append(len(program.snapshot()["steps"][0]["states"]))
    matches += answer(query.feed({"S": to_batch([row(10**6, 0)])}))
    whole = answer(database([*rows, row(10**6, 0)]).sql(statement))
    assert matches == whole
    assert len(matches) > 2
    assert max(states) <= 20
    assert min(states) == 0


def test_a_pattern_that_can_match_in_too_many_ways_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nilometer.operators.match_attempts._MOST_ROUNDS", 500)
    statement = (
        "SELECT * FROM S MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n "
        "PATTERN ((A | B)* C) WITHIN INTERVAL '60' SECONDS DEFINE C AS SUM(A.v) < 0) AS m"
    )
    with pytest.raises(NilometerError, match="from one row in too many ways") as caught:
        database([row(n, 1) for n in range(40)]).sql(statement)
    assert "exclude each other" in (caught.value.hint or "")


def test_searches_that_are_too_much_together_go_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    statement = (
        "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n "
        "PATTERN (A (B | X)* C) WITHIN INTERVAL '9' SECONDS DEFINE B AS B.v > A.v, C AS C.v > A.v "
        "AND s = 'c') AS m"
    )
    rows = [row(n, n % 5, n % 2, "c" if n % 7 == 0 else "") for n in range(60)]
    right = answer(database(rows).sql(statement))
    assert len(right) > 3
    for module in ("kernels.match_search", "operators.match_attempts"):
        monkeypatch.setattr(f"nilometer.{module}.MOST_TRIED", 60)
    assert answer(database(rows).sql(statement)) == right


def test_what_fails_is_not_tried_again() -> None:
    """Ways that meet are followed once, so that these patterns do not take for ever."""
    rows = [row(n / 10, 1) for n in range(400)]
    for pattern in ("(A | A)* C", "((A*)*)* C", "(A? A?){20} C", "(A | B)* (A | B)* (A | B)* C"):
        for more in ("", ", B AS B.v >= FIRST(v)"):
            statement = (
                "SELECT * FROM S MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n "
                f"PATTERN (A {pattern}) WITHIN INTERVAL '2' SECONDS DEFINE C AS v < 0{more}) AS m"
            )
            if more and "B" not in pattern:
                statement = statement.replace("B AS B.v", "A AS A.v")
            assert database(rows).sql(statement).num_rows == 0


M = (
    "S MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v AS a, B.v AS b "
    "PATTERN (A B) WITHIN 5 SECONDS DEFINE B AS B.v > A.v)"
)


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        (f"SELECT m.a, T.name FROM {M} m, T WHERE m.k = T.k AND m.b > 2", [(2, "one")]),
        (
            f"SELECT m.a, T.name FROM {M} m LEFT JOIN T ON m.k = T.k AND m.a > 1",
            [(1, None), (2, "one")],
        ),
        (
            f"SELECT COUNT(*) AS n, MAX(b) AS b FROM TUMBLE(TABLE {M}, INTERVAL '10' SECONDS) "
            "GROUP BY window_end",
            [(2, 3)],
        ),
        (f"SELECT a, LAG(b) OVER (ORDER BY _time) AS p FROM {M} AS m", [(1, None), (2, 2)]),
        (f"SELECT a FROM {M} UNION ALL SELECT v FROM S WHERE v > 2", [(1,), (2,), (3,)]),
        (f"WITH W AS (SELECT * FROM {M}) SELECT a + b AS c FROM W WHERE a < 2", [(3,)]),
        (
            f"SELECT * FROM (SELECT a, k FROM {M}) x MATCH_RECOGNIZE (PARTITION BY k ORDER BY "
            "_time MEASURES SUM(a) AS s, COUNT(*) AS n PATTERN (P Q)) y",
            [(1, 3, 2)],
        ),
        (
            "SELECT * FROM (SELECT ts, v * 2 AS w FROM S WHERE v > 1) AS s MATCH_RECOGNIZE "
            "(ORDER BY ts MEASURES LAST(w) AS l PATTERN (A B))",
            [(4,), (4,)],
        ),
    ],
)
def test_matches_are_rows_like_others(statement: str, rows: list[tuple[Any, ...]]) -> None:
    given = [row(0, 1), row(1, 2), row(2, 2), row(3, 3)]
    given += [row(8, 2, 2)]
    db = database(given, 2)
    db.create_table("T", pa.table({"k": pa.array([1]), "name": ["one"]}))
    matches = Counter(one[:-1] for one in answer(db.sql(statement)).elements())
    assert matches == Counter(rows)


def test_matches_stay_for_as_long_as_a_window_says() -> None:
    given = [row(0, 1), row(1, 2), row(2, 2), row(3, 3)]
    changes = database(given).sql(f"SELECT COUNT(*) AS n FROM {M} AS m [RANGE 1 SECOND]")
    held = [(n, time) for n, time, diff in answer(changes) if diff > 0]
    assert sorted(one for one in held if one[0]) == [(1, SECOND), (1, 3 * SECOND)]


def test_explain_says_what_is_kept() -> None:
    db = database([])
    plan = db.sql(f"EXPLAIN SELECT * FROM {M} m")["plan"][0].as_py()
    assert "Matches of (A B), for each k" in plan
    assert "kept until 5s after its first row" in plan
    drawn = db.sql(f"EXPLAIN (FORMAT DOT) SELECT * FROM {M} m")["plan"][0].as_py()
    assert "Matches of (A B)" in drawn
    near = (
        "S MATCH_RECOGNIZE (ORDER BY ts MEASURES v AS w PATTERN (A{1,3}) DEFINE A AS v > PREV(v))"
    )
    plan = db.sql(f"EXPLAIN SELECT * FROM {near} m")["plan"][0].as_py()
    assert "kept until it has ended or failed" in plan
    assert "and the row before them" in plan


OF_A = "ORDER BY ts MEASURES A.v AS x PATTERN"


@pytest.mark.parametrize(
    ("inner", "message", "hint"),
    [
        (f"{OF_A} (A* B*) WITHIN 5 S", "can match an empty sequence", "A B\\*"),
        (f"{OF_A} (A B*)", "may never end", "WITHIN INTERVAL"),
        (f"{OF_A} (A NOT B)", "how long the row must be absent", "WITHIN"),
        (f"{OF_A} (A NOT B C) WITHIN 5 S", "only allowed before the last variable", "X\\* B"),
        (f"{OF_A} ((A NOT B)* C) WITHIN 5 S", "only allowed before the last variable", ""),
        (f"{OF_A} (A NOT B*) WITHIN 5 S", "only allowed before the last variable", ""),
        (f"{OF_A} (^ A)", "not supported", "leave it out"),
        (f"{OF_A} (A $)", "not supported", "leave it out"),
        (f"{OF_A} (PERMUTE(A, B))", "PERMUTE is not supported", "B A"),
        (f"{OF_A} ({{- A -}} B)", "is not supported", "CLASSIFIER"),
        (f"{OF_A} (A{{2,1}})", "the smaller number first", ""),
        (f"{OF_A} (A{{0}})", "the smaller number first", ""),
        (f"{OF_A} (A{{}})", "a small repetition count", "2,5"),
        (f"{OF_A} (A{{1,2000}})", "more than 1,000 steps", "COUNT"),
        (f"{OF_A} ((A{{100}}){{100}})", "more than 1,000 steps", ""),
        (f"{OF_A} (((A{{999999}}){{999999}}){{999999}})", "more than 1,000 steps", ""),
        (f"{OF_A} (A{{99999999}})", "a small repetition count", ""),
        (f"{OF_A} (A | )", "expected a variable", "PATTERN"),
        (f"{OF_A} ()", "expected a variable", "PATTERN"),
        (f"{OF_A} ((A)", "not expected here", ""),
        (f"{OF_A} (A**)", "expected a variable", ""),
        (f"{OF_A} ({'(' * 60}A{')' * 60})", "nested too deeply", ""),
        (f"{OF_A} (A) WITHIN 5", "cannot read the length of time", ""),
        (f"{OF_A} (A) WITHIN -5 S", "cannot be negative", ""),
        (f"{OF_A} (A) WHERE x", "not expected here", "MATCH_RECOGNIZE"),
        (f"{OF_A} (A) DEFINE B AS v > 1", "no variable B", ""),
        (f"{OF_A} (A) DEFINE A AS v > 1, A AS v > 2", "defined twice", ""),
        (f"{OF_A} (A) DEFINE A AS v", "true or false", "compare"),
        (f"{OF_A} (A) DEFINE A AS w > 1", "no column w", ""),
        (f"{OF_A} (A B) DEFINE B AS LAST(A.v + B.v) > 1", "may only use one variable", "outside"),
        (f"{OF_A} (A) DEFINE A AS FIRST(PREV(v)) > 1", "is not allowed here", "PREV\\(FIRST"),
        (f"{OF_A} (A) DEFINE A AS PREV(v, k) > 1", "whole number of rows", ""),
        (f"{OF_A} (A) DEFINE A AS PREV() > 1", "takes a value", "PREV"),
        (f"{OF_A} (A) DEFINE A AS MATCH_NUMBER() > 1", "only allowed in MEASURES", ""),
        (f"{OF_A} (A) DEFINE A AS FINAL LAST(v) > 1", "not its end", "FINAL"),
        (f"{OF_A} (A) SUBSET U = (A, Q)", "no variable Q", ""),
        (f"{OF_A} (A) SUBSET A = (A)", "two things", ""),
        ("PARTITION BY k MEASURES A.v AS x PATTERN (A)", "ordered by time", "ORDER BY ts"),
        ("ORDER BY v MEASURES A.v AS x PATTERN (A)", "v is not the time", "that is ts"),
        ("ORDER BY ts DESC MEASURES A.v AS x PATTERN (A)", "ordered by time", "ORDER BY ts"),
        (
            "PARTITION BY k + 1 ORDER BY ts MEASURES A.v AS x PATTERN (A)",
            "must name columns",
            "sub",
        ),
        ("PARTITION BY kk ORDER BY ts MEASURES A.v AS x PATTERN (A)", "no column kk", "k"),
        ("ORDER BY ts PATTERN (A)", "outputs nothing", "MEASURES"),
        ("ORDER BY ts MEASURES A.v PATTERN (A)", "needs a name", "AS v"),
        ("ORDER BY ts MEASURES A.v AS x", "expected PATTERN", ""),
        ("ORDER BY ts MEASURES A.* AS x PATTERN (A)", "a star is not allowed here", "COUNT"),
        ("ORDER BY ts MEASURES COUNT(Z.*) AS x PATTERN (A)", "no variable Z", ""),
        ("ORDER BY ts MEASURES collect_list(v) AS x PATTERN (A)", "for matches yet", "COUNT"),
        ("ORDER BY ts MEASURES SUM(s) AS x PATTERN (A)", "needs a number", "cast"),
        ("ORDER BY ts MEASURES A.v + A.s AS x PATTERN (A)", "cannot apply", "cast"),
        ("ORDER BY ts MEASURES A.v AS v, B.v AS V PATTERN (A B)", "two columns named V", ""),
        ("PARTITION BY k ORDER BY ts MEASURES v AS k PATTERN (A)", "two columns named k", ""),
        (
            "ORDER BY ts MEASURES A.v AS x ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A)",
            "never shown",
            "leave",
        ),
        ("ORDER BY ts MEASURES v AS x AFTER MATCH SKIP TO Z PATTERN (A)", "no variable Z", ""),
        ("ORDER BY ts MEASURES v AS x AFTER MATCH SKIP PATTERN (A)", "expected PAST", "TO NEXT"),
    ],
)
def test_what_cannot_be_is_said_kindly(inner: str, message: str, hint: str) -> None:
    with pytest.raises(NilometerError, match=message) as caught:
        database([]).sql(f"SELECT * FROM S MATCH_RECOGNIZE ({inner}) AS m")
    assert re.search(hint, caught.value.hint or "")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("S [RANGE 5 S]", "cannot be combined with a window"),
        ("TUMBLE(S, 1 S)", "must be a stream"),
        ("(SELECT COUNT(*) AS v, MAX(ts) AS ts FROM S [ROWS 3]) AS x", "must only append rows"),
    ],
)
def test_patterns_are_looked_for_in_streams(entry: str, message: str) -> None:
    with pytest.raises(NilometerError, match=message):
        database([]).sql(f"SELECT * FROM {entry} MATCH_RECOGNIZE ({OF_A} (A)) AS m")
