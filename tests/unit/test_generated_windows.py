"""Windows of time, generated: aggregates, HAVING, groups of groups, OVER within a window, unions.

DuckDB is asked of a table of the rows in their windows, which a naive loop makes; a statement is
asked of all rows, and streamed in micro-batches with a restart between.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.generated import check_generated
from tests.unit.test_time_windows import (
    Row,
    answer,
    database,
    in_windows,
    judge,
    lengths,
    rows,
    streamed,
    written,
)

KEYS = ("k", "s", "k + 1", "window_start", "coalesce(s, 'none')")
AGGREGATES = (
    *("COUNT(*)", "COUNT(v)", "SUM(v)", "AVG(v)", "MIN(v)", "MAX(s)", "MEDIAN(v)", "VAR_POP(v)"),
    *("COUNT(DISTINCT k)", "SUM(v) FILTER (WHERE k > 0)", "BIT_OR(k)", "BIT_AND(k + 4)"),
    *(
        "BOOL_OR(v > 0)",
        "COUNT(*) FILTER (WHERE s = 'a')",
        "MAX(v) - MIN(v)",
        "SUM(v * k) / COUNT(*)",
    ),
)
NUMBERS = ("RANK()", "DENSE_RANK()", "CUME_DIST()", "PERCENT_RANK()")
"""What does not tell rows apart that the order leaves together."""
FRAMED = ("SUM", "COUNT", "MAX", "AVG")


@st.composite
def grouped(draw: st.DrawFn) -> str:
    """A query that groups the rows of windows, and maybe looks around among the groups."""
    keys = ["window_end", *draw(st.lists(st.sampled_from(KEYS), max_size=2, unique=True))]
    aggregates = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3, unique=True))
    listed = [f"{key} AS g{number}" for number, key in enumerate(keys)]
    listed += [f"{one} AS a{number}" for number, one in enumerate(aggregates)]
    first = aggregates[0]
    if draw(st.booleans()):
        order = draw(st.sampled_from(("", " DESC", " NULLS LAST")))
        call = draw(st.sampled_from(NUMBERS))
        listed.append(f"{call} OVER (PARTITION BY window_end ORDER BY {first}{order}) AS r")
    if draw(st.booleans()):
        listed.append("COUNT(*) * 100 / SUM(COUNT(*)) OVER (PARTITION BY window_end) AS share")
    where = draw(st.sampled_from(("", " WHERE v > 0", " WHERE s IS NOT NULL OR k = 0")))
    having = draw(st.sampled_from(("", "", " HAVING COUNT(*) > 1")))
    by = ", ".join(keys)
    return f"SELECT {', '.join(listed)} FROM {{W}}{where} GROUP BY {by}{having}"


@st.composite
def looked_at(draw: st.DrawFn) -> str:
    """A query that looks around among the rows of each window."""
    partition = draw(st.sampled_from(("window_end", "window_end, k", "s, window_end")))
    order = draw(st.sampled_from(("v", "v DESC", "k, v", "ts DESC", "s NULLS LAST, ts")))
    calls = [f"{draw(st.sampled_from(NUMBERS))} OVER (PARTITION BY {partition} ORDER BY {order})"]
    calls += [
        f"{draw(st.sampled_from(FRAMED))}(v) OVER (PARTITION BY {partition} ORDER BY {order})"
        for _ in range(draw(st.integers(0, 2)))
    ]
    calls.append(f"MIN(v) OVER (PARTITION BY {partition})")
    listed = ", ".join(f"{call} AS c{number}" for number, call in enumerate(calls))
    where = draw(st.sampled_from(("", " WHERE k IS NOT NULL", " WHERE v > 0")))
    qualify = draw(st.sampled_from(("", " QUALIFY c0 <= 2", " QUALIFY c0 > 0.5")))
    return f"SELECT window_end, k, v, {listed} FROM {{W}}{where}{qualify}"


@st.composite
def of_groups(draw: st.DrawFn) -> str:
    """Groups of groups, without a name for the query below."""
    inner = draw(grouped())
    outer = draw(st.sampled_from(("COUNT(*)", "MAX(a0)", "COUNT(DISTINCT a0)", "MIN(a0)")))
    return f"SELECT g0, {outer} AS t FROM ({inner}) GROUP BY g0"


@pytest.mark.generated
@pytest.mark.parametrize("part", range(4))
def test_windows_answer_what_duckdb_says(part: int) -> None:
    def judged(draw: st.DataObject) -> None:
        statement = draw.draw(st.one_of(grouped(), looked_at(), of_groups()))
        given: list[Row] = draw.draw(rows) + draw.draw(rows)
        kind = draw.draw(st.sampled_from(("TUMBLE", "HOP", "SESSION")))
        size, slide = 1000 * draw.draw(lengths), 1000 * draw.draw(lengths)
        slide = slide if kind == "HOP" else size
        offset = 250_000 * draw.draw(st.integers(0, 20))
        buckets, cuts = draw.draw(st.integers(1, 3)), draw.draw(st.lists(st.integers(0, 25)))
        right = judge(statement.replace("{W}", "W"), in_windows(given, kind, size, slide, offset))
        asked = statement.replace("{W}", written(kind, size, slide, offset))
        assert answer(database(given, buckets).sql(asked)) == right
        assert streamed(given, asked, buckets, cuts[:3]) == right

    check_generated(judged, part, 120, deadline=None)
