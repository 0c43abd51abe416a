"""Statements on the catalog: what they do, what they say, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from nilometer.errors import SqlError
from nilometer.log.layout import SENSOR, TIMESTAMP
from nilometer.model.time import FOREVER
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.execute import CatalogStatement, execute
from nilometer.sensors.catalog.outcome import Action, Change, Outcome
from nilometer.sensors.declaration import Declaration
from nilometer.sql.ddl.nodes import ObjectKind
from nilometer.sql.statements import read_statements

SENSORS = (
    "CREATE SENSOR TABLE Sensors (SensorID INT, Location STRING, "
    "Reading STREAM(temperature DOUBLE, humidity DOUBLE) FROM http)"
)


Run = Callable[[str], Outcome]


@pytest.fixture
def run(catalog: SensorCatalog) -> Run:
    return partial(_run, catalog)


def _run(catalog: SensorCatalog, sql: str) -> Outcome:
    (statement,) = read_statements(sql)
    return execute(catalog, cast(CatalogStatement, statement))


def _refusal(run: Run, sql: str) -> str:
    with pytest.raises(SqlError) as caught:
        run(sql)
    assert caught.value.place is not None
    return str(caught.value)


def _rows(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.rows is not None
    rows: list[dict[str, Any]] = outcome.rows.to_pylist()
    return rows


def test_create_stream(run: Run, catalog: SensorCatalog) -> None:
    done = run(
        "CREATE STREAM Gauge (level DOUBLE, ts TIMESTAMP, TIME ts, LATENESS 5 SECONDS, "
        "IDLE 1 MINUTE, HISTORY 30 DAYS) FROM SYNTHETIC WITH (rate = '10', disk = '1GB')"
    )
    assert done == Outcome(
        "created stream Gauge", change=Change(ObjectKind.STREAM, "Gauge", Action.CREATED)
    )
    assert catalog.declaration("gauge") == Declaration(
        "Gauge",
        pa.schema({"level": pa.float64(), "ts": TIMESTAMP}),
        "synthetic",
        {"rate": "10", "disk": "1GB"},
        time="ts",
        lateness=5_000_000,
        idle=60_000_000,
        history=30 * 86_400_000_000,
    )


def test_expected_rates_and_silence_are_shown_back(run: Run, catalog: SensorCatalog) -> None:
    run("CREATE STREAM Gauge (v INT, EVERY 10 SECONDS, LATENESS 1 S) FROM synthetic")
    declared = catalog.require_declaration("gauge")
    assert (declared.every, declared.idle, declared.shown_idle) == (10_000_000, None, None)
    assert run("DESCRIBE Gauge").message == "stream Gauge FROM synthetic, LATENESS 1s, EVERY 10s"
    run("CREATE SENSOR TABLE T (id INT, r STREAM(v INT, IDLE NEVER, EVERY 1 HOUR) FROM http)")
    exact = catalog.require_declaration("T")
    assert (exact.idle, exact.shown_idle, exact.has_default_idle) == (FOREVER, "never", False)
    assert (
        run("DESCRIBE T").message == "sensor table T FROM http, IDLE never, EVERY 3600s, 0 sensors"
    )
    assert [(one["idle"], one["every"]) for one in _rows(run("SHOW STREAMS"))] == [
        (None, "10s"),
        ("never", "3600s"),
    ]


def test_a_sensor_table_lives(run: Run, catalog: SensorCatalog) -> None:
    assert run(SENSORS).message == "created sensor table Sensors"
    assert run(SENSORS.replace("TABLE ", "TABLE IF NOT EXISTS ")) == Outcome(
        "sensor table Sensors already exists"
    )
    done = run(
        "INSERT INTO sensors VALUES (1, 'hall', 'http://127.0.0.1:5001'), "
        """(2, NULL, '{"address": "http://127.0.0.1:5002", "interval": "5s"}')"""
    )
    assert done == Outcome(
        "inserted 2 rows into Sensors",
        change=Change(ObjectKind.SENSOR_TABLE, "Sensors", Action.ROWS_CHANGED),
    )
    done = run("INSERT INTO Sensors (reading, SENSORID) VALUES ('http://127.0.0.1:5003', 3)")
    assert done.message == "inserted 1 row into Sensors"
    assert [one.values for one in catalog.sensors("Sensors")] == [
        {"SensorID": 1, "Location": "hall"},
        {"SensorID": 2, "Location": None},
        {"SensorID": 3, "Location": None},
    ]
    done = run("UPDATE Sensors SET Location = 'roof', SensorID = SensorID + 10 WHERE sensorid > 1")
    assert done.message == "updated 2 rows of Sensors"
    done = run("UPDATE Sensors SET Reading = 'http://elsewhere' WHERE SensorID = 13")
    assert done.message == "updated 1 row of Sensors"
    assert run("DELETE FROM Sensors WHERE Reading LIKE '%5001'").message == (
        "deleted 1 row from Sensors"
    )
    rows = catalog.sensor_rows("Sensors").drop_columns([SENSOR]).to_pylist()
    both = '{"address": "http://127.0.0.1:5002", "interval": "5s"}'
    assert rows == [
        {"SensorID": 12, "Location": "roof", "Reading": both},
        {"SensorID": 13, "Location": "roof", "Reading": "http://elsewhere"},
    ]
    assert [one.number for one in catalog.sensors("Sensors")] == [2, 3]
    assert run("DELETE FROM Sensors WHERE SensorID = 99") == Outcome("deleted 0 rows from Sensors")
    assert run("DROP SENSOR TABLE sensors") == Outcome(
        "dropped sensor table Sensors",
        change=Change(ObjectKind.SENSOR_TABLE, "Sensors", Action.DROPPED),
    )
    assert run("DROP SENSOR TABLE IF EXISTS Sensors") == Outcome(
        "there was no sensor table Sensors"
    )


def test_a_table_takes_every_type(run: Run, catalog: SensorCatalog) -> None:
    run(
        "CREATE TABLE T (a TINYINT, b BIGINT, c FLOAT, d DOUBLE, e BOOLEAN, f STRING, g BINARY, "
        "h DATE, i TIMESTAMP, j DECIMAL(5, 2))"
    )
    run(
        "INSERT INTO t VALUES (-128, 9223372036854775807, 0.5, -1e308 * 10, TRUE, "
        "'it''s', X'00FF', DATE '2026-01-31', TIMESTAMP '2026-01-31 12:00:00', 123.456), "
        "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    run("INSERT INTO T (j, d) VALUES (-1, -0.0)")
    table = catalog.table("T")
    assert table is not None
    first, second, third = table.to_pylist()
    assert first.pop("d") == -inf
    assert first == {
        "a": -128,
        "b": 2**63 - 1,
        "c": 0.5,
        "e": True,
        "f": "it's",
        "g": b"\x00\xff",
        "h": date(2026, 1, 31),
        "i": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "j": Decimal("123.46"),
    }
    assert set(second.values()) == {None}
    assert (third["j"], third["d"]) == (Decimal("-1.00"), 0.0)


def test_a_table_is_updated_and_emptied(run: Run, catalog: SensorCatalog) -> None:
    run("CREATE TABLE Rooms (room STRING, floor INT, area DECIMAL(6, 1))")
    run("INSERT INTO Rooms VALUES ('a', 1, 10.5), ('b', NULL, 11), ('c', 3, NULL)")
    done = run("UPDATE Rooms SET floor = floor * 2, area = floor WHERE room <> 'b'")
    assert done.message == "updated 2 rows of Rooms"
    table = catalog.table("Rooms")
    assert table is not None
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("a", 2, Decimal(1)),
        ("b", None, Decimal(11)),
        ("c", 6, Decimal(3)),
    ]
    assert run("DELETE FROM Rooms WHERE floor > 1").message == "deleted 2 rows from Rooms"
    assert run("UPDATE Rooms SET floor = 7").message == "updated 1 row of Rooms"
    assert run("DELETE FROM Rooms").message == "deleted 1 row from Rooms"
    assert run("UPDATE Rooms SET floor = 7").message == "updated 0 rows of Rooms"
    assert catalog.count_rows("Rooms") == 0


def test_show_and_describe(run: Run, catalog: SensorCatalog) -> None:
    run(SENSORS)
    run("CREATE STREAM Gauge (ts TIMESTAMP, v INT, TIME ts, HISTORY FOREVER) FROM synthetic")
    run("CREATE TABLE Rooms (room STRING, area DECIMAL(6,1))")
    run("INSERT INTO Sensors VALUES (1, 'x', 'http://h')")
    assert _rows(run("SHOW STREAMS")) == [
        {
            "name": "Gauge",
            "kind": "stream",
            "stream_type": "synthetic",
            "time": "ts",
            "lateness": "0s",
            "idle": None,
            "every": None,
            "history": "forever",
        },
        {
            "name": "Sensors",
            "kind": "sensor table",
            "stream_type": "http",
            "time": "arrival",
            "lateness": "0s",
            "idle": "60s by default",
            "every": None,
            "history": None,
        },
    ]
    assert _rows(run("SHOW TABLES")) == [
        {"name": "Rooms", "kind": "table", "rows": 0},
        {"name": "Sensors", "kind": "sensor table", "rows": 1},
    ]
    types = _rows(run("SHOW STREAM TYPES"))
    assert {"name": "mqtt", "package": "nilometer"} in types
    described = run("DESCRIBE sensors")
    assert described.message == "sensor table Sensors FROM http, IDLE 60s by default, 1 sensor"
    assert [tuple(row.values()) for row in _rows(described)] == [
        ("SensorID", "INT", "static"),
        ("Location", "STRING", "static"),
        ("Reading.temperature", "DOUBLE", "reading"),
        ("Reading.humidity", "DOUBLE", "reading"),
    ]
    assert [tuple(row.values()) for row in _rows(run("DESCRIBE Gauge"))] == [
        ("ts", "TIMESTAMP", "time"),
        ("v", "INT", "reading"),
    ]
    described = run("DESCRIBE Rooms")
    assert described.message == "table Rooms with 0 rows"
    assert _rows(described)[1] == {"column": "area", "type": "DECIMAL(6,1)", "role": ""}
    catalog.create_query("Hot", "SELECT 1", "append")
    assert _rows(run("DESCRIBE hot"))[0] == {"property": "text", "value": "SELECT 1"}


REFUSALS = [
    (
        "CREATE STREAM s (x INT) FROM htp",
        "there is no stream type 'htp'\n"
        "  line 1, column 15:\n"
        "    CREATE STREAM s (x INT) FROM htp\n"
        "                  ^\n"
        "  detail: known: file, http, kafka, mqtt, python, synthetic, tcp\n"
        "  hint: did you mean http?",
    ),
    (
        "CREATE STREAM s (x INT) FROM http WITH (intervall = '1s')",
        "stream type http has no option 'intervall'",
    ),
    ("CREATE STREAM s (x INT) FROM http WITH (disk = 'much')", "option disk cannot be used"),
    (
        "CREATE TABLE sensors (x INT)",
        "sensor table Sensors already exists\n"
        "  line 1, column 14:\n"
        "    CREATE TABLE sensors (x INT)\n"
        "                 ^^^^^^^\n"
        "  detail: a table needs a name of its own\n"
        "  hint: choose another name, or DROP SENSOR TABLE Sensors first",
    ),
    (
        "INSERT INTO Sensor VALUES (1)",
        "there is no table or sensor table Sensor\n"
        "  line 1, column 13:\n"
        "    INSERT INTO Sensor VALUES (1)\n"
        "                ^^^^^^\n"
        "  hint: did you mean Sensors?",
    ),
    (
        "INSERT INTO Rooms VALUES (1, 'x'),\n  (3000000000, 'y')",
        "row 2, column floor: INT cannot store 3000000000\n"
        "  line 2, column 3:\n"
        "      (3000000000, 'y')\n"
        "      ^^^^^^^^^^^^^^^^^\n"
        "  hint: give a value of type INT, or NULL",
    ),
    (
        "INSERT INTO Rooms VALUES ('one', 'x')",
        "row 1, column floor: INT cannot store 'one'\n"
        "  line 1, column 26:\n"
        "    INSERT INTO Rooms VALUES ('one', 'x')\n"
        "                             ^^^^^^^^^^^^\n"
        "  hint: give a value of type INT, or NULL",
    ),
    (
        "INSERT INTO Rooms VALUES (9223372036854775808, 'x')",
        "row 1, column floor: INT cannot store 9223372036854775808\n"
        "  line 1, column 26:\n"
        "    INSERT INTO Rooms VALUES (9223372036854775808, 'x')\n"
        "                             ^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: give a value of type INT, or NULL",
    ),
    ("INSERT INTO Rooms VALUES (1.5, 'x')", "row 1, column floor: INT cannot store 1.5"),
    ("INSERT INTO Rooms VALUES (1, 2)", "row 1, column room: STRING cannot store 2"),
    ("INSERT INTO Rooms VALUES (TRUE, 'x')", "row 1, column floor: INT cannot store TRUE"),
    (
        "INSERT INTO Rooms VALUES (1)",
        "row 1 has 1 value, but Rooms has 2 columns\n"
        "  line 1, column 26:\n"
        "    INSERT INTO Rooms VALUES (1)\n"
        "                             ^^^\n"
        "  detail: the columns are floor, room\n"
        "  hint: give every column a value, NULL if there is none, or name the columns",
    ),
    ("INSERT INTO Rooms (flor) VALUES (1)", "Rooms has no column flor"),
    ("INSERT INTO Sensors (SensorID) VALUES (1)", "the stream column Reading needs a value"),
    (
        "INSERT INTO Sensors VALUES (1, 'x', 'http://a'), (1, 'x', NULL)",
        "the stream column Reading needs a value\n"
        "  line 1, column 50:\n"
        "    INSERT INTO Sensors VALUES (1, 'x', 'http://a'), (1, 'x', NULL)\n"
        "                                                     ^^^^^^^^^^^^^^\n"
        "  detail: got NULL\n"
        "  hint: it says how the sensor is reached: an address, or a JSON object of options",
    ),
    ("INSERT INTO Sensors VALUES (1, 'x', 5)", "row 1, column Reading: STRING cannot store 5"),
    (
        "INSERT INTO Sensors VALUES (1, 'x', '{\"interval\": ')",
        "the options of a sensor are not a JSON object",
    ),
    (
        """INSERT INTO Sensors VALUES (1, 'x', '{"address": "http://h", "intervl": 1}')""",
        "stream type http has no option 'intervl'",
    ),
    ("UPDATE Sensors SET Reading = NULL", "the stream column Reading needs a value"),
    ("UPDATE Sensors SET Reading = '{'", "the options of a sensor are not a JSON object"),
    ("UPDATE Sensors SET Loc = 'x'", "Sensors has no column Loc"),
    ("UPDATE Sensors SET SensorID = 'x'", "a column of type INT cannot store"),
    ("UPDATE Sensors SET SensorID = 1 WHERE Nowhere = 1", "there is no column"),
    ("UPDATE Rooms SET floor = floor * 2000000000", "arithmetic overflow"),
    ("DELETE FROM Rooms WHERE floor", "a condition must be true or false"),
    ("DELETE FROM Room", "there is no table or sensor table Room"),
    ("DROP TABLE Sensors", "Sensors is a sensor table, not a table"),
    (
        "DESCRIBE Nothing",
        "there is no stream, sensor table, table, query, delivery, view or alert Nothing",
    ),
]


@pytest.mark.parametrize(("sql", "text"), REFUSALS, ids=[sql for sql, _ in REFUSALS])
def test_what_is_refused_changes_nothing(tmp_path: Path, sql: str, text: str) -> None:
    with SensorCatalog.open(tmp_path / "catalog.db") as catalog:
        _check_refusal(catalog, sql, text)


def _check_refusal(catalog: SensorCatalog, sql: str, text: str) -> None:
    run = partial(_run, catalog)
    run(SENSORS)
    run("INSERT INTO Sensors VALUES (7, 'hall', 'http://h')")
    run("CREATE TABLE Rooms (floor INT, room STRING)")
    run("INSERT INTO Rooms VALUES (2, 'hall')")
    before = (catalog.generation(), catalog.sensors("Sensors"), catalog.table("Rooms"))
    assert _refusal(run, sql).startswith(text)
    assert (catalog.generation(), catalog.sensors("Sensors"), catalog.table("Rooms")) == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "a name needs a letter or a digit"),
        (".", "a name needs a letter or a digit"),
        ("..", "a name needs a letter or a digit"),
        ("/", "a name needs a letter or a digit"),
        ("x" * 201, "the name is too long"),
        ("ü" * 34, "the name is too long"),
        ("Gauge.DEAD", "a name cannot end with .dead"),
    ],
)
def test_a_name_is_one_that_a_folder_can_have(run: Run, name: str, said: str) -> None:
    """A log's folder bears the name: with `..`, DROP would delete another one."""
    for statement in (
        f"CREATE STREAM `{name}` (v INT) FROM synthetic",
        f"CREATE TABLE `{name}` (v INT)",
    ):
        assert _refusal(run, statement).startswith(said)


def test_names_may_be_odd(run: Run) -> None:
    for name in ("it's", "a/b", "../a", "日本", "x" * 200, "ü" * 33, "select"):
        assert run(f"CREATE TABLE `{name}` (v INT)").message == f"created table {name}"
        assert run(f"DROP TABLE `{name.upper()}`").message.lower() == f"dropped table {name}"
