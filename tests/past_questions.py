"""Rows of a log, and generated queries over them."""

from __future__ import annotations

import math
import random

import pyarrow as pa

from nilometer.log.layout import TIME, TIMESTAMP

SCHEMA = pa.schema([(TIME, TIMESTAMP), ("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])
BEGIN = 1_767_225_600_000_000
"""2026-01-01"""
SECOND = 1_000_000


def some_rows(chance: random.Random, count: int) -> list[dict[str, object]]:
    times = sorted(chance.randrange(0, 600) for _ in range(count))
    return [
        {
            TIME: BEGIN + second * SECOND,
            "k": chance.choice([None, *range(5)]),
            "v": chance.choice([None, float(chance.randrange(50)), chance.random()]),
            "s": chance.choice([None, "a", "b", "ä'"]),
        }
        for second in times
    ]


def _instant(chance: random.Random) -> str:
    return f"TIMESTAMPTZ '2026-01-01 00:{chance.randrange(10):02}:{chance.randrange(60):02}+00'"


def _condition(chance: random.Random) -> str:
    return chance.choice(
        [
            f"x.{TIME} {chance.choice(['<', '>=', '>'])} {_instant(chance)}",
            f"x.{TIME} BETWEEN {_instant(chance)} AND {_instant(chance)}",
            f"x.v > {chance.randrange(40)}",
            "x.s IS NOT NULL",
            "x.k IN (SELECT k FROM T WHERE label IS NOT NULL)",
            f"x.k % 2 = {chance.randrange(2)}",
        ]
    )


_KEYS = [
    "x.k",
    "x.s",
    f"date_trunc('minute', x.{TIME})",
    "x.k % 2",
    "CASE WHEN x.v > 20 THEN 'high' ELSE x.s END",
    "coalesce(x.k, -1) * 2",
]
_VALUES = [
    *("COUNT(*)", "COUNT(x.v)", "SUM(x.k)", "SUM(x.v)", "MIN(x.s)", f"MAX(x.{TIME})", "AVG(x.v)"),
    *("AVG(x.k)", "SUM(x.k) / COUNT(*)", "MAX(x.v) - MIN(x.v)", "round(AVG(x.v), 3)"),
    *("COUNT(*) FILTER (WHERE x.v > 10)", "AVG(x.k) FILTER (WHERE x.k > 2)", "bool_or(x.v > 3)"),
    *("COUNT_IF(x.k = 1)", "SUM(CASE WHEN x.k = 1 THEN 1 ELSE 0 END)", "SUM(x.k) * 1.5"),
    *("COUNT(DISTINCT x.k)", "median(x.v)", "string_agg(x.s ORDER BY x.s)", "stddev(x.v)"),
]


def large_question(chance: random.Random) -> str:
    """A query over the log A, which may be large; T is a table."""
    where = " AND ".join(_condition(chance) for _ in range(chance.randrange(1, 3)))
    keys = chance.sample(_KEYS, chance.randrange(0, 3))
    values = chance.sample(_VALUES, chance.randrange(1, 4))
    grouped = ", ".join([*(f"{one} AS g{n}" for n, one in enumerate(keys)), *values])
    names = ", ".join(str(n + 1) for n in range(len(keys)))
    aliases = ", ".join(f"g{n}" for n in range(len(keys)))
    chosen = chance.choice([", ".join(keys), names, aliases])
    group = f" GROUP BY {chosen}" if keys else ""
    having = f" HAVING {chance.choice(['COUNT(*) > 20', 'SUM(x.v) > 100'])}" if keys else ""
    order = f" ORDER BY {chance.choice([names, aliases])}" if keys else ""
    rest = chance.choice(["", having]) + chance.choice([order, order and f"{order} LIMIT 3"])
    every = "x.k, x.v, x.s"
    by = chance.choice([f"x.{TIME}, x.k, x.v, x.s", f"v DESC NULLS LAST, k, s, x.{TIME}, x.v + 1"])
    forms = [
        f"SELECT {grouped} FROM A x WHERE {where}{group}{rest}",
        f"SELECT {grouped} FROM A x WHERE {where}{group}",
        f"SELECT {grouped} FROM A x JOIN T t ON x.k = t.k WHERE {where}{group}",
        f"SELECT t.label, {grouped} FROM T t JOIN A x ON x.k = t.k WHERE {where} "
        f"GROUP BY t.label{', ' + ', '.join(keys) if keys else ''}",
        f"SELECT t.label, COUNT(*) FROM A x LEFT JOIN T t USING (k) WHERE {where} GROUP BY ALL",
        f"SELECT t.label, COUNT(*) FROM A x LEFT JOIN T t USING (k) WHERE {where} GROUP BY t.label",
        "SELECT t.label, COUNT(x.v) FROM T t LEFT JOIN A x ON x.k = t.k GROUP BY t.label",
        f"SELECT {grouped} FROM (SELECT k, v, s, {TIME} FROM A x WHERE {where}) x{group}",
        f"WITH w AS (SELECT * FROM A x WHERE {where}) SELECT {grouped} FROM w x{group}",
        f"WITH w AS (SELECT k, AVG(v) AS m FROM A x WHERE {where} GROUP BY k) "
        "SELECT t.label, w.m FROM w JOIN T t USING (k)",
        f"SELECT {every} FROM A x WHERE {where}",
        f"SELECT * FROM A x WHERE {where} ORDER BY {by}",
        f"SELECT x.k, x.s, x.v FROM A x WHERE {where} ORDER BY {by} LIMIT 7 OFFSET 2",
        f"SELECT DISTINCT x.k, x.s FROM A x WHERE {where}",
        f"SELECT DISTINCT x.k AS a, x.s AS b FROM A x WHERE {where} ORDER BY a, b LIMIT 5",
        f"SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY {TIME}, v, s) FROM A x WHERE {where}",
        f"SELECT COUNT(*) FROM A x WHERE {where} UNION ALL SELECT k FROM T",
        f"SELECT (SELECT COUNT(*) FROM A x WHERE {where}) AS n, label FROM T",
        f"SELECT a.k, COUNT(*) FROM A a JOIN A x ON a.k = x.k WHERE {where} GROUP BY a.k",
        f"SELECT x.k, COUNT(*) FROM A x JOIN B b ON x.k = b.k WHERE {where} GROUP BY x.k",
        f"SELECT -x.k AS k, COUNT(*) FROM A x WHERE {where} GROUP BY k",
    ]
    return chance.choice(forms)


def alike(one: object, other: object) -> bool:
    """Whether two values are the same, except for the order in which doubles were summed."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return one == other


def require_alike(answer: pa.Table, wanted: pa.Table, sql: str) -> None:
    """Check that two answers have the same columns, types and rows, in the same order if sorted."""
    assert answer.schema.equals(wanted.schema), sql
    rows, others = _values(answer), _values(wanted)
    if "ORDER BY" not in sql:
        rows, others = sorted(rows, key=repr), sorted(others, key=repr)
    assert len(rows) == len(others), sql
    for one, other in zip(rows, others, strict=True):
        assert all(map(alike, one, other)), (sql, one, other)


def _values(rows: pa.Table) -> list[tuple[object, ...]]:
    columns = [one.to_pylist() for one in rows.columns]
    return list(zip(*columns, strict=True))
