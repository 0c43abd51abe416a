"""Changing answers of every form of statement, folded at every instant, against DuckDB.

A statement names windowed streams as {A:5}, which is A [RANGE 5 SECONDS], and {A#2}, which is
A [ROWS 2]; DuckDB is asked the same of what these windows hold at an instant. Where windows are
not said so, a second text says what DuckDB is asked.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from nilometer.local.database import LocalDatabase
from tests.duck import connect

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
SEEDS = (1, 2, 3, 4, 5)

ALIKE = (
    "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM {A:5} GROUP BY k HAVING COUNT(*) > 1",
    "SELECT COUNT(*), MAX(v), MEDIAN(v), COUNT(*) FILTER (WHERE v > 1) FROM {A:3}",
    "SELECT CASE WHEN k > 1 THEN 'x' ELSE 'y' END AS c, COUNT(DISTINCT v) FROM {A:6} GROUP BY 1",
    "SELECT k FROM {A:4} EXCEPT ALL SELECT k FROM {B:6} UNION ALL SELECT k FROM T",
    "SELECT k FROM {A:4} UNION SELECT k FROM {B:2} INTERSECT SELECT k FROM {C:6}",
    "SELECT x.k, y.v FROM {A:5} x LEFT JOIN {B:2} y ON x.k = y.k AND y.v > 1 WHERE x.v > 1",
    "SELECT k, x.v, y.v FROM {A:5} x FULL JOIN {B:2} y USING (k)",
    "SELECT k, x.v, z.v FROM {A:5} x FULL JOIN {B:2} y USING (k) FULL JOIN {C:3} z USING (k)",
    "SELECT k, x.v, z.v FROM {A:5} x RIGHT JOIN {B:2} y USING (k) LEFT JOIN {C:3} z USING (k)",
    "SELECT x.id, y.id, z.id FROM {A:5} x LEFT JOIN {B:2} y ON x.k = y.k JOIN {C:3} z ON x.v = z.v",
    "SELECT x.id, y.label FROM {A#3} x LEFT JOIN T y ON x.k = y.k",
    "SELECT x.id, y.id FROM {A#3} x FULL JOIN {B:4} y ON x.k = y.k",
    "SELECT label, COUNT(x.id) FROM {A:5} x RIGHT JOIN T ON x.k = T.k GROUP BY label",
    "SELECT id FROM {A:5} x WHERE NOT EXISTS (SELECT * FROM {B:3} y WHERE y.k = x.k AND y.v > x.v)",
    "SELECT id FROM {A:5} x WHERE EXISTS (SELECT 1 FROM {B:3} y, {C:2} z WHERE y.k = x.k "
    "AND z.k = y.k) AND v > 1",
    "SELECT id FROM {A:5} x WHERE k IN (SELECT k FROM {B:3} GROUP BY k HAVING COUNT(*) > 1) "
    "AND NOT EXISTS (SELECT 1 FROM T WHERE T.k = x.k)",
    "SELECT id FROM {A:5} x WHERE k IN (SELECT k FROM {B#3} EXCEPT SELECT k FROM {C:2})",
    "SELECT s.k, s.n, y.v FROM (SELECT k, COUNT(*) AS n FROM {A:6} GROUP BY k) s, {B:3} y "
    "WHERE s.k = y.k AND s.n > 1",
    "WITH q AS (SELECT k, SUM(v) AS n FROM {A:6} GROUP BY k) "
    "SELECT x.k, y.k FROM q x, q y WHERE x.n < y.n",
    "SELECT p.a, z.id FROM (SELECT x.id AS a, x.k FROM {A#2} x, {B:3} y WHERE x.k = y.k) p, "
    "{C:4} z WHERE p.k = z.k",
    "SELECT x.id FROM {A:5} x FULL JOIN (SELECT k, MAX(v) AS m FROM {B:4} GROUP BY k) y "
    "ON x.k = y.k WHERE m IS NULL OR m > 1",
    "SELECT id FROM {A:6} x ORDER BY v DESC NULLS LAST, id LIMIT 2 OFFSET 1",
    "SELECT k, COUNT(*) AS n FROM {A:6} GROUP BY k ORDER BY n DESC, k NULLS FIRST LIMIT 2",
)
_APART = "abs(epoch({0}.ts) - epoch({1}.ts))"
_UNIT = (
    "FROM {A:99} x, {B:99} y, {C:3} z WHERE x.k = y.k AND x.k = z.k "
    "AND greatest(x.ts, y.ts) >= @ - INTERVAL '4 seconds' AND "
) + _APART.format("x", "y")
TOLD = (
    (
        "SELECT x.id, y.id, z.id FROM A x LEFT JOIN B y ON x.k = y.k LEFT JOIN C z ON y.k = z.k "
        "WINDOW(x, y) BETWEEN -1 S AND 4 S AND DWINDOW(z, x) = 3 S",
        "SELECT x.id, y.id, z.id FROM {A:4} x "
        "LEFT JOIN {B:7} y ON x.k = y.k AND epoch(y.ts) - epoch(x.ts) BETWEEN -1 AND 4 "
        "LEFT JOIN {C:7} z ON y.k = z.k AND epoch(x.ts) - epoch(z.ts) BETWEEN 0 AND 3",
    ),
    (
        "SELECT x.id, y.id FROM A x LEFT JOIN B y ON x.k = y.k WINDOW(x, y) = 3 S",
        "SELECT x.id, y.id FROM {A:3} x LEFT JOIN {B:3} y ON x.k = y.k AND "
        + _APART.format("x", "y")
        + " <= 3",
    ),
    (
        "SELECT x.k, COUNT(*) FROM A x, B y, C z WINDOW(x, y) = 2 S AND DWINDOW(y, z) = 3 S "
        "WHERE x.k = y.k GROUP BY x.k",
        "SELECT x.k, COUNT(*) FROM {A:5} x, {B:3} y, {C:5} z WHERE x.k = y.k AND "
        + _APART.format("x", "y")
        + " <= 2 AND epoch(z.ts) - epoch(y.ts) BETWEEN 0 AND 3 GROUP BY x.k",
    ),
    (
        "SELECT x.id, y.id FROM A [ROWS 2] x, B y WINDOW(x, y) = 2 S WHERE x.k = y.k EMIT CHANGES",
        "SELECT x.id, y.id FROM {A#2} x, {B:2} y WHERE x.k = y.k AND "
        + _APART.format("x", "y")
        + " <= 2",
    ),
    (
        "SELECT p.i, z.id FROM (SELECT x.id AS i, x.k FROM A x, B y WINDOW = 2 S "
        "WHERE x.k = y.k) p [RANGE 4 S], C [RANGE 3 S] z WHERE p.k = z.k EMIT CHANGES",
        f"SELECT x.id, z.id {_UNIT} <= 2",
    ),
)
CASES = [(sql, sql) for sql in ALIKE] + list(TOLD)


def stream(rng: random.Random) -> pa.Table:
    rows = sorted(
        (rng.randint(0, 12) * SECOND, i, rng.choice([1, 2, 3, None]), rng.choice([1.0, 3.5, None]))
        for i in range(rng.randint(0, 9))
    )
    columns = list(zip(*rows, strict=True)) or [()] * 4
    kinds = [("ts", TIMESTAMP), ("id", pa.int32()), ("k", pa.int64()), ("v", pa.float64())]
    return pa.table(
        [pa.array(c, kind) for c, (_, kind) in zip(columns, kinds, strict=True)],
        names=[name for name, _ in kinds],
    )


def as_statement(sql: str) -> str:
    sql = re.sub(r"\{(\w):(\d+)\}", r"\1 [RANGE \2 SECONDS]", sql)
    sql = re.sub(r"\{(\w)#(\d+)\}", r"\1 [ROWS \2]", sql)
    return sql if "EMIT" in sql else f"{sql} EMIT CHANGES"


def at_instant(sql: str, instant: int) -> str:
    """The question to DuckDB about one instant."""
    now = f"(TIMESTAMPTZ '1970-01-01 00:00:00+00' + to_microseconds({instant}))"
    held = rf"(SELECT * FROM \1 WHERE ts <= {now}"
    sql = re.sub(r"\{(\w):(\d+)\}", rf"{held} AND ts >= {now} - INTERVAL '\2 seconds')", sql)
    sql = re.sub(r"\{(\w)#(\d+)\}", rf"{held} ORDER BY ts DESC, id DESC LIMIT \2)", sql)
    return sql.replace("@", now)


def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(v, 9) if isinstance(v, float) else v for v in row)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=[sql for sql, _ in CASES])
def test_folded_changes_are_the_answer(case: tuple[str, str], seed: int) -> None:
    rng = random.Random(seed)
    db, duck = LocalDatabase(buckets=rng.choice((1, 3))), connect()
    duck.execute("SET TimeZone = 'UTC'")
    instants = {-1}
    for name in ("A", "B", "C"):
        rows = stream(rng)
        db.create_stream(name, rows, time="ts")
        duck.register(name, rows)
        instants |= set(rows["ts"].cast(pa.int64()).to_pylist())
    table = pa.table({"k": pa.array([1, 2, 9], pa.int32()), "label": ["a", "b", "c"]})
    db.create_table("T", table)
    duck.register("T", table)
    log = db.sql(as_statement(case[0]))
    times = log["_time"].cast(pa.int64()).to_pylist()
    rows = list(zip(*(column.to_pylist() for column in log.columns[:-2]), strict=True))
    changes = list(zip(map(key, rows), times, log["_diff"].to_pylist(), strict=True))
    for instant in sorted(instants | {max(-1, time) for time in times}):
        folded: Counter[tuple[Any, ...]] = Counter()
        for row, time, diff in changes:
            folded[row] += diff if time <= instant else 0
        expected = Counter(map(key, duck.execute(at_instant(case[1], instant)).fetchall()))
        assert {row: n for row, n in folded.items() if n} == dict(expected), instant
