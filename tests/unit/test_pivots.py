"""PIVOT and UNPIVOT: generated rows and statements, of tables, at instants and in time windows.

DuckDB is asked the same of the rows that the windows hold.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

import nilometer as nm
from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from tests.generated import check_generated
from tests.unit.test_time_windows import (
    EPOCH,
    SCHEMA,
    SECOND,
    Row,
    answer,
    database,
    in_windows,
    judge,
    plain,
    rows,
    to_batch,
    written,
)

AGGREGATES = (
    *("SUM(v)", "COUNT(*)", "COUNT(v)", "AVG(v)", "MIN(v)", "MAX(v)", "MEDIAN(v)", "VAR_POP(v)"),
    *("COUNT(DISTINCT v)", "SUM(v * v)", "MAX(v + 1)"),
)
PICKS = (
    "k IN (0, 1, 7)",
    "k IN (1 AS one)",
    "s IN ('a', 'b' AS bee)",
    "(k, s) IN ((0, 'a') AS x, (1, 'b') AS y)",
    "k IN (0, 1) s IN ('a', 'c')",
)
VALUES = ("v, w", "w", "v AS 'first', w AS 'second'")


@st.composite
def pivots(draw: st.DrawFn) -> str:
    """A statement over {W}, whose rows have {E} as a column if that is not empty."""
    aggregates = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=2, unique=True))
    asked = ", ".join(f"{one} AS a{n}" for n, one in enumerate(aggregates))
    pick, where = draw(st.sampled_from(PICKS)), draw(st.sampled_from(("", " WHERE v > 0")))
    if draw(st.booleans()):
        return f"SELECT * FROM {{W}} PIVOT ({asked} FOR {pick} GROUP BY {{E}}s)"
    given = f"(SELECT {{E}}k % 3 AS j, k, s, v FROM {{W}}{where})"
    return f"SELECT * FROM {given} PIVOT ({asked} FOR {pick}) AS p WHERE j IS NULL OR j < 5"


@st.composite
def unpivots(draw: st.DrawFn) -> str:
    nulls = draw(st.sampled_from(("", "INCLUDE NULLS ", "EXCLUDE NULLS ")))
    given = "(SELECT {E}s, v, CAST(k AS DOUBLE) + 1 AS w FROM {W})"
    made = f"{given} UNPIVOT {nulls}(x FOR name IN ({draw(st.sampled_from(VALUES))}))"
    if draw(st.booleans()):
        return f"SELECT * FROM {made} AS u"
    return f"SELECT {{E}}name, SUM(x) AS t, COUNT(*) AS n FROM {made} AS u GROUP BY {{E}}name"


statements = st.one_of(pivots(), unpivots())


def held(given: list[Row]) -> pa.Table:
    return pa.Table.from_batches([to_batch(given)], SCHEMA)


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows of an answer that came and did not go."""
    counts: Counter[tuple[Any, ...]] = Counter()
    copies = table["_diff"].to_pylist() if "_diff" in table.column_names else [1] * len(table)
    shown = table.drop_columns([n for n in ("_time", "_diff") if n in table.column_names])
    columns = [one.to_pylist() for one in shown.columns]
    for row, many in zip(zip(*columns, strict=True), copies, strict=True):
        counts[plain(row)] += many
    return +counts


@pytest.mark.parametrize("part", range(3))
def test_tables(part: int) -> None:
    def check(draw: st.DataObject) -> None:
        statement, given = draw.draw(statements), draw.draw(rows)
        db = LocalDatabase(draw.draw(st.integers(1, 3)))
        db.create_table("W", held(given))
        asked = statement.format(W="W", E="")
        assert counted(db.sql(asked)) == judge(asked, held(given))

    check_generated(check, part, 120, deadline=None)


@pytest.mark.parametrize("part", range(3))
def test_windows_at_instants(part: int) -> None:
    def check(draw: st.DataObject) -> None:
        statement, given = draw.draw(statements), draw.draw(rows)
        db = nm.connect()
        db.create_stream("S", held(given), time="ts")
        now = draw.draw(st.integers(-8, 14)) * SECOND // 2
        asked = statement.format(W="S [RANGE 2 SECONDS]", E="")
        if "GROUP BY" not in asked and "UNPIVOT" in asked:
            asked += " EMIT CHANGES"
        answer = db.sql(asked, at=EPOCH + timedelta(microseconds=now))
        inside = [row for row in given if now - 2 * SECOND <= row[0] <= now]
        assert counted(answer) == judge(statement.format(W="W", E=""), held(inside))

    check_generated(check, part, 120, deadline=None)


@pytest.mark.parametrize("part", range(3))
def test_windows_of_time(part: int) -> None:
    def check(draw: st.DataObject) -> None:
        statement, given = draw.draw(statements), draw.draw(rows)
        windows = draw.draw(st.sampled_from((("TUMBLE", 1, 1), ("HOP", 2, 1))))
        kind, size, slide = windows[0], windows[1] * SECOND, windows[2] * SECOND
        db = database(given, draw.draw(st.integers(1, 3)))
        window = written(kind, size, slide, 0)
        result = db.sql(statement.format(W=window, E="window_end, "))
        judged = judge(
            statement.format(W="W", E="window_end, "), in_windows(given, kind, size, slide, 0)
        )
        assert answer(result) == judged

    check_generated(check, part, 120, deadline=None)


