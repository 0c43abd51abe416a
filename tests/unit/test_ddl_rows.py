"""Conditions and values over rows in memory."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import NilometerError
from nilometer.sql.bind.table_rows import compute_values, select_rows, select_rows_text
from nilometer.sql.ddl.store_values import store_constant
from nilometer.sql.statements import read_expression

ROWS = pa.table(
    {
        "SensorID": pa.array([1, 2, 3, None], pa.int32()),
        "Location": ["hall", "roof", None, "hall"],
        "since": [date(2025, 1, 1), date(2026, 1, 1), None, date(2026, 6, 1)],
        "seen": pa.array(
            [datetime(2026, 1, 1, 12, tzinfo=UTC), None, None, datetime(2026, 2, 1, tzinfo=UTC)],
            pa.timestamp("us", tz="UTC"),
        ),
    }
)


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ("", [0, 1, 2, 3]),
        ("location = 'hall'", [0, 3]),
        ("Sensors.LOCATION = 'hall' AND SensorID IS NOT NULL", [0]),
        ("NOT Location = 'hall'", [1]),
        ("sensorid IN (1, 3)", [0, 2]),
        ("since >= DATE '2026-01-01'", [1, 3]),
        ("seen < TIMESTAMP '2026-01-01 12:00:01'", [0]),
        ("seen >= TIMESTAMP '2026-01-01 14:00:00+02:00'", [0, 3]),
        ("NULL", []),
        ("TRUE", [0, 1, 2, 3]),
    ],
)
def test_selected_rows(where: str, chosen: list[int]) -> None:
    assert select_rows_text(where, ROWS, "Sensors").nonzero()[0].tolist() == chosen


def test_no_condition_and_no_rows() -> None:
    assert select_rows(None, "", ROWS).tolist() == [True] * 4
    assert select_rows_text("SensorID > 1", ROWS.slice(0, 0)).tolist() == []
    assert select_rows_text("SensorID > 1", ROWS.schema.empty_table()).tolist() == []


def test_rows_in_several_chunks() -> None:
    chunked = pa.concat_tables([ROWS, ROWS.slice(1, 2)])
    assert select_rows_text("SensorID = 2", chunked).nonzero()[0].tolist() == [1, 4]


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("Locaton = 'hall'", "there is no column Locaton"),
        ("Other.Location = 'x'", "there is no stream Other in this query"),
        ("Location", "a condition must be true or false"),
        ("Location > 3", "cannot apply > to STRING and INT"),
        ("SensorID IN (SELECT 1)", "a subquery is only allowed in FROM here"),
        ("COUNT(*) > 3", "the aggregate COUNT is not allowed in WHERE"),
        ("rand() > 1", "the function rand is not available here"),
        ("1 / (SensorID - 1) > 0", "division by zero"),
        ("since > DATE '2026-13-01'", "cannot read the date or time"),
        ("SensorID >", "cannot read the statement"),
    ],
)
def test_refused_conditions(where: str, text: str) -> None:
    with pytest.raises(NilometerError) as refused:
        select_rows_text(where, ROWS)
    assert refused.value.message == text
    assert "^" in str(refused.value)


def computed(text: str, kind: pa.DataType) -> Any:
    return compute_values(read_expression(text), text, ROWS, pa.field("x", kind)).to_pylist()


def test_computed_values() -> None:
    assert computed("SensorID + 1", pa.int64()) == [2, 3, 4, None]
    assert computed("SensorID * 1.5", pa.float64()) == [1.5, 3.0, 4.5, None]
    assert computed("NULL", pa.date32()) == [None] * 4
    assert computed("COALESCE(Location, 'x')", pa.string()) == ["hall", "roof", "x", "hall"]
    assert computed("since", pa.timestamp("us", tz="UTC"))[0] == datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("Location", pa.int32(), "a column of type INT cannot store values of type STRING"),
        ("SensorID", pa.string(), "a column of type STRING cannot store values of type INT"),
        ("SensorID * 1.5", pa.int32(), "a column of type INT cannot store 1.5"),
        ("SensorID + 1000", pa.int8(), "arithmetic overflow"),
        ("'2026-01-01'", pa.date32(), "a column of type DATE cannot store values of type STRING"),
    ],
)
def test_values_that_do_not_fit(text: str, kind: pa.DataType, message: str) -> None:
    with pytest.raises(NilometerError) as refused:
        computed(text, kind)
    assert refused.value.message == message


def test_stored_constants() -> None:
    assert store_constant(3, pa.float64()) == 3.0
    assert store_constant(Decimal("2.00"), pa.int16()) == 2
    assert store_constant(None, pa.string()) is None
    assert store_constant(b"x", pa.binary()) == b"x"
    mixed = [1, Decimal("2.50"), None, 1e3]
    assert store_constant(mixed, pa.list_(pa.float64())) == [1.0, 2.5, None, 1000.0]
    assert store_constant([0.5, 1.5], pa.list_(pa.float64())) == [0.5, 1.5]


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ([1], pa.int32(), "a column of type INT cannot store arrays"),
        ([1.5], pa.list_(pa.int32()), "a column of type INT cannot store 1.5"),
        (1, pa.list_(pa.int32()), "a column of type ARRAY<INT> cannot store values of type INT"),
    ],
)
def test_arrays_are_no_other_values(value: object, kind: pa.DataType, message: str) -> None:
    with pytest.raises(NilometerError) as refused:
        store_constant(value, kind)
    assert refused.value.message == message


DUCKDB = duckdb.connect()
VALUES = st.sampled_from(["a", "b", None])
NUMBERS = st.sampled_from([None, -1, 0, 1, 2])
TERMS = st.sampled_from(
    ["x = 1", "x < y", "x IS NULL", "s = 'a'", "s LIKE 'b%'", "y BETWEEN 0 AND 1", "x IN (0, y)"]
)
CONDITIONS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("({0[0]} AND {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} OR {0[1]})".format),
        inner.map("(NOT {})".format),
    ),
    max_leaves=6,
)


@given(CONDITIONS, st.lists(st.tuples(NUMBERS, NUMBERS, VALUES), max_size=8))
def test_conditions_are_those_of_sql(condition: str, rows: list[tuple[Any, ...]]) -> None:
    kinds = (("n", pa.int32()), ("x", pa.int32()), ("y", pa.int32()), ("s", pa.string()))
    numbered = [(number, *row) for number, row in enumerate(rows)]
    table = pa.table(
        {name: pa.array([r[i] for r in numbered], kind) for i, (name, kind) in enumerate(kinds)}
    )
    DUCKDB.register("given", table)
    asked = DUCKDB.execute(f"SELECT n FROM given WHERE {condition} ORDER BY n")
    expected = [n for (n,) in asked.fetchall()]
    assert select_rows_text(condition, table).nonzero()[0].tolist() == expected
