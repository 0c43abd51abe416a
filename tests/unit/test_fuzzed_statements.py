"""Statements that nobody would write: each ends quickly, in a plan or in a NilometerError."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer.sql.parse.dialect import Nilometer
from nilometer.sql.statements import ExplainFormat
from tests.patience import pace
from tests.queries import RELATIONS, SCHEMA, TABLE

MOST_SECONDS = 1.0

SEEDS = (
    "SELECT A.k, B.v + 1 AS w FROM R0 A, R1 B WINDOW = 5 SECONDS WHERE A.k = B.k AND A.v > 3",
    "SELECT A.id, C.id FROM R0 A, R1 B, R2 C WINDOW(A,B) = 5 SECONDS AND DWINDOW(B,C) = 10 S "
    "WHERE A.k = B.k AND B.k = C.k",
    "SELECT * FROM R0 A JOIN R1 B ON A.k = B.j WINDOW(A, B) BETWEEN -1 S AND INTERVAL '3' SECOND",
    "SELECT A.s, T.label FROM R0 A [ROWS 5], R1 B [RANGE 1 HOUR], T WHERE A.k = B.k AND T.id = A.k",
    "SELECT S.a FROM (SELECT A.k AS a FROM R0 A, R1 B WINDOW = 1 S WHERE A.k = B.k) S, R2 C "
    "WINDOW(S, C) = 5 S WHERE S.a = C.k EMIT APPEND",
    "WITH q AS (SELECT k, ts FROM R0 WHERE v BETWEEN 1 AND 3) SELECT q.k FROM q, R1 WINDOW = 3us",
    "SELECT CASE WHEN A.v > B.v THEN 'a' ELSE B.s END FROM R0 A, R1 B WINDOW = 0.5 ms "
    "WHERE A.s LIKE 'x%' OR B.s IS NULL OR A.v IN (1, 2, B.v)",
    "SELECT k, similar(s, s) FROM R0 [PARTITION BY k, j ROWS 3] X WHERE NOT similar(X.s, 'a')",
    "SELECT store, SUM(v) FROM R0 [RANGE 1 HOUR] GROUP BY store HAVING SUM(v) > 100",
    "SELECT DISTINCT k FROM R0 UNION ALL SELECT k FROM R1 EXCEPT SELECT k FROM R2 EMIT CHANGES",
    "SELECT k, SUM(v) AS t, COUNT(DISTINCT s) FROM R0 [RANGE 1 HOUR] GROUP BY k HAVING t > 100 "
    "ORDER BY t DESC, 1 LIMIT 3 OFFSET 1 EMIT CHANGES EVERY 5 S",
    "SELECT DISTINCT A.k, B.v FROM R0 A [RANGE 5 S] LEFT JOIN R1 B [ROWS 3] ON A.k = B.k "
    "FULL JOIN R2 C [RANGE 1 S] USING (j) WHERE B.v IS NULL",
    "SELECT k FROM R0 A [RANGE 5 S] WHERE NOT EXISTS (SELECT 1 FROM R1 B [RANGE 1 S] "
    "WHERE B.k = A.k AND B.v > A.v) AND k IN (SELECT id FROM T) "
    "INTERSECT ALL SELECT k FROM R2 [ROWS 5]",
    "WITH q AS (SELECT k, AVG(v) AS m FROM R0 [RANGE 5 S] GROUP BY k) "
    "SELECT X.k, Y.m FROM q X, q Y, "
    "(SELECT A.k FROM R1 A, R2 B WINDOW = 2 S WHERE A.k = B.k) P [RANGE 3 S] WHERE X.k = P.k",
    "EXPLAIN (FORMAT DOT) SELECT A.k FROM R0 A, R1 B WHERE B.ts - A.ts <= INTERVAL '5' SECOND "
    "AND A.ts <= B.ts -- why not",
    "SELECT A.k FROM R0 A, B, C WINDOW = 3 s WHERE abs(A.v - B.v) < 3 AND A.k <=> C.k /* x */",
    "SELECT m.a, T.label FROM R0 MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v AS a, "
    "FINAL SUM(U.v) AS b, CLASSIFIER() AS c ALL ROWS PER MATCH AFTER MATCH SKIP TO LAST B PATTERN "
    "(A (X | B){2,5}? B+ NOT C) WITHIN 5 S SUBSET U = (A, B) DEFINE A AS v > PREV(v, 2), B AS "
    "B.v > A.v AND COUNT(B.*) < 3, C AS similar(C.s, A.s)) AS m, T WHERE T.id = m.k",
)
WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "WINDOW",
    "DWINDOW",
    "(",
    ")",
    ",",
    ".",
    "=",
    "<",
    ">",
    "[",
    "]",
    "*",
    "+",
    "-",
    "/",
    "%",
    "RANGE",
    "ROWS",
    "PARTITION",
    "BY",
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "LIKE",
    "IS",
    "NULL",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "AS",
    "JOIN",
    "ON",
    "USING",
    "LEFT",
    "CROSS",
    "UNION",
    "ALL",
    "EMIT",
    "CHANGES",
    "APPEND",
    "EVERY",
    "EXPLAIN",
    "FORMAT",
    "WITH",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "DISTINCT",
    "EXISTS",
    "OVER",
    "MATCH_RECOGNIZE",
    "PATTERN",
    "MEASURES",
    "DEFINE",
    "{2,",
    "PREV(",
    "INTERVAL",
    "5",
    "0",
    "-1",
    "1e400",
    "99999999999999999999",
    "0.1.2",
    "'x'",
    "''",
    "`k`",
    "``",
    '"q"',
    "A",
    "B",
    "R0",
    "T",
    "k",
    "ts",
    "v",
    "_time",
    "struct(A.*)",
    "count(*)",
    "sum(k)",
    ";",
    "::",
    "->",
    "=>",
    "?",
    ":p",
    "@v",
    "$1",
    "\\",
    "#",
    "--",
    "/*",
    "*/",
    "{{",
    "}}",
    "{%",
    "%}",
    "VALUES",
    "LATERAL",
    "PIVOT",
    "DATE",
    "'2026-01-01'",
    "CAST",
    "TRY_CAST",
    "X'00'",
    "INSERT",
    "DROP",
    "TABLE",
    "SHOW",
    "SET",
    "DESCRIBE",
]


@pytest.fixture(scope="module")
def db() -> LocalDatabase:
    made = LocalDatabase(buckets=2)
    for name in RELATIONS:
        made.create_stream(name, SCHEMA.empty_table(), time="ts")
    made.create_table("T", TABLE.empty_table())
    made.create_function("similar", lambda a, b: a == b, pa.bool_())
    return made


def drop_words(words: list[str], rng: random.Random) -> list[str]:
    gone = {rng.randrange(len(words)) for _ in range(rng.randint(1, 3))}
    return [word for place, word in enumerate(words) if place not in gone]


def swap_words(words: list[str], rng: random.Random) -> list[str]:
    i, j = rng.randrange(len(words)), rng.randrange(len(words))
    words[i], words[j] = words[j], words[i]
    return words


def put_words(words: list[str], rng: random.Random) -> list[str]:
    for _ in range(rng.randint(1, 3)):
        words[rng.randrange(len(words))] = rng.choice(WORDS)
    return words


def repeat_words(words: list[str], rng: random.Random) -> list[str]:
    i = rng.randrange(len(words))
    return words[:i] + words[i : i + rng.randint(1, 5)] * rng.randint(2, 20) + words[i:]


def mix_statements(words: list[str], rng: random.Random) -> list[str]:
    other = words_of(rng.choice(SEEDS))
    return words[: rng.randrange(len(words))] + other[rng.randrange(len(other)) :]


def random_characters(words: list[str], rng: random.Random) -> list[str]:
    text = list(" ".join(words))
    for _ in range(rng.randint(1, 8)):
        character = chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x110000))))
        text[rng.randrange(len(text))] = character
    return ["".join(text)]


def deeper(words: list[str], rng: random.Random) -> list[str]:
    depth, i = rng.choice((5, 50, 500, 5000)), rng.randrange(len(words))
    opening, closing = rng.choice(
        (("(", ")"), ("NOT", ""), ("-", ""), ("CASE WHEN", "END"), ("(SELECT k FROM", ")"),
         ("abs(", ")"), ("[", "]"), ("A.", ""), ("k +", ""), ("k OR", ""))
    )  # fmt: skip
    return [*words[:i], *[opening] * depth, words[i], *[closing] * depth, *words[i + 1 :]]


MUTATIONS: tuple[Callable[[list[str], random.Random], list[str]], ...] = (
    drop_words,
    drop_words,
    swap_words,
    put_words,
    put_words,
    repeat_words,
    mix_statements,
    random_characters,
    deeper,
)


def words_of(sql: str) -> list[str]:
    return [sql[t.start : t.end + 1] for t in Nilometer().tokenize(sql)]


def mutants(count: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        words = words_of(rng.choice(SEEDS))
        for _ in range(rng.randint(1, 3)):
            words = rng.choice(MUTATIONS)(words, rng) or ["x"]
        yield " ".join(words)


def check(sql: str, db: LocalDatabase, max_seconds: float = MOST_SECONDS) -> bool:
    """Whether the statement was accepted; anything but a plan or a NilometerError fails."""
    started = time.process_time()
    try:
        plan = db.plan(sql)
    except NilometerError:
        return False
    finally:
        seconds = time.process_time() - started
        assert seconds < max_seconds * pace(), f"{seconds:.1f} s for {sql[:300]}"
    explain_plan(plan)
    explain_plan(plan, ExplainFormat.DOT)
    try:
        db.query(sql)
    except NilometerError:  # what only Spark can evaluate is planned, but not run here
        return False
    return True


def check_mutants(count: int, seed: int, db: LocalDatabase) -> None:
    accepted = 0
    for sql in mutants(count, seed):
        try:
            accepted += check(sql, db)
        except NilometerError:
            raise
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{sql[:2000]!r}")
    assert 0 < accepted < count


def test_mutated_statements(db: LocalDatabase) -> None:
    check_mutants(600, 0, db)


@pytest.mark.soak
@pytest.mark.limit(1800)
def test_many_mutated_statements(db: LocalDatabase) -> None:
    check_mutants(20_000, random.randrange(1 << 32), db)


HUGE = 10_000_000


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "sql",
    [
        "x" * HUGE,
        "(" * HUGE,
        "SELECT k FROM R0 WHERE " + "k = 1 AND " * (HUGE // 10) + "k = 1",
        "SELECT k FROM R0 WHERE k IN (" + "1," * (HUGE // 2) + "1)",
        "'" + "x" * HUGE,
        ";" * HUGE,
        "\0" * HUGE,
        "SELECT k FROM R0 -- " + "x" * HUGE,
        "SELECT k FROM R0 WHERE " + "NOT " * 4000 + "TRUE",
        "SELECT " + ", ".join(["k"] * 4000) + " FROM R0",
        "SELECT k FROM R0 WHERE " + " OR ".join(f"k = {i}" for i in range(2000)),
        "SELECT k FROM R0 WHERE " + " AND ".join(f"k <> {i}" for i in range(2000)),
        "SELECT k FROM R0 WHERE s = '" + "x" * 150_000 + "'",
        "SELECT X0.k FROM " + ", ".join(f"R0 X{i}" for i in range(32)) + " WINDOW = 1 s",
        "SELECT X0.k FROM " + ", ".join(f"R0 X{i}" for i in range(400)) + " WINDOW = 1 s",
        "".join(random.Random(3).choices(string.printable, k=100_000)),
    ],
    ids=lambda sql: sql[:24],
)
def test_huge_statements(sql: str, db: LocalDatabase) -> None:
    check(sql, db, 2 * MOST_SECONDS)  # half of it where nothing runs beside the tests


def test_not_text(db: LocalDatabase) -> None:
    for given in (None, 3, b"SELECT 1", ["SELECT 1"]):
        with pytest.raises(NilometerError, match="a statement must be text"):
            db.plan(given)  # type: ignore[arg-type]


def test_a_long_blank_is_read_in_no_time() -> None:
    """What is said of TOP is looked for in time that grows with the text, not faster."""
    began = time.process_time()
    with pytest.raises(NilometerError):
        LocalDatabase().sql("SELECT TOP" + " " * 60_000 + ") FROM T")
    assert time.process_time() - began < MOST_SECONDS * pace()