def table(statement: str) -> pa.Table:
    db = nm.connect()
    rows = [("x", "a", 1, 2.5), ("x", "b", 2, None), ("y", "a", 3, 4.5), ("y", None, 4, 5.5)]
    columns = dict(zip("rkvw", map(list, zip(*rows, strict=True)), strict=True))
    db.create_table("T", pa.table(columns))
    return db.sql(statement)


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        (
            "SELECT * FROM (SELECT r, k, v FROM T) PIVOT (SUM(v) FOR k IN ('a', 'b' AS bee, NULL)) "
            "ORDER BY r",
            [
                {"r": "x", "a": 1, "bee": 2, "null": None},
                {"r": "y", "a": 3, "bee": None, "null": 4},
            ],
        ),
        (
            "SELECT * FROM T PIVOT (SUM(v) AS s, COUNT(*) FOR r IN ('x') GROUP BY k) ORDER BY k",
            [
                {"k": None, "x_s": None, "x_COUNT(*)": 0},
                {"k": "a", "x_s": 1, "x_COUNT(*)": 1},
                {"k": "b", "x_s": 2, "x_COUNT(*)": 1},
            ],
        ),
        (
            "SELECT * FROM (SELECT r, v FROM T) PIVOT (SUM(v) FILTER (WHERE v > 1) FOR r IN "
            "('x', 'y'))",
            [{"x": 2, "y": 7}],
        ),
        (
            "SELECT * FROM (SELECT v > 2 AS large, DATE '2026-01-31' AS day, v FROM T) PIVOT "
            "(MAX(v) FOR (large, day) IN ((TRUE, DATE '2026-01-31'), (FALSE, DATE '2026-02-01')))",
            [{"true_2026-01-31": 4, "false_2026-02-01": None}],
        ),
        (
            "SELECT p.x, q.y FROM (SELECT r, v FROM T) PIVOT (MAX(v) FOR r IN ('x')) AS p "
            "CROSS JOIN (SELECT r, v FROM T) PIVOT (MIN(v) FOR r IN ('y')) q",
            [{"x": 2, "y": 3}],
        ),
        (
            "SELECT * FROM T UNPIVOT (value FOR name IN (v, w AS 'w!')) u WHERE r = 'x' "
            "ORDER BY k, name",
            [
                {"r": "x", "k": "a", "name": "v", "value": 1.0},
                {"r": "x", "k": "a", "name": "w!", "value": 2.5},
                {"r": "x", "k": "b", "name": "v", "value": 2.0},
            ],
        ),
        (
            "SELECT * FROM (SELECT r, v, w FROM T WHERE k = 'a') UNPIVOT (v FOR w IN (v, w)) "
            "PIVOT (MAX(v) FOR w IN ('v', 'w')) ORDER BY r",
            [{"r": "x", "v": 1.0, "w": 2.5}, {"r": "y", "v": 3.0, "w": 4.5}],
        ),
    ],
)
def test_columns_have_names(statement: str, rows: list[dict[str, Any]]) -> None:
    assert table(statement).to_pylist() == rows


def test_pivot_may_be_a_name() -> None:
    answer = table("SELECT pivot.v AS unpivot FROM T pivot WHERE pivot.v > 3")
    assert answer.to_pylist() == [{"unpivot": 4}]


@pytest.mark.parametrize(
    ("clause", "message", "hint"),
    [
        ("PIVOT (SUM(v) FOR k IN (a))", "the values of PIVOT must be constants", "'a'"),
        ("PIVOT (SUM(v) FOR k IN (ANY))", "the values of PIVOT must be constants", "IN ('a', 'b')"),
        (
            "PIVOT (SUM(v) FOR k IN (SELECT k FROM T))",
            "the values of PIVOT must be constants",
            "IN ('a', 'b')",
        ),
        ("PIVOT (upper(k) FOR k IN ('a'))", "PIVOT needs aggregates", "SUM(v)"),
        (
            "PIVOT (SUM(v) FOR k IN ('a', 'A'))",
            "PIVOT makes two columns A",
            "give one of the values a name",
        ),
        ("PIVOT (SUM(v) FOR k IN ('r'))", "the subquery T has two columns named r", "AS other"),
        ("PIVOT (SUM(x) FOR k IN ('a'))", "there is no column x", None),
        (
            "PIVOT (SUM(v) FOR (k, r) IN ('a'))",
            "PIVOT has 2 columns after FOR, but 1 value here",
            "FOR (k, j)",
        ),
        (
            "UNPIVOT ((x, y) FOR name IN ((v, w)))",
            "cannot read this UNPIVOT",
            "FOR name IN (a, b)",
        ),
        ("UNPIVOT (x FOR name IN ((v, w)))", "UNPIVOT takes single columns", "FOR name IN (a, b)"),
        ("UNPIVOT (x FOR name IN (v, v))", "UNPIVOT has two names v", "AS 'other'"),
        ("UNPIVOT (x FOR name IN (v, z))", "T has no column z", None),
    ],
)
def test_refusals(clause: str, message: str, hint: str | None) -> None:
    with pytest.raises(NilometerError) as error:
        table(f"SELECT * FROM T {clause}")
    assert error.value.message == message
    assert hint is None or hint in (error.value.hint or "")
