"""Rows of which a query cannot compute something: it goes on without them, or stops if it must."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.database.query_status import OnError, QueryLimits, QueryPhase
from nilometer.errors import LogError, SessionError
from nilometer.log.dead_letters import count_dead_letters, dead_letters_at, read_dead_letters
from nilometer.log.layout import TIMESTAMP, LogLayout
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter
from nilometer.spark.inputs import Inputs
from tests.patience import wait_for
from tests.spark.log_harness import open_logs, rows_of, start_statement

SECOND = 1_000_000
SCHEMA = pa.schema(
    {"ts": TIMESTAMP, "k": pa.int32(), "v": pa.int32(), "s": pa.string(), "big": pa.int64()}
)


class Row(NamedTuple):
    """Every fifth `v` is zero, every seventh `s` is not a number, and few `big` fit one BIGINT."""

    ts: int
    k: int
    v: int
    s: str
    big: int


ROWS = [
    Row(n * SECOND, n % 3, n % 5, "abc" if n % 7 == 3 else str(n), 2**62 if n < 8 else n)
    for n in range(40)
]
NUMBERS = [row for row in ROWS if row.s != "abc"]
DIVISORS = [row for row in ROWS if row.v]


class Case(NamedTuple):
    """A statement, the rows of its answer at the end, and how many rows it leaves out."""

    statement: str
    expected: Callable[[], list[tuple[Any, ...]]]
    left_out: int | None
    """None: some."""
    reason: str


def groups(rows: list[Row], value: Callable[[list[Row]], Any]) -> list[tuple[Any, ...]]:
    by_key = {k: [row for row in rows if row.k == k] for k in sorted({row.k for row in rows})}
    return [(k, value(mine)) for k, mine in by_key.items()]


CASES = {
    "a text that cannot be read here": Case(
        "SELECT k, CAST(s AS INT) AS n FROM A",
        lambda: [(row.k, int(row.s)) for row in NUMBERS],
        len(ROWS) - len(NUMBERS),
        "as INT",
    ),
    "a column that only Spark computes": Case(
        "SELECT k, CAST(format_string('%s', s) AS INT) AS n FROM A",
        lambda: [(row.k, int(row.s)) for row in NUMBERS],
        len(ROWS) - len(NUMBERS),
        "AS INT)",
    ),
    "several columns that have a part in common": Case(
        "SELECT CAST(format_string('%s', s) AS INT) AS n, "
        "CAST(format_string('%s', s) AS INT) + 1 AS m, "
        "CAST(format_string('%s', s) AS INT) * v AS p FROM A",
        lambda: [(int(r.s), int(r.s) + 1, int(r.s) * r.v) for r in NUMBERS],
        len(ROWS) - len(NUMBERS),
        "AS INT)",
    ),
    "a selection that only Spark computes": Case(
        "SELECT k FROM A WHERE CAST(format_string('%s', s) AS INT) % 2 = 0",
        lambda: [(row.k,) for row in NUMBERS if int(row.s) % 2 == 0],
        len(ROWS) - len(NUMBERS),
        "AS INT) % 2 = 0",
    ),
    "a column that is computed here": Case(
        "SELECT k, 100 / v AS n FROM A",
        lambda: [(row.k, 100 / row.v) for row in DIVISORS],
        len(ROWS) - len(DIVISORS),
        "division by zero",
    ),
    "a selection that is computed here": Case(
        "SELECT k FROM A WHERE 10 / v > 4",
        lambda: [(row.k,) for row in DIVISORS if 10 / row.v > 4],
        len(ROWS) - len(DIVISORS),
        "division by zero",
    ),
    "what is selected is not computed of other rows": Case(
        "SELECT k, 100 / v AS n FROM A WHERE v > 2",
        lambda: [(row.k, 100 / row.v) for row in DIVISORS if row.v > 2],
        0,
        "",
    ),
    "arguments of aggregates": Case(
        "SELECT k, SUM(CAST(s AS INT)) AS n FROM A [RANGE 1 DAY] GROUP BY k",
        lambda: groups(NUMBERS, lambda rows: sum(int(row.s) for row in rows)),
        len(ROWS) - len(NUMBERS),
        "AS INT)",
    ),
    "an answer": Case(
        "SELECT k, 100 / (COUNT(*) - 14) AS n FROM A [RANGE 1 DAY] GROUP BY k",
        lambda: [(k, n) for k, n in ((0, None), (1, -100.0), (2, -100.0)) if n is not None],
        1,
        "division by zero",
    ),
    "a condition on answers": Case(
        "SELECT k, COUNT(*) AS n FROM A [RANGE 1 DAY] GROUP BY k HAVING 1 / (COUNT(*) - 14) < 0",
        lambda: [(1, 13), (2, 13)],
        1,
        "division by zero",
    ),
    "sums that do not fit": Case(
        "SELECT k, SUM(big) AS n FROM A [RANGE 1 DAY] GROUP BY k",
        list,
        None,
        "a result of SUM does not fit its type",
    ),
    "a subquery over a window of rows": Case(
        "SELECT COUNT(*) AS c, SUM(6 / v) AS n FROM A [ROWS 6]",
        lambda: [(6, sum(6 / row.v for row in DIVISORS[-6:]))],
        len(ROWS) - len(DIVISORS),
        "division by zero",
    ),
    "a condition of a join": Case(
        "SELECT a.k, b.v FROM A a, A b WHERE a.ts = b.ts AND a.v / b.v = 1 "
        "AND a.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts + INTERVAL 1 SECOND",
        lambda: [(row.k, row.v) for row in DIVISORS],
        len(ROWS) - len(DIVISORS),
        "division by zero",
    ),
    "a result that is computed here": Case(
        "SELECT a.v / b.v AS n FROM A a, A b WHERE a.k = b.k AND a.s = b.s "
        "AND a.ts BETWEEN b.ts AND b.ts",
        lambda: [(1.0,) for _ in DIVISORS],
        len(ROWS) - len(DIVISORS),
        "division by zero",
    ),
    "a result that only Spark computes": Case(
        "SELECT CAST(format_string('%s%s', a.s, reverse(b.s)) AS BIGINT) AS n "
        "FROM A a, A b WHERE a.k = b.k "
        "AND a.ts BETWEEN b.ts AND b.ts",
        lambda: [(int(row.s + row.s[::-1]),) for row in NUMBERS],
        len(ROWS) - len(NUMBERS),
        "cannot compute",
    ),
    "a condition on results that only Spark computes": Case(
        "SELECT a.k FROM A a, A b WHERE a.k = b.k AND a.ts BETWEEN b.ts AND b.ts "
        "AND CAST(format_string('%s%s', a.s, reverse(b.s)) AS BIGINT) % 2 = 0",
        lambda: [(row.k,) for row in NUMBERS if int(row.s + row.s[::-1]) % 2 == 0],
        len(ROWS) - len(NUMBERS),
        "cannot compute",
    ),
    "bytes that are no text": Case(
        "SELECT k, CAST(unhex(CASE WHEN v = 0 THEN 'BC' ELSE '61' END) AS STRING) AS n FROM A",
        lambda: [(row.k, "a") for row in DIVISORS],
        len(ROWS) - len(DIVISORS),
        "is not UTF-8",
    ),
    "bytes that are no text in results": Case(
        "SELECT decode(unhex(CASE WHEN a.v + b.v = 0 THEN 'BC' ELSE '61' END), 'UTF-8') AS n, "
        "CAST(unhex(CASE WHEN a.v + b.v = 0 THEN 'BC' ELSE '62' END) AS STRING) AS m "
        "FROM A a, A b WHERE a.k = b.k AND a.ts BETWEEN b.ts AND b.ts",
        lambda: [("a", "b") for _ in DIVISORS],
        len(ROWS) - len(DIVISORS),
        "",
    ),
    "a text that is too long for its pattern": Case(
        "SELECT k, format_string('%s', repeat(repeat('a', 2000), least(v, 9))) RLIKE 'a*a*b' AS n "
        "FROM A",
        lambda: [(row.k, False) for row in ROWS if not row.v],
        len(DIVISORS),
        "more than 1812 characters are not searched by such a pattern",
    ),
    "a whole number beyond BIGINT": Case(
        "SELECT k, SUM(v * 10000000000000000000) AS n FROM A [RANGE 1 DAY] GROUP BY k",
        lambda: groups(ROWS, lambda rows: sum(row.v for row in rows) * 10**19),
        0,
        "",
    ),
    "a join of changing answers": Case(
        "SELECT x.k, 10 / (x.n - y.n) AS r FROM "
        "(SELECT k, COUNT(*) AS n FROM A [RANGE 1 DAY] GROUP BY k) x, "
        "(SELECT k, COUNT(*) AS n FROM A [RANGE 1 DAY] WHERE v <> 1 GROUP BY k) y "
        "WHERE x.k = y.k",
        lambda: [(k, 10 / rows) for k, rows in groups([row for row in ROWS if row.v == 1], len)],
        None,
        "division by zero",
    ),
}


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> Inputs:
    append(tmp_path / "A", ROWS[:25])
    append(tmp_path / "A", ROWS[25:])
    return open_logs(spark, tmp_path, "A")


def append(location: Path, rows: list[Row]) -> None:
    with LogWriter.open(location, LogLayout(SCHEMA, "ts")) as writer:
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, one.type) for column, one in zip(columns, SCHEMA, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        writer.append(batch, watermark=rows[-1].ts + 1)


def answer(folder: Path) -> Counter[tuple[Any, ...]]:
    """The rows of an answer at the end, without their times."""
    table = nm_rows(folder / "out")
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in table:
        count = row.pop("_diff", 1)
        row.pop("_time")
        counts[tuple(row.values())] += count
    return +counts


def nm_rows(location: Path) -> list[dict[str, Any]]:
    log = LogReader.open(location)
    return [row for frame in log.read(log.start, log.end) for row in frame.rows.to_pylist()]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows_that_cannot_be_computed_are_left_out_and_reported(
    log: Inputs, tmp_path: Path, case: Case
) -> None:
    dead = tmp_path / "dead"
    query = start_statement(log, case.statement, tmp_path, dead_letters=str(dead))
    query.awaitTermination()
    assert answer(tmp_path) == Counter(case.expected())
    letters = read_dead_letters(str(dead)).to_pylist()
    assert len(letters) == count_dead_letters(str(dead))
    assert len(letters) == case.left_out if case.left_out is not None else letters
    assert {one["reason"] for one in letters if case.reason not in one["reason"]} == set()
    assert all(json.loads(one["payload"]) for one in letters)


def test_a_micro_batch_that_is_run_again_tells_them_once(log: Inputs, tmp_path: Path) -> None:
    statement, dead = "SELECT k, 100 / v AS n FROM A", str(tmp_path / "dead")
    start_statement(log, statement, tmp_path, dead_letters=dead).awaitTermination()
    before = answer(tmp_path), read_dead_letters(dead), count_dead_letters(dead)
    commits = tmp_path / "checkpoint" / "commits"
    for file in commits.iterdir():
        file.unlink()  # as if the driver had ended before it said that all was done
    start_statement(log, statement, tmp_path, dead_letters=dead).awaitTermination()
    assert (answer(tmp_path), read_dead_letters(dead), count_dead_letters(dead)) == before
    append(tmp_path / "A", [Row(row.ts + 100 * SECOND, *row[1:]) for row in ROWS])
    start_statement(log, statement, tmp_path, dead_letters=dead).awaitTermination()
    assert count_dead_letters(dead) == len(read_dead_letters(dead)) == 2 * before[2]


@pytest.mark.parametrize("name", ["a column that only Spark computes", "an answer"])
def test_without_dead_letters_they_stop_a_query(log: Inputs, tmp_path: Path, name: str) -> None:
    query = start_statement(log, CASES[name].statement, tmp_path)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("spark.sql.ansi.enabled", "false", "ansi.enabled is off in this Spark session"),
        ("spark.sql.session.timeZone", "America/New_York", "time zone of this Spark session is"),
    ],
)
def test_a_session_in_which_spark_computes_something_else_is_refused(
    spark: SparkSession, log: Inputs, tmp_path: Path, setting: str, value: str, said: str
) -> None:
    """The query may have begun in another one: half of its results would be others."""
    statement = "SELECT k, CAST(format_string('%s', s) AS INT) AS n, hour(ts) AS h FROM A"
    before = spark.conf.get(setting)
    spark.conf.set(setting, value)
    try:
        with pytest.raises(SessionError, match=said):
            start_statement(log, statement, tmp_path, dead_letters=str(tmp_path / "dead"))
    finally:
        spark.conf.set(setting, before)


def test_a_named_query_goes_on_unless_it_is_told_to_stop(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "a.jsonl"
    texts = ["1", "2", "none", "3"]
    file.write_text("".join(json.dumps({"s": one}) + "\n" for one in texts))
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.execute(
            "CREATE STREAM A (s STRING, HISTORY FOREVER) FROM file "
            f"WITH (address = '{file}', speed = 'max', follow = true)"
        )
        select = "SELECT CAST(s AS INT) AS n FROM A FROM START"
        db.execute(f"CREATE QUERY numbers AS {select}")
        db.execute(f"CREATE QUERY strict WITH (on_error = 'stop') AS {select}")
        wait_for(lambda: db.query_status("strict").phase is QueryPhase.FAILED, seconds=60)
        assert "none" in str(db.query_status("strict").error)
        wait_for(lambda: db.query_status("numbers").dead_letters == 1, seconds=60)
        with file.open("a") as lines:
            lines.write(json.dumps({"s": "4"}) + "\n")
        stored = lambda: sorted(rows_of(db.log_of("numbers"), ["n"]))  # noqa: E731
        wait_for(lambda: stored() == [(1,), (2,), (3,), (4,)], seconds=60)
        (letter,) = db.execute("SHOW DEAD LETTERS FROM numbers").rows.to_pylist()
        assert (letter["stream"], letter["sensor"]) == ("numbers", "A")
        assert "AS INT)" in letter["reason"]
        assert json.loads(letter["payload"])["s"] == "none"
        assert db.query_status("numbers").limits == QueryLimits()
        assert db.query_status("strict").limits == QueryLimits(on_error=OnError.STOP)
        db.execute("ALTER QUERY strict SET (on_error = 'skip')")
        db.start_query("strict")
        wait_for(lambda: db.query_status("strict").dead_letters == 1, seconds=60)
        assert db.query_status("strict").phase is QueryPhase.RUNNING
        dead = dead_letters_at(db.log_of("numbers"))
        assert LogReader.open(dead).end.row == 1
        db.drop_query("numbers")
        with pytest.raises(LogError, match="there is no log"):
            LogReader.open(dead)
