"""Windows of time: generated rows, windows and statements, against DuckDB.

DuckDB is asked of a table of the rows in their windows, which a naive loop makes: a row per
window. A statement is run over all rows, and streamed in micro-batches with a restart between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from tests.duck import connect

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("ts", TIMESTAMP), ("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])
Row = tuple[int, int | None, float | None, str | None]

rows = st.lists(
    st.tuples(
        st.integers(-8, 8).map(lambda t: t * 500_000) | st.integers(-3, 3),
        st.sampled_from([None, 0, 1]),
        st.sampled_from([None, 0.5, 1.0, -2.25, 7.0]),
        st.sampled_from([None, "a", "b"]),
    ),
    max_size=25,
)
lengths = st.integers(1, 4).map(lambda n: n * 500)  # milliseconds

STATEMENTS = (
    "SELECT window_start, window_end, k, COUNT(*) AS n, SUM(v) AS s FROM {W} "
    "GROUP BY window_start, window_end, k",
    "SELECT window_end, COUNT(*) AS n, COUNT(v) AS c, MIN(v) AS a, MAX(v) AS b, AVG(v) AS m "
    "FROM {W} GROUP BY window_end",
    "SELECT window_end, s, COUNT(DISTINCT k) AS n, MAX(k) FILTER (WHERE v > 0) AS m FROM {W} "
    "GROUP BY window_end, s HAVING COUNT(*) > 1",
    "SELECT window_start, MEDIAN(v) AS m FROM {W} WHERE k > 0 OR s = 'a' GROUP BY window_start",
    "SELECT k, v, window_start FROM {W} WHERE v IS NOT NULL",
    "SELECT * FROM {W} WHERE k IS NOT NULL",
    "SELECT window_end, MAX(n) AS most, COUNT(*) AS keys FROM (SELECT window_end, k, COUNT(*) AS n "
    "FROM {W} GROUP BY window_end, k) x GROUP BY window_end",
    "SELECT window_end, COUNT(*) AS n FROM {W} GROUP BY window_end "
    "UNION ALL SELECT window_end, k FROM {W}",
)
OVER_WINDOWS = (
    "SELECT window_end AS e, k, RANK() OVER (PARTITION BY e ORDER BY k) AS r FROM {W} GROUP BY "
    "window_end, k",
    "SELECT window_end, k, SUM(v) AS t, RANK() OVER (PARTITION BY window_end ORDER BY SUM(v) DESC) "
    "AS r FROM {W} GROUP BY window_end, k",
    "SELECT window_end, k, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY window_end) "
    "AS share FROM {W} GROUP BY window_end, k QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end "
    "ORDER BY n DESC, k) <= 2",
    "SELECT k, v, NTILE(3) OVER (PARTITION BY window_end, s ORDER BY v, k) AS n, "
    "MAX(v) OVER (PARTITION BY k, window_end) AS m, LEAD(v) OVER (PARTITION BY s, window_end "
    "ORDER BY v DESC NULLS LAST, k) AS l FROM {W} WHERE k IS NOT NULL",
    "SELECT x.k, PERCENT_RANK() OVER (PARTITION BY x.e ORDER BY x.k) AS p FROM (SELECT k, s, "
    "window_end AS e FROM {W} WHERE v > 0) x",
    "SELECT window_end, MAX(r) AS most FROM (SELECT window_end, DENSE_RANK() OVER (PARTITION BY "
    "window_start, window_end ORDER BY s) AS r FROM {W}) x GROUP BY window_end",
    "SELECT k, COUNT(*) OVER (PARTITION BY window_end ORDER BY ts RANGE BETWEEN INTERVAL '500' "
    "MILLISECONDS PRECEDING AND INTERVAL '1' SECOND FOLLOWING) AS n, SUM(v) OVER (PARTITION BY "
    "window_end, s ORDER BY ts DESC RANGE INTERVAL '1' SECOND PRECEDING) AS s FROM {W}",
)
JUDGED_AT_INSTANTS = (
    "SELECT x.window_end, x.k, COUNT(*) OVER (PARTITION BY x.window_end) AS n FROM "
    "(SELECT DISTINCT window_end, k FROM {W}) x",
    "SELECT DISTINCT window_end, k FROM {W}",
    "SELECT window_end, k FROM {W} WHERE v > 0 EXCEPT SELECT window_end, k FROM {W} WHERE s = 'a'",
    "SELECT x.window_end, x.k, y.n FROM (SELECT window_end, k, COUNT(*) AS n FROM {W} "
    "GROUP BY window_end, k) x LEFT JOIN (SELECT window_end, k, COUNT(*) AS n FROM {W} "
    "WHERE v > 0 GROUP BY window_end, k) y ON x.window_end = y.window_end AND x.k = y.k",
    "SELECT w.window_end, T.name, COUNT(*) AS n FROM {W} AS w JOIN T ON T.k = w.k "
    "GROUP BY w.window_end, T.name",
    "SELECT window_end, k FROM {W} AS w WHERE NOT EXISTS (SELECT 1 FROM T WHERE T.k = w.k)",
)


def in_windows(given: Sequence[Row], kind: str, size: int, slide: int, offset: int) -> pa.Table:
    """The rows, once for each of their windows."""
    rows = []
    if kind == "SESSION":
        rows = [(*row, start, end) for row, start, end in sessions(given, size)]
    else:
        for row in given:
            first = (row[0] - offset) // slide * slide + offset
            while first + size > row[0]:
                rows.append((*row, first, first + size))
                first -= slide
    schema = pa.schema([*SCHEMA, ("window_start", TIMESTAMP), ("window_end", TIMESTAMP)])
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def sessions(given: Sequence[Row], gap: int) -> list[tuple[Row, int, int]]:
    """The rows with the starts and ends of the sessions of their keys."""
    rows = []
    for key in {row[1] for row in given}:
        mine = sorted((row for row in given if row[1] == key), key=lambda row: row[0])
        session: list[Row] = []
        for row in [*mine, None]:
            if session and (row is None or row[0] - session[-1][0] > gap):
                bounds = session[0][0], session[-1][0] + gap
                rows += [(one, *bounds) for one in session]
                session = []
            if row is not None:
                session.append(row)
    return rows


def written(kind: str, size: int, slide: int, offset: int) -> str:
    lengths = {"SIZE": size, "SLIDE": slide, "OFFSET": offset}
    if kind == "SESSION":
        return f"SESSION(TABLE S PARTITION BY k, DESCRIPTOR(ts), {size // 1000} MILLISECONDS)"
    names = ("SIZE", "OFFSET") if kind == "TUMBLE" else ("SLIDE", "SIZE", "OFFSET")
    arguments = ", ".join(f"{name} => {lengths[name] // 1000} MILLISECONDS" for name in names)
    return f"{kind}(TABLE S, DESCRIPTOR(ts), {arguments})"


def to_batch(given: Sequence[Row]) -> pa.RecordBatch:
    columns = list(zip(*given, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


TABLE = pa.table({"k": pa.array([0, 1, 1], pa.int64()), "name": ["x", "y", "z"]})


def database(given: Sequence[Row], buckets: int, lateness: int = 0) -> LocalDatabase:
    db = LocalDatabase(buckets)
    db.create_stream("S", pa.Table.from_batches([to_batch(given)]), time="ts", lateness=lateness)
    db.create_table("T", TABLE)
    return db


def judge(sql: str, windows: pa.Table) -> Counter[tuple[Any, ...]]:
    connection = connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    connection.register("W", windows)
    connection.register("T", TABLE)
    return Counter(map(plain, connection.execute(sql).fetchall()))


def plain(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        (one.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
        if isinstance(one, datetime)
        else round(float(one), 9)
        if isinstance(one, int | float)
        else one
        for one in row
    )


def answer(table: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.drop_columns("_time").columns]
    return Counter(map(plain, zip(*columns, strict=True)))


@pytest.mark.parametrize("statement", [*STATEMENTS, *OVER_WINDOWS, *JUDGED_AT_INSTANTS])
@given(
    rows,
    st.sampled_from(["TUMBLE", "HOP", "SESSION"]),
    lengths,
    lengths,
    st.integers(0, 20).map(lambda n: n * 250_000),
    st.integers(1, 3),
    st.lists(st.integers(0, 25), max_size=3),
)
@settings(max_examples=25, deadline=None)
def test_each_window_is_answered_once_as_duckdb_does(
    statement: str,
    given_rows: list[Row],
    kind: str,
    size: int,
    slide: int,
    offset: int,
    buckets: int,
    cuts: list[int],
) -> None:
    size, slide = size * 1000, slide * 1000
    if kind != "HOP":
        slide = size
    windows = in_windows(given_rows, kind, size, slide, offset)
    right = judge(statement.replace("{W}", "W"), windows)
    asked = statement.replace("{W}", written(kind, size, slide, offset))
    table = database(given_rows, buckets).sql(asked)
    assert answer(table) == right
    if "window_end" in table.column_names:
        assert table["window_end"].to_pylist() == table["_time"].to_pylist()
    assert streamed(given_rows, asked, buckets, cuts) == right


def streamed(
    given: list[Row], asked: str, buckets: int, cuts: list[int]
) -> Counter[tuple[Any, ...]]:
    """The same in micro-batches; at the end comes a row that ends all windows of the others."""
    last = (10**6 * SECOND, None, None, None)
    ordered = sorted(given, key=lambda row: row[0] // (5 * SECOND))
    query = database([], buckets, lateness=5 * SECOND).query(asked)
    places = [0, *sorted(min(cut, len(given)) for cut in cuts), len(given)]
    parts = []
    for first, end in pairwise(places):
        parts.append(query.feed({"S": to_batch(ordered[first:end])}))
        query.restart()
    parts.append(query.feed({"S": to_batch([last])}))
    return answer(pa.concat_tables(parts))


def test_changes_hold_until_windows_end() -> None:
    db = database([(0, 1, 1.0, "a"), (2 * SECOND, 1, 1.0, "a"), (7 * SECOND, 1, 1.0, "a")], 1)
    asked = "SELECT k, COUNT(*) AS n FROM S GROUP BY window(ts, '5 seconds'), k EMIT CHANGES"
    rows = db.sql(asked).to_pylist()
    changes = sorted((int(r["_time"].timestamp()), r["_diff"], r["n"]) for r in rows)
    assert changes == [(0, 1, 1), (2, -1, 1), (2, 1, 2), (5, -1, 2), (7, 1, 1), (10, -1, 1)]


@pytest.mark.parametrize(
    ("asked", "same"),
    [
        (
            "SELECT window.start AS b, COUNT(*) AS n FROM S GROUP BY window(ts, '4 seconds')",
            "SELECT window_start AS b, COUNT(*) AS n FROM TUMBLE(S, 4 SECONDS) GROUP BY 1",
        ),
        (
            "SELECT window(ts, '4 seconds', '2 seconds', '1 second').end AS e, MAX(v) AS m FROM S "
            "WHERE k > 0 GROUP BY window(ts, '4 seconds', '2 seconds', '1 second')",
            "SELECT window_end AS e, MAX(v) AS m FROM HOP(S, SLIDE => 2 S, SIZE => 4 S, "
            "OFFSET => 1 S) WHERE k > 0 GROUP BY window_end",
        ),
        (
            "SELECT k, COUNT(*) AS n FROM S [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY k",
            "SELECT k, COUNT(*) AS n FROM HOP(S, 2 SECONDS, 4 SECONDS) GROUP BY k, window_start",
        ),
        (
            "SELECT k, session_window.start AS b, COUNT(*) AS n FROM S WHERE v > 0 "
            "GROUP BY k, session_window(ts, '3 seconds')",
            "SELECT k, window_start AS b, COUNT(*) AS n FROM SESSION(TABLE (SELECT * FROM S "
            "WHERE v > 0) PARTITION BY k, 3 SECONDS) GROUP BY k, window_start",
        ),
        (
            "SELECT HOP_START(ts, INTERVAL '2' SECONDS, INTERVAL '4' SECONDS) AS b, SUM(v) AS s "
            "FROM S GROUP BY HOP(ts, INTERVAL '2' SECONDS, INTERVAL '4' SECONDS)",
            "SELECT window_start AS b, SUM(v) AS s FROM S [RANGE 4 SECONDS SLIDE 2 SECONDS] "
            "GROUP BY window_start",
        ),
        ("SELECT COUNT(*) AS n FROM TUMBLE(S, 4 SECONDS)",) * 2,
        (
            "SELECT x.w.start, x.w.end, x.n FROM (SELECT window(ts, '4 seconds') AS w, COUNT(*) "
            "AS n FROM S GROUP BY w HAVING w.start < TIMESTAMP '1970-01-01 00:00:20') x",
            "SELECT window_start, window_end, COUNT(*) AS n FROM TUMBLE(S, 4 SECONDS) "
            "WHERE window_start < TIMESTAMP '1970-01-01 00:00:20' GROUP BY 1, 2",
        ),
        (
            "SELECT window(ts, '4 seconds').end AS e, COUNT(*) AS n FROM S GROUP BY 1",
            "SELECT window_end AS e, COUNT(*) AS n FROM TUMBLE(S, 4 SECONDS) GROUP BY 1",
        ),
    ],
)
def test_windows_can_be_written_in_several_ways(asked: str, same: str) -> None:
    given_rows = [(n * 700_000, n % 3, float(n % 5), "a") for n in range(-10, 40)]
    db = database(given_rows, 2)
    assert answer(db.sql(asked)) == answer(db.sql(same))
    assert answer(db.sql(asked))


@pytest.mark.parametrize(
    ("item", "group", "name"),
    [
        ("window", "window(ts, '4 seconds')", "window"),
        ("window(ts, '4 seconds')", "window(ts, '4 seconds')", "window"),
        ("window(ts, '4 seconds') AS w", "w", "w"),
        ("session_window", "session_window(ts, '4 seconds')", "session_window"),
    ],
)
def test_a_window_is_a_value_with_a_start_and_an_end(item: str, group: str, name: str) -> None:
    db = database([(SECOND, 1, 1.0, "a"), (2 * SECOND, 1, 1.0, "a")], 1)
    answer = db.sql(f"SELECT {item}, COUNT(*) AS n FROM S GROUP BY {group}")
    assert answer.schema.field(0).type == pa.struct([("start", TIMESTAMP), ("end", TIMESTAMP)])
    [row] = answer.to_pylist()
    first, last = (1, 6) if name == "session_window" else (0, 4)
    assert row[name] == {
        "start": EPOCH + timedelta(seconds=first),
        "end": EPOCH + timedelta(seconds=last),
    }
    assert row["n"] == 2


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        ("SELECT * FROM TUMBLE(S)", "TUMBLE needs the length of its windows", "INTERVAL"),
        ("SELECT * FROM TUMBLE()", "TUMBLE needs an input", "TABLE S"),
        ("SELECT * FROM TUMBLE(S, 1 S, 2 S, 3 S)", "TUMBLE has too many arguments", "write"),
        ("SELECT * FROM TUMBLE(S, 0 S)", "a whole number of milliseconds", "write"),
        ("SELECT * FROM HOP(S, 1 MS, 1 HOUR)", "at most 10,000 windows", "use a longer hop"),
        ("SELECT * FROM TUMBLE(S PARTITION BY k, 1 S)", "cannot be partitioned", "group by"),
        ("SELECT * FROM TUMBLE(S, DESCRIPTOR(v), 1 S)", "v is not the time", "that is ts"),
        ("SELECT * FROM TUMBLE(S [RANGE 5 S], 1 S)", "cannot be combined with a window", "leave"),
        ("SELECT * FROM TUMBLE(T, 1 S)", "static tables have no time", None),
        ("SELECT * FROM TUMBLE(S, 1 S) W, S [RANGE 5 S] X", "at times other than", "EMIT CHANGES"),
        ("SELECT T.k FROM T LEFT JOIN TUMBLE(S, 1 S) W ON T.k = W.k", "between the ends", "EMIT"),
        ("SELECT k FROM SESSION(S, 1 S) EMIT CHANGES", "when it has ended", "leave EMIT"),
        (
            "SELECT * FROM TUMBLE((SELECT k, COUNT(*) FROM S [ROWS 3] GROUP BY k), 1 S)",
            "retracts",
            "",
        ),
        ("SELECT 1 FROM S GROUP BY window(ts, '1 mont')", "cannot read a duration", "window(ts"),
        ("SELECT 1 FROM S GROUP BY HOP(ts, 5)", "takes a time and lengths", "HOP(ts"),
        (
            "SELECT 1 FROM S a, S b WINDOW = 1 S GROUP BY window(a.ts, '1 s')",
            "use a subquery",
            "TUMBLE((",
        ),
        ("SELECT 1 FROM S [RANGE 1 S] GROUP BY window(ts, '1 s')", "two windows", "leave"),
        ("SELECT 1 FROM S GROUP BY window(ts, '1 s'), window(ts, '2 s')", "one kind", "UNION"),
        ("SELECT * FROM TUMBLE((SELECT *, k AS window_end FROM S) x, 1 S)", "has one", "rename"),
    ],
)
def test_what_cannot_be_is_said_kindly(asked: str, message: str, hint: str | None) -> None:
    with pytest.raises(NilometerError, match=message) as caught:
        database([], 1).sql(asked)
    assert (hint or "") in (caught.value.hint or "")


BESIDE_TABLES = (
    "SELECT S.v, S.s, T.name FROM S LEFT JOIN T ON S.k = T.k",
    "SELECT x.v, T.name, U.k AS u FROM S x JOIN T ON x.k = T.k LEFT JOIN T U ON U.k = x.k + 1",
    "SELECT S.v, T.name FROM T RIGHT JOIN S ON S.k = T.k AND S.v > 0",
    "SELECT * FROM S WHERE k IN (SELECT k FROM T)",
    "SELECT s, v FROM S WHERE NOT EXISTS (SELECT 1 FROM T WHERE T.k = S.k) AND v > 0",
    "SELECT a.k, T.name FROM (SELECT k, v + 1 AS w FROM S WHERE v > 0) a LEFT JOIN T ON a.k = T.k "
    "WHERE T.name IS NULL OR a.w > 1.5",
    "SELECT s FROM S WHERE EXISTS (SELECT 1 FROM T WHERE T.k = S.k) AND k IN (SELECT k FROM T "
    "WHERE name = 'y')",
)


@pytest.mark.parametrize("statement", BESIDE_TABLES)
@given(rows, st.integers(1, 3), st.lists(st.integers(0, 25), max_size=3))
@settings(max_examples=15, deadline=None)
def test_rows_beside_static_tables_are_appended(
    statement: str, given_rows: list[Row], buckets: int, cuts: list[int]
) -> None:
    """Outer joins, EXISTS and IN with tables that do not change say something of each row."""
    connection = connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("S", pa.Table.from_batches([to_batch(given_rows)]))
    connection.register("T", TABLE)
    right = Counter(map(plain, connection.execute(statement).fetchall()))
    assert answer(database(given_rows, buckets).sql(statement)) == right
    emitted = streamed(given_rows, statement, buckets, cuts)
    last = streamed([], statement, buckets, [])
    assert emitted - last == right


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT T.k FROM T LEFT JOIN S ON T.k = S.k",
        "SELECT T.k FROM S FULL JOIN T ON T.k = S.k",
        "SELECT k FROM S WHERE k IN (SELECT k FROM S)",
        "SELECT S.k, COUNT(*) FROM S LEFT JOIN T ON T.k = S.k GROUP BY S.k",
    ],
)
def test_answers_that_change_still_need_windows(statement: str) -> None:
    with pytest.raises(NilometerError, match="S has no window"):
        database([], 1).sql(statement)


def test_a_range_without_its_bound() -> None:
    """A row a minute apart from the next: an hour holds sixty, a closed one sixty-one."""
    given_rows = [(n * 60 * SECOND, 1, 1.0, "a") for n in range(200)]
    counts = []
    for window in ("RANGE 1 HOUR", "RANGE 1 HOUR EXCLUSIVE"):
        asked = f"SELECT COUNT(*) AS n FROM S [{window}] GROUP BY k EMIT CHANGES EVERY 1 HOUR"
        counts.append(max(database(given_rows, 1).sql(asked)["n"].to_pylist()))
    assert counts == [61, 60]


def test_rows_that_count_for_ever() -> None:
    given_rows = [(n * SECOND, n % 3, float(n), "ab"[n % 2]) for n in range(1, 100)]
    db = database(given_rows, 2)
    asked = (
        "SELECT k, COUNT(*) AS n, SUM(v) AS t, AVG(v) AS m FROM S [UNBOUNDED] "
        "GROUP BY k EMIT CHANGES EVERY 1 DAY"
    )
    by_key = {r["k"]: (r["n"], r["t"], r["m"]) for r in db.sql(asked).to_pylist()}
    for key in range(3):
        values = [row[2] for row in given_rows if row[1] == key]
        assert by_key[key] == (len(values), sum(values), sum(values) / len(values))
    assert set(db.sql("SELECT DISTINCT s FROM S [UNBOUNDED]")["_diff"].to_pylist()) == {1}
    asked = (
        "SELECT k, COUNT(*) AS n, MAX(ts) AS last, MIN(v) AS least FROM S [UNBOUNDED] GROUP BY k"
    )
    query = db.query(asked)
    for number in range(20):
        part = [(number * 100 * SECOND + n * SECOND, n % 3, 1.0, "a") for n in range(100)]
        query.feed({"S": to_batch(part)})
        held = [bucket.operator.rows_held[0] for s in query.stages for bucket in s.buckets]
        assert sum(held) <= 3, "rows that have been counted are kept"


@given(rows, st.integers(1, 3), st.lists(st.integers(0, 25), max_size=3))
@settings(max_examples=60)
def test_extremes_of_rows_that_count_for_ever(
    given_rows: list[Row], buckets: int, cuts: list[int]
) -> None:
    """Of each group one value is kept; at every instant it is that of all rows until then."""
    calls = "MIN(v) AS a, MAX(v) AS b, MAX(ts) AS c, COUNT(v) AS n"
    ordered = sorted(given_rows, key=lambda row: row[0])
    query = database([], buckets).query(f"SELECT k, {calls} FROM S [UNBOUNDED] GROUP BY k")
    parts, places = [], [0, *sorted(min(cut, len(ordered)) for cut in cuts), len(ordered)]
    for number, end in enumerate(places[1:]):
        parts.append(query.feed({"S": to_batch(ordered[places[number] : end])}))
        query.restart()
    parts.append(query.feed({"S": to_batch([(100 * SECOND, None, None, None)])}))
    changes = pa.concat_tables(parts)
    shown = changes.drop_columns(["_time", "_diff"])
    answers = zip(*(column.to_pylist() for column in shown.columns), strict=True)
    times = changes["_time"].cast(pa.int64()).to_pylist()
    every = list(zip(map(plain, answers), times, changes["_diff"].to_pylist(), strict=True))
    for at in {row[0] for row in ordered}:
        held: Counter[tuple[Any, ...]] = Counter()
        for row, time, diff in every:
            if time <= at:
                held[row] += diff
        until = pa.Table.from_batches([to_batch([row for row in ordered if row[0] <= at])])
        assert +held == judge(f"SELECT k, {calls} FROM W GROUP BY k", until)


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT k, MAX(s) FROM S [UNBOUNDED] GROUP BY k",
        "SELECT COUNT(DISTINCT v) FROM S [UNBOUNDED]",
        "SELECT k FROM S [UNBOUNDED] ORDER BY v LIMIT 3",
        "SELECT k FROM S [UNBOUNDED] x WHERE EXISTS (SELECT 1 FROM S [ROWS 1] y WHERE y.k = x.k)",
    ],
)
def test_what_would_grow_for_ever_is_refused(asked: str) -> None:
    with pytest.raises(NilometerError, match="would grow forever"):
        database([], 1).sql(asked)


def test_instants_compare_above_aggregates() -> None:
    db = database([(0, 1, 1.0, "a"), (90 * SECOND, 2, 1.0, "a")], 1)
    asked = (
        "SELECT k, MAX(ts) AS t FROM S [RANGE 1 HOUR] GROUP BY k "
        "HAVING MAX(ts) >= TIMESTAMP '1970-01-01 00:01:00'"
    )
    assert set(db.sql(asked)["k"].to_pylist()) == {2}
