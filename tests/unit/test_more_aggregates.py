"""Aggregates of several values, of an order and of all values, against DuckDB.

Over time windows, where groups are new each time, and over a sliding window, where rows come
and go: there the answer is folded at every second.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from tests.duck import connect

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("v", pa.float64()),
        ("s", pa.string()),
    ]
)
Row = tuple[int, int | None, float | None, str | None]
MODE = (
    "list_sort(list_transform(map_entries(histogram(s)), "
    "lambda e: struct_pack(a := -CAST(e.value AS BIGINT), b := e.key)))[1].b"
)
THIRD = "avg(v * v * v) - 3 * avg(v) * avg(v * v) + 2 * avg(v) * avg(v) * avg(v)"
CALLS = {
    "bool_and(v > 0)": "bool_and(v > 0)",
    "every(v > 0)": "bool_and(v > 0)",
    "bool_or(v > 1)": "bool_or(v > 1)",
    "some(v > 1)": "bool_or(v > 1)",
    "count_if(v > 0)": "count(*) FILTER (v > 0)",
    "COUNT(DISTINCT k, s)": "count(DISTINCT (k, s)) FILTER (k IS NOT NULL AND s IS NOT NULL)",
    "max_by(s, v)": "(list(s ORDER BY v DESC, s DESC NULLS LAST) FILTER (v IS NOT NULL))[1]",
    "min_by(s, v)": "(list(s ORDER BY v, s NULLS FIRST) FILTER (v IS NOT NULL))[1]",
    "first(v)": "(list(v ORDER BY ts, v NULLS FIRST))[1]",
    "last(v)": "(list(v ORDER BY ts DESC, v DESC NULLS LAST))[1]",
    "first(s) IGNORE NULLS": "(list(s ORDER BY ts, s) FILTER (s IS NOT NULL))[1]",
    "last(s ORDER BY v)": "(list(s ORDER BY v DESC NULLS LAST, s DESC NULLS LAST))[1]",
    "collect_list(v)": "coalesce(list(v ORDER BY ts, v) FILTER (v IS NOT NULL), [])",
    "collect_set(s)": "coalesce(list_sort(list(DISTINCT s) FILTER (s IS NOT NULL)), [])",
    "array_agg(s ORDER BY v DESC)": "coalesce(list(s ORDER BY v DESC NULLS LAST, s DESC) "
    "FILTER (s IS NOT NULL), [])",
    "array_agg(s ORDER BY k DESC, v)": "coalesce(list(s ORDER BY k DESC NULLS LAST, "
    "v NULLS FIRST, s) FILTER (s IS NOT NULL), [])",
    "array_agg(s ORDER BY v DESC NULLS FIRST)": "coalesce(list(s ORDER BY v DESC NULLS FIRST, s) "
    "FILTER (s IS NOT NULL), [])",
    "string_agg(s, '+' ORDER BY v NULLS LAST, k DESC)": "string_agg(s, '+' ORDER BY v NULLS LAST, "
    "k DESC NULLS LAST, s)",
    "first(s ORDER BY v DESC, k)": "(list(s ORDER BY v DESC NULLS LAST, k NULLS FIRST, "
    "s NULLS FIRST))[1]",
    "last(s ORDER BY v DESC, k) IGNORE NULLS": "(list(s ORDER BY v NULLS FIRST, k DESC NULLS LAST, "
    "s DESC) FILTER (s IS NOT NULL))[1]",
    "first(s ORDER BY k, v) || first(s ORDER BY k, v DESC)": "(list(s ORDER BY k NULLS FIRST, "
    "v NULLS FIRST, s NULLS FIRST))[1] || (list(s ORDER BY k NULLS FIRST, v DESC NULLS LAST, "
    "s NULLS FIRST))[1]",
    "string_agg(s, '+')": "string_agg(s, '+' ORDER BY ts, s)",
    "string_agg(DISTINCT s, '+')": "string_agg(DISTINCT s, '+' ORDER BY s)",
    "listagg(s, ', ') WITHIN GROUP (ORDER BY v)": "string_agg(s, ', ' ORDER BY v NULLS FIRST, s)",
    "mode(s)": MODE,
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY v)": "quantile_cont(v, 0.25)",
    "percentile_disc(0.25) WITHIN GROUP (ORDER BY v)": "quantile_disc(v, 0.25)",
    "percentile_disc(0.6) WITHIN GROUP (ORDER BY k DESC)": (
        "(percentile_disc(0.6) WITHIN GROUP (ORDER BY k DESC))::DOUBLE"
    ),
    "approx_count_distinct(s)": "count(DISTINCT s)",
    "regr_count(v, k)": "regr_count(v, k)",
    "regr_avgx(v, k)": "regr_avgx(v, k)",
    "regr_avgy(v, k)": "regr_avgy(v, k)",
    "regr_sxx(v, k)": "regr_sxx(v, k)",
    "regr_syy(v, k)": "regr_syy(v, k)",
    "regr_sxy(v, k)": "regr_sxy(v, k)",
    "regr_slope(v, k)": "regr_slope(v, k)",
    "regr_intercept(v, k)": "regr_intercept(v, k)",
    "regr_r2(v, k)": "regr_r2(v, k)",
    "regr_slope(v, k) FILTER (WHERE s = 'a')": "regr_slope(v, k) FILTER (s = 'a')",
    "skewness(v)": f"CASE WHEN var_pop(v) > 0 THEN ({THIRD}) / pow(var_pop(v), 1.5) END",
    "kurtosis(v)": "CASE WHEN var_pop(v) > 0 THEN kurtosis_pop(v) END",
    "approx_percentile(v, 0.25)": "quantile_disc(v, 0.25)",
    "percentile_approx(v, array(0.5, 0.9), 100)": "CASE WHEN count(v) > 0 "
    "THEN quantile_disc(v, [0.5, 0.9]) ELSE [NULL, NULL] END",
    "bit_and(k - 2)": "bit_and(k - 2)",
    "bit_or(k * 5 - 7)": "bit_or(k * 5 - 7)",
    "bit_xor(k - 1)": "bit_xor(k - 1)",
    "bit_or(DISTINCT k) FILTER (WHERE v > 0)": "bit_or(k) FILTER (v > 0)",
    "max(struct(v, s)).s": "(list(s ORDER BY v DESC NULLS LAST, s DESC NULLS LAST))[1]",
    "min(struct(s, k)).k": "(list(k ORDER BY s NULLS FIRST, k NULLS FIRST))[1]",
    "covar_pop(v, k)": "covar_pop(v, k)",
    "covar_samp(v, k)": "covar_samp(v, k)",
    "corr(v, k)": "CASE WHEN stddev_pop(v) FILTER (k IS NOT NULL) > 0 AND stddev_pop(k) "
    "FILTER (v IS NOT NULL) > 0 THEN corr(v, k) END",
    "string_agg(s, '') FILTER (WHERE v > 0)": "string_agg(s, '' ORDER BY ts, s) FILTER (v > 0)",
    "covar_pop(v, k) FILTER (WHERE s = 'a')": "covar_pop(v, k) FILTER (s = 'a')",
    "first(s) || last(s)": "(list(s ORDER BY ts, s NULLS FIRST))[1] || "
    "(list(s ORDER BY ts DESC, s DESC NULLS LAST))[1]",
}
rows = st.lists(
    st.tuples(
        st.integers(0, 20).map(lambda t: t * SECOND // 2),
        st.sampled_from([None, 0, 1, 2]),
        st.sampled_from([None, 0.5, 1.25, -2.0, 7.0]),
        st.sampled_from([None, "a", "b", "long text"]),
    ),
    max_size=20,
)


def to_table(given_rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*given_rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def judge(sql: str, table: pa.Table) -> Counter[tuple[Any, ...]]:
    with connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("S", table)
        return Counter(map(plain, connection.execute(sql).fetchall()))


def plain(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(map(_plain, row))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, list):
        return plain(value)
    if isinstance(value, int | float):
        return None if math.isnan(value) else round(float(value), 9) + 0.0
    return value


def rows_of(table: pa.Table, count: int) -> list[tuple[Any, ...]]:
    return list(map(plain, zip(*(table.column(i).to_pylist() for i in range(count)), strict=True)))


@pytest.mark.parametrize("call", list(CALLS))
@given(rows, st.integers(1, 2))
@settings(max_examples=12, deadline=None)
def test_over_windows_of_time(call: str, given_rows: list[Row], buckets: int) -> None:
    table = to_table(given_rows)
    db = LocalDatabase(buckets)
    db.create_stream("S", table, time="ts")
    answer = db.sql(f"SELECT window_start, {call} AS x FROM TUMBLE(S, 3 SECONDS) GROUP BY 1")
    right = judge(
        "SELECT time_bucket(INTERVAL 3 SECONDS, ts, TIMESTAMPTZ '1970-01-01 00:00:00Z') AS w, "
        f"{CALLS[call]} AS x FROM S GROUP BY w",
        table,
    )
    assert Counter(rows_of(answer, 2)) == right


ORDERED: list[Row] = [
    (0, 1, 2.0, "a"),
    (1, 1, 7.0, "b"),
    (2, 2, 7.0, "c"),
    (3, None, 7.0, "d"),
    (4, 2, None, "e"),
]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("v DESC, k", "d b c a e"),
        ("v DESC, k DESC", "c b d a e"),
        ("v, k DESC", "e a c b d"),
        ("v NULLS LAST, k NULLS LAST", "a b c d e"),
        ("v DESC NULLS FIRST, k DESC NULLS FIRST", "e d c b a"),
        ("k NULLS LAST, v DESC", "b a c e d"),
    ],
)
def test_orders_of_several_directions(order: str, expected: str) -> None:
    """Inside aggregates, and of the first rows of a window whose rows come and go."""
    db = LocalDatabase()
    db.create_stream("S", to_table(ORDERED), time="ts")
    names = expected.split()
    called = f"array_agg(s ORDER BY {order}), first(s ORDER BY {order}), last(s ORDER BY {order})"
    answer = db.sql(f"SELECT {called} FROM TUMBLE(S, 1 SECOND) GROUP BY window_end")
    assert rows_of(answer, 3) == [(tuple(names), names[0], names[-1])]
    numbered = f"SELECT s, ROW_NUMBER() OVER (ORDER BY {order}) AS r FROM S [RANGE 1 HOUR]"
    changes = db.sql(f"SELECT s FROM ({numbered}) x WHERE r <= 2").to_pylist()
    last = max(one["_time"] for one in changes if one["_time"].hour == 0)
    held: Counter[str] = Counter()
    for one in changes:
        held[one["s"]] += one["_diff"] * (one["_time"] <= last)
    assert set(+held) == set(names[:2])


def test_moments_are_exact_far_from_zero() -> None:
    """Sums of powers in doubles would have no right digit here."""
    values = [1e9 + one for one in (0.25, 0.5, 3.0, 7.75, -2.5)]
    db = LocalDatabase()
    db.create_stream("S", to_table([(0, 0, one, None) for one in values]), time="ts")
    (moments,) = rows_of(
        db.sql("SELECT skewness(v), kurtosis(v) FROM TUMBLE(S, 1 SECOND) GROUP BY window_end"), 2
    )
    exact = list(map(Fraction, values))
    mean = sum(exact) / len(exact)
    second, third, fourth = (
        float(sum((one - mean) ** power for one in exact) / len(exact)) for power in (2, 3, 4)
    )
    assert moments == pytest.approx((third / second**1.5, fourth / second**2 - 3), abs=1e-9)


def test_a_line_over_time_is_exact() -> None:
    """Of x + y in doubles nothing of y would be left."""
    begin, line = 1_700_000_000_000_000, [(i * SECOND, 20 + 0.001 * i) for i in range(100)]
    rows = [(t, begin + t, y, None) for t, y in line]
    db = LocalDatabase()
    db.create_stream("S", to_table(rows), time="ts")
    row = db.sql(
        "SELECT regr_slope(v, k) AS s, regr_r2(v, k) AS r, corr(v, k) AS c, covar_samp(v, k) AS a "
        "FROM TUMBLE(S, 1 HOUR) GROUP BY window_end"
    ).to_pylist()[0]
    assert row["s"] == pytest.approx(1e-9, rel=1e-12)
    assert row["r"] == pytest.approx(1, rel=1e-12)
    assert row["c"] == pytest.approx(1, rel=1e-12)
    xs = [Fraction(x) for _, x, _, _ in rows]
    ys = [Fraction(y) for _, _, y, _ in rows]
    mean_x, mean_y = sum(xs) / 100, sum(ys) / 100
    exact = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / 99
    assert row["a"] == float(exact)


def test_an_approximate_percentile_is_a_value_of_the_column() -> None:
    large = 9_007_199_254_740_993  # no double
    db = LocalDatabase()
    db.create_stream("S", to_table([(0, large, 0.5, None)] * 3), time="ts")
    answer = db.sql(
        "SELECT approx_percentile(k, 0.5) AS p FROM TUMBLE(S, 1 HOUR) GROUP BY window_end"
    )
    assert answer.column("p").to_pylist() == [large]
    assert answer.schema.field("p").type == pa.int64()


ALIKE = {
    "percentile_disc(0.9) WITHIN GROUP (ORDER BY v)": "quantile_disc(v, 0.9)",
    "array_agg(s ORDER BY v)": "coalesce(list(s ORDER BY v NULLS FIRST, s) "
    "FILTER (s IS NOT NULL), [])",
    "string_agg(s, '-')": "string_agg(s, '-' ORDER BY ts, s)",
    "array_agg(DISTINCT s ORDER BY s DESC NULLS FIRST)": "coalesce(list_reverse_sort(list("
    "DISTINCT s) FILTER (s IS NOT NULL)), [])",
}
"""Calls that differ from others in an order, a fraction or a constant alone."""


@given(rows, st.lists(st.sampled_from([*CALLS, *ALIKE]), min_size=2, max_size=12, unique=True))
@settings(max_examples=300, deadline=None)
def test_several_beside_each_other(given_rows: list[Row], calls: list[str]) -> None:
    """Each says what it says alone, however alike they are."""
    table = to_table(given_rows)
    db = LocalDatabase()
    db.create_stream("S", table, time="ts")
    listed = ", ".join(f"{call} AS x{i}" for i, call in enumerate(calls))
    answer = db.sql(f"SELECT window_start, {listed} FROM TUMBLE(S, 3 SECONDS) GROUP BY 1")
    asked = ", ".join({**CALLS, **ALIKE}[call] for call in calls)
    right = judge(
        "SELECT time_bucket(INTERVAL 3 SECONDS, ts, TIMESTAMPTZ '1970-01-01 00:00:00Z') AS w, "
        f"{asked} FROM S GROUP BY w",
        table,
    )
    assert Counter(rows_of(answer, 1 + len(calls))) == right


@pytest.mark.parametrize("call", list(CALLS))
@given(rows, st.lists(st.integers(0, 20), max_size=2))
@settings(max_examples=6, deadline=None)
def test_while_rows_come_and_go(call: str, given_rows: list[Row], cuts: list[int]) -> None:
    """A sliding window, streamed with restarts, folded at every second."""
    ordered = sorted(given_rows, key=lambda row: row[0])
    table = to_table(ordered)
    db = LocalDatabase()
    db.create_stream("S", table, time="ts")
    query = db.query(f"SELECT s AS g, {call} AS x FROM S [RANGE 3 SECONDS] GROUP BY s")
    parts = []
    places = [0, *sorted(min(cut, len(ordered)) for cut in cuts), len(ordered)]
    for number, end in enumerate(places[1:]):
        parts.append(query.feed({"S": to_batch(ordered[places[number] : end])}))
        query.restart()
    last: Row = (100 * SECOND, None, None, None)
    parts.append(query.feed({"S": to_batch([last])}))
    changes = pa.concat_tables(parts)
    times = [_plain(one) for one in changes["_time"].to_pylist()]
    emitted = list(zip(rows_of(changes, 2), times, changes["_diff"].to_pylist(), strict=True))
    for second in range(16):
        at = second * SECOND
        folded: Counter[tuple[Any, ...]] = Counter()
        for row, time, diff in emitted:
            if time <= at:
                folded[row] += diff
        recent = to_table([row for row in ordered if at - 3 * SECOND <= row[0] <= at])
        assert +folded == judge(f"SELECT s, {CALLS[call]} AS x FROM S GROUP BY s", recent)


def to_batch(given_rows: Sequence[Row]) -> pa.RecordBatch:
    table = to_table(given_rows).combine_chunks()
    return pa.RecordBatch.from_arrays([c.combine_chunks() for c in table.columns], schema=SCHEMA)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT bool_and(v) FROM S [ROWS 3]", "AND needs a condition"),
        ("SELECT string_agg(v, ',') FROM S [ROWS 3]", "needs texts"),
        (
            "SELECT first(v) FROM (SELECT v FROM S [ROWS 3] EXCEPT SELECT v FROM S [ROWS 1]) x",
            "have no time to order them by",
        ),
        ("SELECT max_by(v) FROM S [ROWS 3]", "takes two arguments"),
        ("SELECT max_by(v, k, 3) FROM S [ROWS 3]", "takes two arguments"),
        ("SELECT mode() FROM S [ROWS 3]", "takes an argument"),
        ("SELECT approx_percentile(v) FROM S [ROWS 3]", "takes two arguments"),
        ("SELECT approx_percentile(v, 0.5, 'x') FROM S [ROWS 3]", "a whole number"),
        ("SELECT approx_percentile(s, 0.5) FROM S [ROWS 3]", "needs a number"),
        (
            "SELECT percentile_cont('x') WITHIN GROUP (ORDER BY v DESC) FROM S [ROWS 3]",
            "between 0 and 1",
        ),
        (
            "SELECT percentile_cont(-1) WITHIN GROUP (ORDER BY v DESC) FROM S [ROWS 3]",
            "between 0 and 1",
        ),
        ("SELECT string_agg(s, s) FROM S [ROWS 3]", "must be a constant"),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v, k) FROM S [ROWS 3]", "one column"),
        ("SELECT percentile_disc(2) WITHIN GROUP (ORDER BY v) FROM S [ROWS 3]", "between 0 and 1"),
    ],
)
def test_what_cannot_be_is_said(statement: str, message: str) -> None:
    db = LocalDatabase()
    db.create_stream("S", to_table([]), time="ts")
    with pytest.raises(NilometerError, match=message):
        db.sql(statement)
