"""OVER, generated: several windows of different partitions and frames in one statement.

Rows have times of their own, so that what stands before which is said; DuckDB is asked of all rows.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.generated import check_generated
from tests.unit.test_over import SECOND, Row, answer, check, database, judge, values

PARTITIONS = ("", "k", "s", "s, k", "k + 1")
FRAMES = (
    "",
    "ROWS 2 PRECEDING",
    "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN CURRENT ROW AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN INTERVAL '2' SECONDS PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN INTERVAL '500' MILLISECONDS PRECEDING AND CURRENT ROW",
)
BOUNDED = tuple(one for one in FRAMES if one and "UNBOUNDED" not in one)
NUMBERS = ("ROW_NUMBER()", "RANK()", "DENSE_RANK()")
OFFSETS = (
    *("LAG(v)", "LAG(s, 2)", "LAG(k, 1, 7)", "LAG(v + k, 3, 0.5)", "LAG(v IGNORE NULLS)"),
    "LAG(s, 2, 'none' IGNORE NULLS)",
)
AHEAD = ("LEAD(v)", "LEAD(s, 2, 'none')", "LEAD(k, 3)")
PICKED = (
    *("FIRST_VALUE(v)", "LAST_VALUE(s)", "FIRST_VALUE(s IGNORE NULLS)", "LAST_VALUE(k)"),
    *("LAST_VALUE(v IGNORE NULLS)", "NTH_VALUE(v, 2)", "NTH_VALUE(s, 3 IGNORE NULLS)"),
)
TOTALS = (
    *("COUNT(*)", "COUNT(v)", "SUM(v)", "AVG(k)", "MIN(v)", "MAX(k)", "VAR_POP(v)", "SUM(k)"),
    *("STDDEV_SAMP(v)", "SUM(v) FILTER (WHERE k > 0)", "COUNT(*) FILTER (WHERE s = 'a')"),
    *("BOOL_OR(k > 0)", "COVAR_POP(v, k)", "BOOL_AND(v > 0)"),
    *("REGR_COUNT(v, k)", "REGR_SXX(v, k) FILTER (WHERE s = 'a')"),
)
WHOLE = (
    *("MEDIAN(v)", "MAX(s)", "COUNT(DISTINCT s)", "SUM(DISTINCT v)", "BIT_OR(k)", "BIT_XOR(k)"),
    # DuckDB leaves rows out in which the value is NULL.
    *("MAX_BY(v, ts) FILTER (WHERE v IS NOT NULL)", "MIN_BY(s, ts) FILTER (WHERE s IS NOT NULL)"),
)


@st.composite
def windows(draw: st.DrawFn, ahead: str) -> str:
    """A call with its window; all that look ahead do so in one partition."""
    kind = draw(st.sampled_from(("number", "offset", "ahead", "picked", "total", "whole")))
    partition, frame = draw(st.sampled_from(PARTITIONS)), ""
    match kind:
        case "number":
            call = draw(st.sampled_from(NUMBERS))
        case "offset":
            call = draw(st.sampled_from(OFFSETS))
        case "ahead":
            call, partition = draw(st.sampled_from(AHEAD)), ahead
        case "picked":
            call, frame = draw(st.sampled_from(PICKED)), draw(st.sampled_from(FRAMES))
        case "total":
            call, frame = draw(st.sampled_from(TOTALS)), draw(st.sampled_from(FRAMES))
        case _:
            call, frame = draw(st.sampled_from(WHOLE)), draw(st.sampled_from(BOUNDED))
    by = f"PARTITION BY {partition} " if partition else ""
    return f"{call} OVER ({by}ORDER BY ts {frame})"


@st.composite
def statements(draw: st.DrawFn) -> str:
    ahead = draw(st.sampled_from(PARTITIONS))
    calls = draw(st.lists(windows(ahead), min_size=1, max_size=5))
    listed = ", ".join(f"{one} AS c{number}" for number, one in enumerate(calls))
    where = draw(st.sampled_from(("", " WHERE v > 0", " WHERE s IS NOT NULL")))
    qualify = draw(st.sampled_from(("", " QUALIFY c0 IS NOT NULL", " QUALIFY c0 IS NULL OR k = 1")))
    return f"SELECT ts, k, {listed} FROM S{where}{qualify}"


rows = st.lists(st.integers(0, 30), max_size=25, unique=True).flatmap(
    lambda times: st.lists(values, min_size=len(times), max_size=len(times)).map(
        lambda rest: [(t * SECOND // 2, *r) for t, r in zip(times, rest, strict=True)]
    )
)


@pytest.mark.generated
@pytest.mark.parametrize("part", range(4))
def test_what_is_said_of_rows_is_what_duckdb_says(part: int) -> None:
    def judged(draw: st.DataObject) -> None:
        statement = draw.draw(statements())
        given: list[Row] = draw.draw(rows)
        buckets, cuts = draw.draw(st.integers(1, 2)), draw.draw(st.lists(st.integers(0, 20)))
        if "LEAD" in statement:
            assert answer(database(given, buckets).sql(statement)) == judge(statement, given)
        else:
            check(statement, given, buckets, cuts[:3])

    check_generated(judged, part, 120, deadline=None)
