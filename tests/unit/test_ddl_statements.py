"""Statements of the database, read from text."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import NilometerError
from nilometer.model.time import FOREVER
from nilometer.sql.ddl.nodes import (
    AlterQuery,
    CreateQuery,
    CreateSensorTable,
    CreateStream,
    CreateTable,
    Delete,
    Describe,
    Drop,
    Insert,
    ObjectKind,
    Show,
    ShowKind,
    StartQuery,
    StopQuery,
    Update,
)
from nilometer.sql.ddl.parts import ColumnDef
from nilometer.sql.parse.dialect import FromStart
from nilometer.sql.parse.places import place_of
from nilometer.sql.statements import Statement, read_query, read_statements
from tests.patience import pace
from tests.unit.test_fuzzed_statements import MUTATIONS, words_of

TIMESTAMP = pa.timestamp("us", tz="UTC")
SECOND = 1_000_000
SENSORS = """
CREATE SENSOR TABLE Sensors (
  SensorID INT, Location STRING,
  Reading STREAM(temperature DOUBLE, humidity DOUBLE, at TIMESTAMP, TIME at, LATENESS 5 SECONDS)
    FROM http WITH (interval = '2s', retries = 3, Headers.accept = 'text/json'),
  floor SMALLINT)
"""


def read(sql: str) -> Any:
    (statement,) = read_statements(sql)
    return statement


def schema(columns: tuple[ColumnDef, ...]) -> list[tuple[str, pa.DataType]]:
    return [(column.name, column.kind) for column in columns]


def test_stream() -> None:
    statement = read(
        "CREATE STREAM IF NOT EXISTS Wind (ts TIMESTAMP, speed DOUBLE, TIME ts, "
        "LATENESS INTERVAL '5' SECOND, IDLE 0.8 S, HISTORY 30 DAYS) FROM MQTT WITH (qos = 1)"
    )
    assert isinstance(statement, CreateStream)
    assert (statement.name, statement.if_not_exists) == ("Wind", True)
    stream = statement.stream
    assert schema(stream.columns) == [("ts", TIMESTAMP), ("speed", pa.float64())]
    assert (stream.stream_type, dict(stream.options)) == ("mqtt", {"qos": "1"})
    assert (stream.time, stream.lateness, stream.idle) == ("ts", 5 * SECOND, 800_000)
    assert stream.history == 30 * 86_400 * SECOND


def test_silence() -> None:
    def lengths(items: str) -> tuple[int | None, int | None, list[str]]:
        statement = read(f"CREATE STREAM s (v INT, {items}) FROM tcp")
        assert isinstance(statement, CreateStream)
        stream = statement.stream
        return stream.idle, stream.every, [one.name for one in stream.columns]

    assert lengths("IDLE NEVER, EVERY 10 SECONDS") == (FOREVER, 10 * SECOND, ["v"])
    assert lengths("every 0.5 S") == (None, SECOND // 2, ["v"])
    assert lengths("every DOUBLE, idle INT") == (None, None, ["v", "every", "idle"])


def test_sensor_table() -> None:
    statement = read(SENSORS)
    assert isinstance(statement, CreateSensorTable)
    assert schema(statement.static) == [
        ("SensorID", pa.int32()),
        ("Location", pa.string()),
        ("floor", pa.int16()),
    ]
    assert (statement.column, statement.stream_place, statement.if_not_exists) == (
        "Reading",
        2,
        False,
    )
    assert statement.stream.time == "at"
    assert statement.stream.options == {
        "interval": "2s",
        "retries": "3",
        "headers.accept": "text/json",
    }
    assert SENSORS[statement.place.start : statement.place.end] == "Sensors"


@pytest.mark.parametrize(
    ("items", "columns", "clause"),
    [
        ("time TIMESTAMP, TIME time", ["time"], "time"),
        ("timestamp TIMESTAMP, TIME timestamp", ["timestamp"], "timestamp"),
        ("time TIMESTAMP, v INT", ["time", "v"], None),
        ("TIME at, at TIMESTAMP", ["at"], "at"),
        ("At TIMESTAMP, TIME AT", ["At"], "At"),
        ("`time` TIMESTAMP, lateness INT, idle DOUBLE", ["time", "lateness", "idle"], None),
        (
            "lateness INT, LATENESS 3 S, `history` INT, HISTORY FOREVER",
            ["lateness", "history"],
            None,
        ),
    ],
)
def test_clauses_and_columns_of_the_same_names(
    items: str, columns: list[str], clause: str | None
) -> None:
    stream = read(f"CREATE STREAM s ({items}) FROM http").stream
    assert [column.name for column in stream.columns] == columns
    assert stream.time == clause
    assert stream.lateness == (3 * SECOND if "LATENESS" in items else 0)
    assert stream.history == (FOREVER if "FOREVER" in items else 0)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("TINYINT", pa.int8()),
        ("SMALLINT", pa.int16()),
        ("INT", pa.int32()),
        ("BIGINT", pa.int64()),
        ("FLOAT", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("BOOLEAN", pa.bool_()),
        ("STRING", pa.string()),
        ("VARCHAR", pa.string()),
        ("DECIMAL(7, 2)", pa.decimal128(7, 2)),
        ("DATE", pa.date32()),
        ("TIMESTAMP", TIMESTAMP),
        ("BINARY", pa.binary()),
        ("ARRAY<DOUBLE>", pa.list_(pa.float64())),
    ],
)
def test_types(written: str, kind: pa.DataType) -> None:
    statement = read(f"CREATE TABLE t (a {written})")
    assert isinstance(statement, CreateTable)
    assert schema(statement.columns) == [("a", kind)]


def test_options_are_texts() -> None:
    sql = (
        "CREATE STREAM s (v INT) FROM 'My-Type' WITH (a = -5, b = 5 SECONDS, 'C' = TRUE, d = 'x y')"
    )
    stream = read(sql).stream
    assert stream.stream_type == "My-Type"
    assert stream.options == {"a": "-5", "b": "5 SECONDS", "c": "TRUE", "d": "x y"}


def test_insert() -> None:
    statement = read(
        "INSERT INTO t (a, b) VALUES (1, 'it''s'), (-2.50, NULL), (1 + 2 * 3, 'a' || 'b'), "
        "(TRUE, X'0aff'), (DATE '2026-01-31', TIMESTAMP '2026-01-31 12:00:00'), "
        "(1e3, TIMESTAMP '2026-01-31T12:00:00.5+02:00'), (CAST('x' AS STRING), CAST(3 AS DOUBLE))"
    )
    assert isinstance(statement, Insert)
    assert (statement.table, statement.columns) == ("t", ("a", "b"))
    assert statement.rows == (
        (1, "it's"),
        (Decimal("-2.50"), None),
        (7, "ab"),
        (True, b"\x0a\xff"),
        (date(2026, 1, 31), datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (1000.0, datetime(2026, 1, 31, 10, 0, 0, 500_000, tzinfo=UTC)),
        ("x", 3.0),
    )
    written = [statement.sql[place.start : place.end] for place in statement.row_places]
    assert written[0] == "(1, 'it''s')"
    assert len(written) == len(statement.rows)


def test_update_and_delete() -> None:
    update = read("UPDATE t SET a = b + 1, c = 'x' WHERE d > 3")
    assert isinstance(update, Update)
    assert {name: tree.sql() for name, tree in update.assignments.items()} == {
        "a": "b + 1",
        "c": "'x'",
    }
    assert update.condition is not None
    assert update.condition.sql() == "d > 3"
    delete = read("DELETE FROM t")
    assert isinstance(delete, Delete)
    assert (delete.table, delete.condition) == ("t", None)


def test_short_statements() -> None:
    for kind in ObjectKind:
        for words, if_exists in (("", False), ("IF EXISTS ", True)):
            statement = read(f"DROP {kind.lower()} {words}`odd name`")
            assert isinstance(statement, Drop)
            assert (statement.kind, statement.name, statement.if_exists) == (
                kind,
                "odd name",
                if_exists,
            )
    for what in ShowKind:
        statement = read(f"SHOW {what}")
        assert isinstance(statement, Show)
        assert (statement.what, statement.of) == (what, None)
    for what in (ShowKind.SENSORS, ShowKind.READERS, ShowKind.DEAD_LETTERS):
        assert read(f"show {what.lower()} from Sensors").of == "Sensors"
    for word in ("DESCRIBE", "desc"):
        assert isinstance(statement := read(f"{word} Sensors"), Describe)
        assert statement.name == "Sensors"
    assert isinstance(read("START QUERY q"), StartQuery)
    assert isinstance(read("STOP QUERY q"), StopQuery)


def test_create_query() -> None:
    sql = "CREATE QUERY q AS\n  SELECT a FROM A [RANGE 5 S] EMIT CHANGES FROM START; DROP QUERY q"
    query, _ = read_statements(sql)
    assert isinstance(query, CreateQuery)
    text = "SELECT a FROM A [RANGE 5 S] EMIT CHANGES FROM START"
    assert query.query.sql == sql[query.text_place.start : query.text_place.end] == text
    again = read_query(text)
    assert (again.tree, again.from_start) == (query.query.tree, True)
    assert place_of(again.tree, text) == place_of(query.query.tree, text)


def test_options_of_a_query_have_places() -> None:
    given = "WITH (Results = '1 GB', history = 2 DAYS)"
    query = read(f"CREATE QUERY IF NOT EXISTS q {given} AS SELECT 1")
    assert isinstance(query, CreateQuery)
    assert {name: one.value for name, one in query.options.items()} == {
        "results": "1 GB",
        "history": "2 DAYS",
    }
    place = query.options["history"].place
    assert place.sql[place.start : place.end] == "history = 2 DAYS"
    assert (query.if_not_exists, query.query.sql) == (True, "SELECT 1")
    assert isinstance(altered := read("alter query q set (state = none)"), AlterQuery)
    assert (altered.name, altered.options["state"].value) == ("q", "none")


@pytest.mark.parametrize(
    ("sql", "from_start"),
    [
        ("SELECT a FROM A", False),
        ("SELECT a FROM start", False),
        ("SELECT a FROM start FROM START", True),
        ("SELECT a FROM A WHERE a > 3 from start", True),
        ("SELECT a FROM A FROM START EMIT CHANGES", True),
        ("SELECT a FROM A EMIT CHANGES EVERY 5 S FROM START", True),
        ("SELECT a FROM A UNION ALL SELECT a FROM start", False),
        ("SELECT a FROM A UNION ALL SELECT a FROM B FROM START", True),
        ("(SELECT a FROM A) FROM START", True),
        ("SELECT a FROM (SELECT a FROM A) S FROM START", True),
        ("SELECT a FROM A, B WINDOW = 5 S FROM START", True),
    ],
)
def test_from_start(sql: str, from_start: bool) -> None:
    statement = read(sql)
    assert isinstance(statement, Statement)
    assert statement.from_start is from_start
    assert statement.tree.find(FromStart) is None


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_ ]{0,8}", fullmatch=True)
TYPES = st.sampled_from(
    [
        ("INT", pa.int32()),
        ("STRING", pa.string()),
        ("TIMESTAMP", TIMESTAMP),
        ("DECIMAL(5, 1)", pa.decimal128(5, 1)),
    ]
)
CONSTANTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF)),
    st.dates(date(1700, 1, 1)),
    st.datetimes(datetime(1700, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)),
    st.decimals(-1000, 1000, places=3),
    st.binary(max_size=4),
)


def spelled(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "''")
            return f"'{escaped}'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"TIMESTAMP '{value.strftime('%Y-%m-%d %H:%M:%S.%f')}'"
        case date():
            return f"DATE '{value}'"
    return str(value)


@given(
    st.lists(st.tuples(NAMES, TYPES), min_size=1, unique_by=lambda column: column[0].lower()),
    st.integers(0, 10**12),
    st.dictionaries(NAMES, st.text("ab 'Z", max_size=5), max_size=3),
)
def test_streams_round_trip(columns: Any, lateness: int, options: dict[str, str]) -> None:
    options = {name.lower(): value for name, value in options.items()}
    items = [f"`{name}` {written}" for name, (written, _) in columns]
    given_options = ", ".join(f"'{name}' = {spelled(value)}" for name, value in options.items())
    with_ = f" WITH ({given_options})" if options else ""
    sql = f"CREATE STREAM s ({', '.join(items)}, LATENESS {lateness} US) FROM tcp{with_}"
    stream = read(sql).stream
    assert schema(stream.columns) == [(name, kind) for name, (_, kind) in columns]
    assert (stream.lateness, dict(stream.options)) == (lateness, options)


@given(st.lists(st.tuples(CONSTANTS, CONSTANTS), min_size=1, max_size=4))
def test_rows_round_trip(rows: list[tuple[object, ...]]) -> None:
    values = ", ".join(f"({', '.join(map(spelled, row))})" for row in rows)
    assert list(read(f"INSERT INTO t VALUES {values}").rows) == rows


SEEDS = (
    SENSORS,
    "CREATE STREAM s (ts TIMESTAMP, v DOUBLE, TIME ts, LATENESS 0.8 S, IDLE 5 M) FROM tcp "
    "WITH (a = 'x', b = 3)",
    "CREATE TABLE IF NOT EXISTS t (a INT, b DECIMAL(5, 2), c STRING)",
    "INSERT INTO t (a, b) VALUES (1, -2.5), (CAST(3 AS INT), NULL), (X'00', DATE '2026-01-01')",
    "UPDATE t SET a = CASE WHEN b > 3 THEN 1 ELSE a END, c = 'x' WHERE b BETWEEN 1 AND 3",
    "DELETE FROM t WHERE NOT (a = 1 OR b LIKE 'x%') AND c IN ('a', 'b')",
    "CREATE QUERY q AS SELECT k, SUM(v) FROM A [RANGE 1 HOUR] GROUP BY k EMIT CHANGES FROM START",
    "DROP SENSOR TABLE IF EXISTS s; SHOW SENSORS FROM t; DESCRIBE t; START QUERY q",
)


def mutants(count: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        words = words_of(rng.choice(SEEDS))
        for _ in range(rng.randint(1, 3)):
            words = rng.choice(MUTATIONS)(words, rng) or ["x"]
        yield " ".join(words)


def check_mutants(count: int, seed: int) -> None:
    accepted = 0
    for sql in mutants(count, seed):
        started = time.process_time()
        try:
            read_statements(sql)
            accepted += 1
        except NilometerError:
            pass
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{sql[:2000]!r}")
        assert time.process_time() - started < pace(), sql[:300]
    assert 0 < accepted < count


def test_mutated_statements() -> None:
    check_mutants(300, 1)


@pytest.mark.soak
@pytest.mark.limit(1800)
def test_many_mutated_statements() -> None:
    check_mutants(20_000, random.randrange(1 << 32))


def test_the_examples_of_the_docs_can_be_read() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    section = text.split("## Statements of the database")[1].split("```")[1]
    kinds = [type(one).__name__ for one in read_statements(section.removeprefix("sql"))]
    assert kinds == [
        *("CreateStream", "CreateSensorTable", "Insert", "Update", "Delete", "CreateTable"),
        *("Insert", "CreateQuery", "StopQuery", "StartQuery", "Drop"),
    ]
