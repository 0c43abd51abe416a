"""Sensor tables and named queries in plans, over a made-up catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase, NoEngine
from nilometer.operators.watermarks import StreamClock
from nilometer.sql.bind.table_rows import select_rows_text
from nilometer.sql.catalog import Catalog, Relation, SensorColumns, rows_name
from nilometer.sql.compile import compile_statement
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan, joins_of
from nilometer.sql.plan.join_plan import JoinPlan, Source
from nilometer.sql.sensor_conditions import row_condition, sensor_condition
from nilometer.sql.statements import ExplainFormat, read_query

TIMESTAMP = pa.timestamp("us", tz="UTC")
READING = pa.struct([("temperature", pa.float64()), ("humidity", pa.float64())])
SENSORS = Relation(
    "Sensors",
    ("SensorID", "Location", "Reading", "floor", "_time"),
    (pa.int32(), pa.string(), READING, pa.int32(), TIMESTAMP),
    "_time",
    has_implicit_time=True,
    sensors=SensorColumns(("SensorID", "Location", "floor"), "Reading"),
)
ALARMS = Relation("Alarms", ("ts", "k", "v"), (TIMESTAMP, pa.int32(), pa.float64()), "ts")
ROOMS = Relation(
    "Rooms", ("id", "name"), (pa.int32(), pa.string()), clock=StreamClock(ended=True), is_table=True
)
QUERIES = {
    "Hot": "SELECT SensorID, MAX(Reading.temperature) AS t FROM Sensors [RANGE 5 S] "
    "WHERE floor = 1 GROUP BY SensorID",
    "Recent": "SELECT k FROM Alarms [RANGE 3 S] EMIT CHANGES",
    "Slow": "SELECT k FROM Alarms [RANGE 3 S] EMIT CHANGES EVERY 2 S FROM START",
    "Hinted": "SELECT /*+ NTA */ DISTINCT k FROM Alarms [RANGE 3 S]",
    "Hottest": "SELECT MAX(t) AS t FROM Hot",
    "First": "SELECT k FROM Second",
    "Second": "SELECT k FROM first",
    "Broken": "SELECT nope FROM Alarms [RANGE 1 S] EMIT CHANGES",
}


class AnyEngine:
    """Takes every expression for a condition."""

    time_zone = "UTC"

    def types_of(self, relation: str, expressions: Sequence[str]) -> list[pa.DataType]:
        assert relation in (*CATALOG.relations, rows_name("Sensors"))
        return [pa.bool_()] * len(expressions)


CATALOG = Catalog({"Sensors": SENSORS, "Alarms": ALARMS, "Rooms": ROOMS}, {}, AnyEngine(), QUERIES)


def plan(sql: str) -> Plan:
    return compile_statement(read_query(sql), CATALOG, 2)


def sensor_sources(sql: str) -> list[tuple[JoinPlan, Source]]:
    """The sources of a query that contact sensors, each with the join that reads it."""
    joins = joins_of(plan(sql))
    return [(j, s) for j in joins for s in j.sources if s.relation.sensors is not None]


def contacted(sql: str) -> list[str]:
    """The entries of FROM that contact sensors."""
    return sorted(source.name for _, source in sensor_sources(sql))


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT SensorID FROM Sensors WHERE Location = 'hall'", []),
        ("SELECT S.Location AS Reading FROM Sensors S", []),
        ("SELECT COUNT(*) FROM Sensors", []),
        ("SELECT Location, COUNT(*) FROM Sensors GROUP BY Location HAVING COUNT(*) > 1", []),
        ("SELECT DISTINCT floor FROM Sensors ORDER BY floor LIMIT 3", []),
        ("SELECT Alarms.v, S.Location, _time FROM Alarms, Sensors S WHERE k = S.SensorID", []),
        ("SELECT A.v, S.Location FROM Alarms A JOIN Sensors S ON A.k = S.SensorID", []),
        ("SELECT R.name, S.SensorID FROM Rooms R, Sensors S WHERE R.id = S.floor", []),
        ("SELECT k FROM Alarms [RANGE 1 S] WHERE k IN (SELECT SensorID FROM Sensors)", []),
        ("SELECT k FROM Alarms [RANGE 1 S] A WHERE EXISTS "
         "(SELECT * FROM Sensors S WHERE S.SensorID = A.k)", []),
        ("WITH h AS (SELECT SensorID FROM Sensors WHERE floor = 1) SELECT * FROM h", []),
        ("SELECT * FROM (SELECT SensorID, floor FROM Sensors) S WHERE floor = 1", []),
        ("SELECT * FROM Sensors", ["Sensors"]),
        ("SELECT S.* FROM Sensors S", ["S"]),
        ("SELECT * EXCEPT (Reading) FROM Sensors", ["Sensors"]),
        ("SELECT A.*, S.floor FROM Alarms A, Sensors S WHERE A.k = S.SensorID", []),
        ("SELECT struct(S.*) AS s FROM Sensors S", ["S"]),
        ("SELECT SensorID, _time FROM Sensors", ["Sensors"]),
        ("SELECT S.SensorID FROM Sensors S WHERE S._time > TIMESTAMP '2026-01-01 00:00:00Z'",
         ["S"]),
        ("SELECT READING.humidity FROM Sensors", ["Sensors"]),
        ("SELECT SensorID FROM Sensors WHERE sensors.reading.temperature > 3", ["Sensors"]),
        ("SELECT SensorID FROM Sensors [RANGE 5 S] EMIT CHANGES", ["Sensors"]),
        ("SELECT SensorID FROM Sensors [ROWS 3]", ["Sensors"]),
        ("SELECT Location, MAX(Reading.temperature) FROM Sensors [RANGE 1 S] GROUP BY Location",
         ["Sensors"]),
        ("SELECT A.k FROM Alarms A, Sensors S WINDOW(A, S) = 5 S WHERE A.k = S.SensorID", ["S"]),
        ("SELECT A.k FROM Alarms A, Sensors S WINDOW = 5 S WHERE A.k = S.SensorID", ["S"]),
        ("SELECT X.Reading.temperature, Y.Location, _time FROM Sensors X, Sensors Y "
         "WHERE X.SensorID = Y.SensorID", ["X"]),
        ("SELECT X.Reading.temperature FROM Sensors X, Y WHERE X.floor = Y.floor", ["X"]),
        ("SELECT X.SensorID FROM Sensors X, Sensors Y WHERE X._time - Y._time "
         "BETWEEN INTERVAL '-1' SECOND AND INTERVAL '1' SECOND", ["X", "Y"]),
        ("SELECT X.Reading.temperature FROM Sensors X [RANGE 1 S] WHERE NOT EXISTS "
         "(SELECT 1 FROM Sensors Y WHERE Y.SensorID = X.SensorID AND Y.floor > 3)", ["X"]),
        ("SELECT SensorID FROM Sensors UNION ALL SELECT SensorID FROM Sensors S "
         "WHERE S.Reading.humidity > 1", ["S"]),
        ("WITH h AS (SELECT * FROM Sensors) SELECT SensorID FROM h", ["h"]),
        ("SELECT * FROM Hot", ["Sensors"]),
    ],
)  # fmt: skip
def test_sensors_that_are_contacted(sql: str, names: list[str]) -> None:
    assert contacted(sql) == names


def test_the_time_is_no_column_of_a_star() -> None:
    join = plan("SELECT * FROM Sensors A, Sensors B WINDOW = 1 S")
    assert isinstance(join, JoinPlan)
    assert [item.name for item in join.items].count("_time") == 1
    assert len(join.items) == 9


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        ("SELECT * FROM Sensors", None),
        ("SELECT * FROM Sensors WHERE Location = 'hall'", "`Location` = 'hall'"),
        ("SELECT * FROM Sensors WHERE Reading.humidity > 1", None),
        ("SELECT * FROM Sensors WHERE Location = 'hall' AND Reading.humidity > 1 AND floor < 3",
         "`Location` = 'hall' AND `floor` < 3"),
        ("SELECT * FROM Sensors WHERE Location = 'hall' OR Reading.humidity > 1", None),
        ("SELECT * FROM Sensors WHERE (Location = 'hall' OR floor = 1) AND SensorID <> 3",
         "(`Location` = 'hall' OR `floor` = 1) AND `SensorID` <> 3"),
        ("SELECT * FROM Sensors WHERE SensorID = 2 AND SensorID = 4",
         "`SensorID` = 2 AND `SensorID` = 4"),
        ("SELECT * FROM Sensors WHERE FALSE", "FALSE"),
        ("SELECT * FROM Sensors WHERE lower(Location) = 'hall' AND floor = 1",
         "LOWER(`Location`) = 'hall' AND `floor` = 1"),
        ("SELECT * FROM Sensors WHERE floor = 1 AND rand() < 0.5 AND uuid() > Location",
         "`floor` = 1"),
        ("SELECT * FROM Sensors WHERE floor > rand(3) OR shuffle(array(floor))[0] = 1", None),
        ("SELECT * FROM Sensors WHERE floor < year(now()) AND uniform(1, floor) = 1", None),
        ("SELECT v FROM Alarms, Sensors WINDOW = 1 S WHERE k = SensorID AND k IN (1, 2)",
         "`SensorID` IN (1, 2)"),
        ("SELECT v FROM Alarms, Sensors WINDOW = 1 S WHERE k = SensorID AND v = 1", None),
        ("SELECT v FROM Alarms, Sensors WINDOW = 1 S WHERE k = SensorID AND k % 2 = 1", None),
        ("SELECT * FROM Sensors [ROWS 3] WHERE floor = 1", None),
        ("SELECT * FROM Sensors [PARTITION BY SensorID ROWS 3] WHERE SensorID = 1 AND floor = 1",
         "`SensorID` = 1"),
        ("SELECT * FROM (SELECT * FROM Sensors WHERE floor = 1) S [ROWS 3]", "`floor` = 1"),
        ("SELECT Location, COUNT(*) FROM Sensors [RANGE 1 S] WHERE floor = 1 GROUP BY Location",
         "`floor` = 1"),
        ("WITH h AS (SELECT * FROM Sensors WHERE floor = 1) SELECT * FROM h WHERE Location = 'a'",
         "`floor` = 1 AND `Location` = 'a'"),
        ("SELECT X.SensorID, Y.name FROM Sensors X [RANGE 1 S] LEFT JOIN Rooms Y "
         "ON X.floor = Y.id WHERE X.Location = 'a'", "`Location` = 'a'"),
        ("SELECT X.SensorID, Y.name FROM Sensors X [RANGE 1 S] FULL JOIN Rooms Y "
         "ON X.floor = Y.id WHERE X.Location = 'a'", None),
    ],
)  # fmt: skip
def test_conditions_that_choose_sensors(sql: str, condition: str | None) -> None:
    conditions = {sensor_condition(join, source) for join, source in sensor_sources(sql)}
    assert conditions == {condition}


@pytest.mark.parametrize(
    ("where", "condition"),
    [
        ("soundex(Location) = 'H400' AND floor = 1", "`floor` = 1"),
        ("soundex(Location) = 'H400'", None),
        ("lower(Location) = 'hall'", "LOWER(`Location`) = 'hall'"),
        ("to_date(Location) = DATE '2026-01-31'", None),  # depends on the zone
        ("floor = 1 AND Location = 'hall'", "`floor` = 1 AND `Location` = 'hall'"),
    ],
)
def test_what_only_spark_can_tell_is_not_asked_of_rows(where: str, condition: str | None) -> None:
    [(join, source)] = sensor_sources(f"SELECT * FROM Sensors WHERE {where}")
    assert row_condition(join, source) == condition


STATIC = (
    "Location = 'hall'", "floor < 2", "SensorID IN (1, 2)", "floor IS NULL", "Location LIKE 'r%'",
    "floor + SensorID > 2", "SensorID <> floor", "NOT floor = 1",
)  # fmt: skip
MOVING = ("Reading.temperature > 0", "Reading.humidity IS NULL", "Reading.temperature > floor")


def combined(terms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        terms,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("({0[0]} OR {0[1]})".format),
            st.tuples(inner, inner).map("({0[0]} AND {0[1]})".format),
            inner.map("(NOT {})".format),
        ),
        max_leaves=4,
    )


TERMS = st.lists(
    st.one_of(
        combined(st.sampled_from(STATIC)).map(lambda term: (term, True)),
        combined(st.sampled_from(MOVING)).map(lambda term: (term, False)),
    ),
    min_size=1,
    max_size=5,
)
FLOORS = st.sampled_from([None, 0, 1, 2])
READINGS = st.sampled_from([None, -1.0, 1.0, 2.0])
TABLES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["hall", "roof", None]), READINGS, FLOORS),
    min_size=1,
    max_size=12,
)


def rows_of(given_rows: list[tuple[Any, ...]]) -> pa.Table:
    readings = [
        {"temperature": value, "humidity": None if value is None else -value}
        for _, _, value, _ in given_rows
    ]
    return pa.table(
        {
            "SensorID": pa.array([row[0] for row in given_rows], pa.int32()),
            "Location": pa.array([row[1] for row in given_rows], pa.string()),
            "Reading": pa.array(readings, READING),
            "floor": pa.array([row[3] for row in given_rows], pa.int32()),
        }
    )


@given(TERMS, TABLES)
def test_what_is_pushed_and_the_rest_are_the_whole(
    terms: list[tuple[str, bool]], given_rows: list[tuple[Any, ...]]
) -> None:
    whole = " AND ".join(term for term, _ in terms)
    rows = rows_of(given_rows)
    ((join, source),) = sensor_sources(f"SELECT * FROM Sensors WHERE {whole}")
    pushed = sensor_condition(join, source) or "TRUE"
    static = rows.drop_columns(["Reading"])
    chosen = select_rows_text(pushed, static)  # fails if it names more than static columns
    expected = select_rows_text(whole, rows)
    assert not (expected & ~chosen).any()
    for term, is_static in terms:
        if is_static:  # every one of them was pushed
            assert not (chosen & ~select_rows_text(term, static)).any()
    rest = [term for term, is_static in terms if not is_static]
    kept = chosen & select_rows_text(" AND ".join(rest), rows) if rest else chosen
    assert np.array_equal(kept, expected)


def test_explain() -> None:
    def lines(sql: str) -> list[str]:
        explain_plan(plan(sql), ExplainFormat.DOT)
        return [line.strip() for line in explain_plan(plan(sql)).splitlines()]

    assert "Sensors: S is static: answered from the catalog" in lines(
        "SELECT S.SensorID FROM Sensors S"
    )
    assert "- sensors: S contacts the sensors with Location = 'hall'" in lines(
        "SELECT MAX(S.Reading.humidity) FROM Sensors S [RANGE 1 S] WHERE S.Location = 'hall'"
    )
    assert "Sensors: S contacts the sensors with LOWER(Location) = 'hall'" in lines(
        "SELECT * FROM Sensors S WHERE lower(S.Location) = 'hall'"
    )
    assert "Sensors: S contacts all sensors of Sensors" in lines("SELECT * FROM Sensors S")


def test_static_rows_are_answered_by_the_table_of_rows() -> None:
    join = plan("SELECT SensorID FROM Sensors WHERE floor = 1")
    assert isinstance(join, JoinPlan)
    relation = join.sources[0].relation
    assert (relation.name, relation.is_table) == (rows_name("Sensors"), True)
    assert relation.columns == ("SensorID", "Location", "floor")


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("SELECT k FROM Alarms", False),
        ("SELECT k FROM Alarms [RANGE 1 S] EMIT CHANGES", True),
        ("SELECT t FROM Hot", True),
        ("SELECT k FROM Recent", True),
        ("SELECT A.v FROM Alarms A [RANGE 1 S], Recent R WHERE A.k = R.k", True),
        ("SELECT SensorID FROM Sensors", False),
    ],
)
def test_what_reads_a_changing_answer_changes(sql: str, changes: bool) -> None:
    assert isinstance(plan(sql), ChangesPlan) is changes


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT k FROM First", "First reads itself"),
        ("SELECT k FROM Recent [RANGE 5 S]",
         "Recent cannot have a window: rows of its answer are already added and retracted"),
        ("SELECT k FROM Recent EMIT APPEND",
         "EMIT APPEND is not possible for this query: it also retracts rows"),
        ("WITH Alarms AS (SELECT id AS k FROM Rooms) SELECT * FROM Recent, Alarms",
         "WITH hides Alarms, which Recent reads"),
        ("SELECT k FROM Recnt", "there is no stream or table Recnt"),
    ],
)  # fmt: skip
def test_refused_named_queries(sql: str, text: str) -> None:
    with pytest.raises(NilometerError) as refused:
        plan(sql)
    assert refused.value.message == text
    assert "^" in str(refused.value)


def test_errors_inside_a_named_query_are_reported_at_its_words() -> None:
    with pytest.raises(NilometerError) as refused:
        plan("SELECT k FROM Broken")
    assert "SELECT nope FROM Alarms [RANGE 1 S] EMIT CHANGES\n           ^^^^" in str(refused.value)


ALARM_ROWS = pa.table(
    {
        "ts": pa.array([0, 1_000_000, 2_500_000, 4_000_000], TIMESTAMP),
        "k": pa.array([1, 2, 1, 3], pa.int32()),
        "v": [1.0, 2.0, 3.0, 4.0],
    }
)


@pytest.mark.parametrize(
    ("by_name", "written_out"),
    [
        ("SELECT k FROM Recent",
         "SELECT k FROM Alarms [RANGE 3 S] EMIT CHANGES"),
        ("SELECT k, COUNT(*) AS n FROM Recent GROUP BY k",
         "SELECT k, COUNT(*) AS n FROM Alarms [RANGE 3 S] GROUP BY k"),
        ("SELECT k FROM Slow", "SELECT k FROM Alarms [RANGE 3 S] EMIT CHANGES EVERY 2 S"),
        ("SELECT k FROM Hinted", "SELECT DISTINCT k FROM Alarms [RANGE 3 S]"),
        ("SELECT X.k FROM Recent X, Recent Y WHERE X.k = Y.k",
         "WITH q AS (SELECT DISTINCT k, v FROM Alarms [RANGE 3 S]) "
         "SELECT X.k FROM q X, q Y WHERE X.k = Y.k"),
    ],
)  # fmt: skip
def test_a_named_query_is_the_relation_that_it_folds_to(by_name: str, written_out: str) -> None:
    catalog = Catalog({"Alarms": ALARMS}, {}, NoEngine(), QUERIES)
    db = _WithQueries(catalog)
    db.create_stream("Alarms", ALARM_ROWS, "ts")
    assert sorted(map(str, db.sql(by_name).to_pylist())) == sorted(
        map(str, db.sql(written_out).to_pylist())
    )


class _WithQueries(LocalDatabase):
    """Runs statements over a catalog with named queries."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self._catalog = catalog

    def plan(self, statement: str) -> Any:
        return compile_statement(read_query(statement), self._catalog, 2)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT temperature FROM sensors", "did you mean Reading.temperature?"),
        ("SELECT S.Humidity FROM Sensors S", "did you mean Reading.humidity?"),
        ("SELECT locatoin FROM Sensors", "did you mean Location?"),
    ],
)
def test_who_leaves_out_the_stream_column_is_told_of_it(sql: str, hint: str) -> None:
    with pytest.raises(NilometerError) as refused:
        plan(sql)
    assert refused.value.hint == hint
    assert "Location, floor, Reading.temperature, Reading.humidity" in (refused.value.detail or "")
