"""Forms that people type: DISTINCT ON, COUNT(DISTINCT (a, b)), time_bucket, now(), against DuckDB.

What other databases have and this one has not is refused with what to write instead.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from hashlib import md5
from zlib import crc32

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nilometer as nm
from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from nilometer.sql.rewrite.refuse_foreign import INSTEAD
from tests.unit import test_table_over as tables
from tests.unit import test_time_windows as windows
from tests.unit.test_pivots import counted, held
from tests.unit.test_table_over import table
from tests.unit.test_time_windows import EPOCH, SECOND

OF_TABLES = (
    "SELECT DISTINCT ON (k) k, id, v FROM T ORDER BY k, v DESC, id",
    "SELECT DISTINCT ON (k, s) id FROM T WHERE v > 0 ORDER BY k, s, id DESC",
    "SELECT DISTINCT ON (s) s AS t, v AS x, id FROM T ORDER BY t, x, 3",
    "SELECT DISTINCT ON (k % 2) k, id FROM T ORDER BY k % 2, id DESC",
    "SELECT k, COUNT(DISTINCT (s, v)) AS n, COUNT(DISTINCT (id)) AS m FROM T GROUP BY k",
    "SELECT COUNT(DISTINCT (k, s)) AS n FROM T",
    "SELECT k, group_concat(s ORDER BY s, id) AS t FROM T GROUP BY k",
)
AT_INSTANTS = (
    "SELECT DISTINCT ON (k) k, v, s, ts FROM {W} ORDER BY k, ts DESC, v, s",
    "SELECT DISTINCT ON (s) s, k FROM {W} WHERE v > 0 ORDER BY s, k DESC",
    "SELECT COUNT(DISTINCT (k, s)) AS n, COUNT(DISTINCT k) AS m FROM {W}",
    "SELECT s, COUNT(DISTINCT (k, v)) FILTER (WHERE v > 0) AS n FROM {W} GROUP BY s",
    "SELECT time_bucket(INTERVAL '500' MILLISECONDS, ts) AS b, COUNT(*) AS n FROM {W} GROUP BY b",
)
BUCKETS = (
    "SELECT {B} AS b, COUNT(*) AS n, SUM(v) AS t FROM S GROUP BY b",
    "SELECT k, COUNT(*) AS n FROM S WHERE v > 0 GROUP BY {B}, k",
    "SELECT {B} AS b, s, MAX(k) AS m FROM S GROUP BY 1, 2 HAVING COUNT(*) > 1",
    "SELECT {B} AS b, date_trunc('second', ts) AS x, COUNT(*) AS n FROM S GROUP BY b, x",
    "SELECT {B} AS b, T.name, COUNT(*) AS n FROM S JOIN T ON T.k = S.k GROUP BY b, T.name",
)


@pytest.mark.parametrize("statement", OF_TABLES)
@given(tables.rows)
@settings(max_examples=25, deadline=None)
def test_tables_say_what_duckdb_says(statement: str, given_rows: list[tables.Row]) -> None:
    db = LocalDatabase(2)
    db.create_table("T", table(given_rows))
    assert tables.answer(db.sql(statement)) == tables.judge(statement, given_rows)


@pytest.mark.parametrize("statement", AT_INSTANTS)
@given(windows.rows, st.integers(-8, 14))
@settings(max_examples=25, deadline=None)
def test_windows_at_instants(statement: str, given_rows: list[windows.Row], half: int) -> None:
    db, now = nm.connect(), half * SECOND // 2
    db.create_stream("S", held(given_rows), time="ts")
    at = EPOCH + timedelta(microseconds=now)
    answer = db.sql(statement.format(W="S [RANGE 2 SECONDS]"), at=at)
    inside = [row for row in given_rows if now - 2 * SECOND <= row[0] <= now]
    assert counted(answer) == windows.judge(statement.format(W="W"), held(inside))


@pytest.mark.parametrize("statement", BUCKETS)
@given(windows.rows, st.sampled_from((500, 1000, 1500, 7000)), st.integers(0, 25))
@settings(max_examples=25, deadline=None)
def test_buckets_are_windows(
    statement: str, given_rows: list[windows.Row], size: int, cut: int
) -> None:
    db = windows.database(given_rows, 2)
    bucket = f"time_bucket(INTERVAL '{size}' MILLISECONDS, ts)"
    asked = statement.format(B=bucket)
    with windows.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("S", held(given_rows))
        connection.register("T", windows.TABLE)
        judged = asked.replace("S', ts)", "S', ts, TIMESTAMPTZ '1970-01-01 00:00:00+00')")
        right = Counter(map(windows.plain, connection.execute(judged).fetchall()))
    assert windows.answer(db.sql(asked)) == right
    query = db.query(asked)
    ordered = sorted(given_rows)
    first = query.feed({"S": windows.to_batch(ordered[:cut])})
    query.restart()
    parts = [first, query.feed({"S": windows.to_batch(ordered[cut:])})]
    assert windows.answer(pa.concat_tables(parts)) <= right


def test_distinct_on_of_a_stream_changes() -> None:
    """Its ORDER BY says which row is kept, and needs no LIMIT."""
    db = nm.connect()
    at = [datetime(2026, 1, 31, 12, 0, second, tzinfo=UTC) for second in (0, 1, 2)]
    db.create_stream("A", pa.table({"ts": at, "k": [1, 1, 2], "v": [5, 7, 1]}), time="ts")
    answer = db.sql("SELECT DISTINCT ON (k) k, v FROM A [RANGE 1 MINUTE] ORDER BY k, v DESC")
    columns = (answer[name].to_pylist() for name in ("k", "v", "_diff"))
    changes = zip(*columns, strict=True)
    assert list(changes)[:4] == [(1, 5, 1), (1, 5, -1), (1, 7, 1), (2, 1, 1)]


def test_a_question_has_one_instant() -> None:
    db = nm.connect()
    begin = datetime.now(UTC)
    recent = [begin - timedelta(hours=1), begin - timedelta(days=2)]
    db.create_stream("A", pa.table({"ts": recent, "k": [1, 2]}), time="ts")
    db.create_table("T", pa.table({"k": [1, 2]}))
    answer = db.sql("SELECT k FROM A WHERE ts > now() - INTERVAL 1 DAY")
    assert answer["k"].to_pylist() == [1]
    for source in ("T", "A"):
        answer = db.sql(
            "SELECT now() AS a, current_timestamp AS b, current_date() AS c, curdate() AS d, "
            f"current_timestamp() AS e FROM {source}"
        )
        [asked] = set(answer["a"].to_pylist())
        assert begin <= asked <= datetime.now(UTC)
        assert {one for name in "be" for one in answer[name].to_pylist()} == {asked}
        assert {one for name in "cd" for one in answer[name].to_pylist()} == {asked.date()}


def test_a_stream_that_goes_on_has_no_instant() -> None:
    db = LocalDatabase()
    rows = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "k": [1]})
    db.create_stream("A", rows, time="ts")
    asked = "SELECT k, COUNT(*) AS n, now() AS t FROM A [RANGE 1 HOUR] GROUP BY k"
    with pytest.raises(NilometerError) as error:
        db.query(asked)
    assert "write A [RANGE 1 DAY]" in (error.value.hint or "")


def test_intervals_of_computed_numbers() -> None:
    db = nm.connect()
    begin = datetime(2026, 1, 31, tzinfo=UTC)
    db.create_table("T", pa.table({"t": [begin, begin], "k": pa.array([1, -2], pa.int32())}))
    answer = db.sql(
        "SELECT t + INTERVAL k DAYS AS a, t + INTERVAL (k * 2) HOUR AS b, t + k * INTERVAL '1' "
        "MINUTE AS c FROM T ORDER BY k DESC"
    )
    days, hours, minutes = (
        [begin + timedelta(**{unit: one * many}) for one in (1, -2)]
        for unit, many in (("days", 1), ("hours", 2), ("minutes", 1))
    )
    assert [answer[name].to_pylist() for name in "abc"] == [days, hours, minutes]


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("SELECT DISTINCT ON (k) k FROM T", "DISTINCT ON needs an ORDER BY", "ORDER BY k, ts DESC"),
        (
            "SELECT DISTINCT ON (k) k FROM T ORDER BY k",
            "DISTINCT ON needs an ORDER BY",
            "ORDER BY k, ts DESC",
        ),
        (
            "SELECT DISTINCT ON (k) k, MAX(v) FROM T GROUP BY k ORDER BY k, 2",
            "DISTINCT ON cannot be combined with GROUP BY",
            "FROM (SELECT … GROUP BY …)",
        ),
        ("SELECT * FROM T PIVOT (v FOR k IN (1, 2))", "PIVOT needs an aggregate", "(MAX(v) FOR k"),
        (
            "SELECT * FROM T a, LATERAL (SELECT v FROM T b WHERE b.k = a.k) x",
            "a subquery in FROM cannot refer to other sources of the same FROM",
            "JOIN B ON B.k = A.k",
        ),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
            "recursive queries are not supported",
            "UNNEST(sequence(1, 5))",
        ),
        (
            "SELECT CAST(now() AS TIME) AS x FROM T",
            "there is no type for times of day",
            "'HH:mm:ss'",
        ),
        ("SELECT now()::time AS x FROM T", "there is no type for times of day", "'HH:mm:ss'"),
        ("SELECT v ** 2 FROM T", "cannot read the statement", "power(x, 2)"),
        ("SELECT k // 2 FROM T", "cannot read the statement", "DIV"),
        ("SELECT k FROM T WHERE s ~ 'a'", "cannot read the statement", "RLIKE"),
        ("SELECT k FROM T LATEST ON v PARTITION BY k", "cannot read", "[PARTITION BY k ROWS 1]"),
        (
            "SELECT time_bucket('x', ts) FROM T",
            "'x' is not a length of time",
            "INTERVAL '5' MINUTES",
        ),
        ("SELECT COUNT(*) FROM T SAMPLE BY 1h", "cannot read the statement", "time_bucket("),
        ("SELECT T.k FROM T ASOF JOIN T b ON T.k = b.k", "ASOF JOIN is not", "DWINDOW(B, A) = 1"),
        ("SELECT * FROM 'a.csv'", "there is no stream or table a.csv", "--table A=a.csv"),
        ("SELECT * FROM a.csv", "names of streams and tables cannot", "--table A=a.csv"),
        ("SELECT * FROM read_csv('a.csv')", "there is no table function", "--table A=a.csv"),
        ("SELECT a.b FROM (SELECT k AS `a.b` FROM T) x", "there is no stream a", "`a.b`"),
        (
            "SELECT date_format(now(), '%Y-%m-%d') AS x FROM T",
            "date_format does not support patterns with %",
            "yyyy-MM-dd",
        ),
        ("SELECT epoch(v) FROM T", "there is no function epoch", "unix_timestamp(ts)"),
        ("SELECT k, list(v) FROM T GROUP BY k", "there is no function list", "collect_list(x)"),
    ],
)
def test_refusals(statement: str, message: str, hint: str) -> None:
    db = nm.connect()
    db.create_table("T", table([]))
    with pytest.raises(NilometerError) as error:
        db.sql(statement)
    assert error.value.message.startswith(message)
    assert hint in (error.value.hint or "")


@pytest.mark.parametrize(
    ("expression", "detail"),
    [
        ("DATE '2026-01-31' + k", "write d + CAST(n AS INT)"),
        ("date_diff('minute', now(), now())", "timestampdiff(MINUTE, a, b)"),
        ("extract(epoch FROM now())", "unix_timestamp(ts)"),
        ("extract(hour FROM now() - now())", "timestampdiff(SECOND, a, b)"),
        ("to_char(now(), 'YYYY-MM-DD')", "yyyy"),
        ("time_bucket(INTERVAL '1' MONTH, now())", "date_trunc('month', ts)"),
        ("time_bucket(INTERVAL '25' HOURS, now())", "whole days"),
        ("CAST(s AS ARRAY<INT>)", "a cast to ARRAY<INT> is not available here"),
    ],
)
def test_what_only_spark_can_say_tells_why(expression: str, detail: str) -> None:
    db = nm.connect()
    db.create_table("T", table([]))
    with pytest.raises(NilometerError) as error:
        db.sql(f"SELECT {expression} AS x FROM T")
    assert error.value.message.startswith("only Spark can evaluate this")
    assert detail in (error.value.detail or "")


def test_the_last_row_before_is_what_asof_joins() -> None:
    """What is suggested in place of ASOF JOIN says the same, over generated rows of DuckDB."""

    @given(windows.rows, windows.rows)
    @settings(max_examples=40, deadline=None)
    def check(left: list[windows.Row], right: list[windows.Row]) -> None:
        once = list({(row[0], row[1]): row for row in right}.values())  # one of each time and key
        db = LocalDatabase(2)
        db.create_stream("A", held(left), time="ts")
        db.create_stream("B", held(once), time="ts")
        answer = db.sql(
            "SELECT A.ts, A.v AS x, B.v AS y FROM A, B [PARTITION BY k ROWS 1] "
            "DWINDOW(B, A) = 1 DAY WHERE A.k = B.k"
        )
        with windows.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("A", held(left))
            connection.register("B", held(once))
            asked = "SELECT A.ts, A.v, B.v FROM A ASOF JOIN B ON A.k = B.k AND A.ts >= B.ts"
            right_rows = Counter(map(windows.plain, connection.execute(asked).fetchall()))
        assert windows.answer(answer) == right_rows

    check()


def sampled(row: windows.Row, percent: int, seed: int) -> bool:
    """Whether a sample takes a row: what TABLESAMPLE means, one row at a time."""
    texts = [str(seed), *(str(one) for one in row if one is not None)]
    digest = md5("\1".join(texts).encode(), usedforsecurity=False).hexdigest()
    return crc32(digest.encode()) % 1_000_000 < percent * 10_000


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT ts, k, v FROM S{T} WHERE k > 0",
        "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM S{T} [RANGE 2 SECONDS] GROUP BY k",
        "SELECT k, COUNT(*) AS n FROM S [RANGE 2 SECONDS]{T} GROUP BY k",
        "SELECT x.k, y.v FROM S{T} x, S{T} y WINDOW(x, y) = 1 SECOND WHERE x.k = y.k",
        "SELECT s, MAX(v) AS m FROM S{T} GROUP BY s, date_trunc('second', ts)",
        "SELECT k FROM (SELECT k FROM S{T}) x [ROWS 3] EMIT CHANGES",
        "SELECT k FROM S{T} [RANGE 1 SECOND] EXCEPT SELECT k FROM S [RANGE 1 SECOND] WHERE v > 0",
    ],
)
@pytest.mark.parametrize(("percent", "seed"), [(50, 0), (30, 7), (0, 1), (100, 2)])
def test_samples_are_the_same_rows_in_every_run(statement: str, percent: int, seed: int) -> None:
    @given(windows.rows)
    @settings(max_examples=15, deadline=None)
    def check(given_rows: list[windows.Row]) -> None:
        db = windows.database(given_rows, 2)
        taken = [row for row in given_rows if sampled(row, percent, seed)]
        db.create_stream("Taken", held(taken), time="ts")
        sample = f" TABLESAMPLE ({percent} PERCENT) REPEATABLE ({seed})"
        answer = db.sql(statement.replace("{T}", sample))
        right = db.sql(
            statement.replace("S{T}", "Taken").replace(
                "S [RANGE 2 SECONDS]{T}", "Taken [RANGE 2 SECONDS]"
            )
        )
        names = answer.column_names
        assert Counter(map(repr, answer.to_pylist())) == Counter(map(repr, right.to_pylist()))
        assert names == right.column_names

    check()


def test_samples_of_tables_are_about_as_large_as_asked_for() -> None:
    db = nm.connect()
    db.create_table("T", pa.table({"k": list(range(20_000))}))
    for written, least, most in (
        ("TABLESAMPLE (10 PERCENT)", 1850, 2150),
        ("x TABLESAMPLE BERNOULLI (25) REPEATABLE (3)", 4800, 5200),
        ("USING SAMPLE 1%", 160, 240),
    ):
        [size] = db.sql(f"SELECT COUNT(*) AS n FROM T {written}")["n"].to_pylist()
        assert least < size < most


def test_a_stream_of_files_can_be_a_table() -> None:
    db = nm.connect()
    at = pa.array([0], pa.timestamp("us", "UTC"))
    db.create_stream("A", pa.table({"ts": at, "k": [1]}), time="ts")
    with pytest.raises(NilometerError) as error:
        db.sql("SELECT k, COUNT(*) AS n FROM A GROUP BY k")
    assert "make it a table, --table A=a.csv or create_table" in (error.value.hint or "")


def test_functions_of_that_name_may_be_registered() -> None:
    db = nm.connect()
    db.create_table("T", pa.table({"k": [1, 2]}))
    db.create_function("age", lambda k: k + 1, returns="bigint")
    assert db.sql("SELECT age(k) AS x FROM T ORDER BY x")["x"].to_pylist() == [2, 3]


def test_what_is_said_instead_can_be_written() -> None:
    """What is suggested in place of others' functions is read, and known."""
    db = nm.connect()
    at = pa.array([0], pa.timestamp("us", "UTC"))
    columns = {"ts": at, "a": at, "b": at, "s": ["a"], "x": [1.0], "k": [1], "c": [True]}
    db.create_table("T", pa.table(columns))
    of_lists = ("array_contains(a, x)", "size(a)", "if(c, a, b)", "array(a, b)")
    for said in {part for one in INSTEAD.values() for part in one.split(", or ")}:
        if said.startswith(("FROM", "the columns", "* EXCEPT", "get_json", "to_timestamp")):
            continue
        expression = said.removesuffix(" of two times")
        if expression in of_lists:
            expression = expression.replace("(a, x)", "(array(x), x)").replace(
                "size(a)", "size(array(a))"
            )
        db.sql(f"SELECT {expression} AS answer FROM T")
