"""Functions above aggregates, DISTINCT, joins and over streams without Spark; and their limits."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import NilometerError, PredicateError, UnavailableError
from nilometer.kernels.functions.regex import read_regex, read_replacement
from nilometer.kernels.local_times import to_instant, to_local
from nilometer.kernels.print_values import print_double
from nilometer.kernels.read_texts import read_date
from nilometer.local.database import LocalDatabase

START = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
ROWS = {
    "ts": pa.array(
        [START + timedelta(minutes=20 * i) for i in range(4)], pa.timestamp("us", tz="UTC")
    ),
    "k": [1, 2, 1, 2],
    "s": ["ab", "cd", "Ef", None],
    "x": [4.0, 9.0, 16.0, 25.0],
    "n": pa.array(map(Decimal, ("1.50", "2.25", "3.00", "4.75")), pa.decimal128(10, 2)),
}


@pytest.fixture
def db() -> LocalDatabase:
    made = LocalDatabase(buckets=2)
    for name in ("A", "B"):
        made.create_stream(name, pa.table(ROWS), time="ts")
    return made


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT upper(s) AS u, sqrt(x) AS r FROM A WHERE k = 1", [("AB", 2.0), ("EF", 4.0)]),
        ("SELECT substring(s, 2) AS b FROM A [RANGE 1 HOUR] WHERE lower(s) = 'ef'", [("f",)]),
        ("SELECT A.k FROM A, B WINDOW = 1 S WHERE upper(A.s) = 'CD' AND sqrt(B.x) = 3", [(2,)]),
    ],
)
def test_streams_need_no_spark(
    db: LocalDatabase, statement: str, expected: list[tuple[Any, ...]]
) -> None:
    table = db.sql(statement)
    names = [name for name in table.schema.names if not name.startswith("_")]
    answers = [tuple(row[name] for name in names) for row in table.to_pylist()]
    assert sorted(set(answers)) == expected


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("upper(MAX(s))", pa.string()),
        ("round(sqrt(AVG(x)), 2)", pa.float64()),
        ("date_trunc('hour', MAX(ts))", pa.timestamp("us", tz="UTC")),
        ("extract(second FROM MAX(ts))", pa.decimal128(8, 6)),
        ("datediff(MAX(ts), DATE '2026-01-01')", pa.int32()),
        ("date_format(MIN(ts), 'yyyy-MM-dd HH:mm')", pa.string()),
        ("'mean ' || AVG(x)", pa.string()),
        ("CAST(SUM(n) AS STRING)", pa.string()),
        ("try_cast(MAX(s) AS INT)", pa.int32()),
        ("MAX(s) RLIKE '^[A-Z]'", pa.bool_()),
        ("COUNT(*) & 1", pa.int64()),
        ("array(MIN(x), MAX(x))[1]", pa.float64()),
        ("struct(MAX(s) AS f).f", pa.string()),
        ("sha2(MAX(s), 256)", pa.string()),
    ],
)
def test_functions_stand_above_aggregates(db: LocalDatabase, item: str, kind: pa.DataType) -> None:
    table = db.sql(f"SELECT k, {item} AS v FROM A [RANGE 1 HOUR] GROUP BY k")
    assert table.schema.field("v").type == kind
    having = f"SELECT k FROM A [RANGE 1 HOUR] GROUP BY k HAVING ({item}) IS NOT NULL"
    assert db.sql(having).num_rows > 0 or "try_cast" in item


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT upper(s) FROM (SELECT DISTINCT s FROM A [RANGE 1 HOUR]) S",
        "SELECT A.k, concat_ws('-', A.s, B.s) FROM A [RANGE 1 HOUR] LEFT JOIN B [RANGE 1 HOUR] "
        "ON lower(A.s) = lower(B.s)",
        "SELECT levenshtein(A.s, B.s) FROM A [RANGE 1 S], B [RANGE 1 S] EMIT CHANGES",
        "SELECT k FROM A [RANGE 1 HOUR] a WHERE EXISTS "
        "(SELECT 1 FROM B [RANGE 1 HOUR] b WHERE b.s = upper(a.s))",
        "SELECT k FROM A [RANGE 1 HOUR] GROUP BY k HAVING MAX(ts) >= TIMESTAMP '2026-03-29 00:00'",
        "SELECT upper(s), COUNT(*) FROM A [RANGE 1 HOUR] GROUP BY s",
        "SELECT year(ts), COUNT(*) FROM A [RANGE 1 HOUR] GROUP BY year(ts)",
    ],
)
def test_functions_stand_above_other_nodes(db: LocalDatabase, statement: str) -> None:
    assert db.sql(statement) is not None


@pytest.mark.parametrize(
    "call",
    [
        "repeat(s, 1000000)",
        "lpad(s, 2000000000)",
        "space(2000000000)",
        "replace(repeat(s, 100000), 'a', repeat('b', 100000))",
        "array_repeat(k, 2000000000)",
        "sequence(1, 2000000000)",
        "regexp_replace(repeat(s, 400000), 'a', 'xxxxxxxxxxxxxxxx')",
    ],
)
def test_values_do_not_grow_without_end(db: LocalDatabase, call: str) -> None:
    with pytest.raises(NilometerError, match="would be too large|values from one row"):
        db.sql(f"SELECT {call} AS v FROM A WHERE k = 1")


@pytest.mark.parametrize(
    "pattern",
    [
        "(?i)a",
        "a(?=b)",
        r"\bword",
        r"(a)\1",
        "a**",
        "(a*)*",
        "[a&&b]",
        "x{2000}",
        "a$b",
        "b^",
        r"\p{L}",
        "a++",
        "(",
        "[z-a]",
    ],
)
def test_patterns_that_java_may_read_otherwise_are_refused(pattern: str) -> None:
    with pytest.raises(UnavailableError):
        read_regex(pattern)


def test_replacements_are_those_of_java() -> None:
    regex = read_regex("(a)(b)")
    assert read_replacement(r"$2\$1\\", regex) == "\\2$1\\\\"
    with pytest.raises(UnavailableError):
        read_replacement("$3", regex)


JAVA = {
    0.0: "0.0",
    1.0: "1.0",
    0.1: "0.1",
    100.0: "100.0",
    1e-3: "0.001",
    9.99e-4: "9.99E-4",
    1e7: "1.0E7",
    9999999.999: "9999999.999",
    123456789012.0: "1.23456789012E11",
    5e-324: "4.9E-324",
    1e23: "1.0E23",
    2e-5: "2.0E-5",
    float("inf"): "Infinity",
    1.7976931348623157e308: "1.7976931348623157E308",
    33.35: "33.35",
    1 / 3: "0.3333333333333333",
}


def test_numbers_are_written_as_java_does() -> None:
    assert [print_double(value) for value in JAVA] == list(JAVA.values())
    assert (print_double(float("nan")), print_double(-0.0)) == ("NaN", "-0.0")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_written_numbers_are_read_as_the_same(value: float) -> None:
    assert repr(float(print_double(value))) == repr(value)


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]


@given(st.lists(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1))), st.sampled_from(ZONES))
def test_local_times_are_those_of_the_zone(moments: list[datetime], zone: str) -> None:
    begin, micro = datetime(1970, 1, 1), timedelta(microseconds=1)
    given_micros = np.array([(one - begin) // micro for one in moments], np.int64)
    zoned = [one.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)) for one in moments]
    local = [(one.replace(tzinfo=None) - begin) // micro for one in zoned]
    assert to_local(given_micros, zone).tolist() == local
    offsets = [one.replace(tzinfo=ZoneInfo(zone)).utcoffset() for one in moments]
    instants = [
        (one - begin - (by or timedelta())) // micro
        for one, by in zip(moments, offsets, strict=True)
    ]
    assert to_instant(given_micros, zone).tolist() == instants


def test_dates_beyond_the_calendar_of_python() -> None:
    assert read_date("1970-01-02") == 1
    assert read_date("+12345-06-07") == 3_789_548
    assert read_date("2023-02-29") is None
    assert read_date("0000-01-01") == (date(1, 1, 1) - date(1970, 1, 1)).days - 366


def test_rows_that_cannot_be_computed_are_errors(db: LocalDatabase) -> None:
    with pytest.raises(PredicateError, match="cannot read 'cd' as INT"):
        db.sql("SELECT k, CAST(MAX(s) AS INT) FROM A [RANGE 1 HOUR] WHERE k = 2 GROUP BY k")
