"""Aggregates in Python give what built-in ones give, at every instant, across any restart."""

from __future__ import annotations

import pickle
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nilometer as nm
from nilometer.errors import InputError, NilometerError
from nilometer.kernels.python_aggregate import PythonAggregate
from nilometer.local.database import LocalDatabase

SECOND = 1_000_000
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64()), ("v", pa.int64()), ("w", pa.int64())]
)
Row = tuple[int, int, int | None, int | None]


class Total:
    """A sum that takes values back."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def update(self, value: int) -> None:
        self.values.append(value)

    def retract(self, value: int) -> None:
        self.values.remove(value)

    def finish(self) -> int:
        return sum(self.values)


class Product:
    """A sum of products that begins anew each time."""

    def __init__(self) -> None:
        self.sum = 0

    def update(self, value: int, weight: int) -> None:
        self.sum += value * weight

    def finish(self) -> int:
        return self.sum


PAIRS = {
    "spread(v)": "MAX(v) - MIN(v)",
    "total(v)": "SUM(v)",
    "product(v, w)": "SUM(v * w)",
    "covered(w, v)": "nullif(COUNT(v * w), 0)",
    "latest(v)": "last(v) IGNORE NULLS",
    "total(DISTINCT v)": "SUM(DISTINCT v)",
    "total(v) FILTER (WHERE w > 1)": "SUM(v) FILTER (WHERE w > 1)",
    "abs(total(v) - 3) + spread(w)": "abs(SUM(v) - 3) + (MAX(w) - MIN(w))",
}
rows = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.integers(0, 2),
        st.one_of(st.none(), st.integers(-3, 3)),
        st.one_of(st.none(), st.integers(0, 3)),
    ),
    min_size=1,
    max_size=25,
).map(lambda drawn: sorted(drawn, key=lambda row: row[0]))


def database(given: list[Row]) -> LocalDatabase:
    db = LocalDatabase(buckets=2)
    db.create_stream("S", pa.Table.from_batches([batch(given)]), time="ts")
    aggregates: dict[str, Any] = {
        "spread": lambda v: v.max() - v.min(),
        "total": Total,
        "product": Product,
        "covered": lambda w, v: len(w + v),
        "latest": lambda v: v.iloc[-1],
    }
    for name, one in aggregates.items():
        db.create_function(name, PythonAggregate(name, one), pa.int64(), by_row=True)
    return db


def batch(given: list[Row]) -> pa.RecordBatch:
    rows = [dict(zip(SCHEMA.names, (t * SECOND, *more), strict=True)) for t, *more in given]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


@settings(max_examples=40)
@given(given=rows, parts=st.lists(st.integers(1, 9), min_size=1, max_size=3), keyed=st.booleans())
def test_they_are_what_built_in_ones_are(given: list[Row], parts: list[int], keyed: bool) -> None:
    given = list({row[0]: row for row in given}.values())  # else either may be the last one
    pairs = enumerate(PAIRS.items())
    columns = ", ".join(f"{own} AS a{i}, {same} AS b{i}" for i, (own, same) in pairs)
    db, by = database(given), "GROUP BY k" if keyed else ""
    statement = f"SELECT {columns} FROM S [RANGE 4 SECONDS] {by}"
    expected = db.sql(statement).to_pylist()
    require_equal(expected)
    running, emitted, rest = db.query(statement), [], given
    for size in (*parts, len(given)):
        some, rest = rest[:size], rest[size:]
        if some:
            emitted += running.feed({"S": batch(some)}).to_pylist()
            running.restart()
    require_equal(emitted)
    end = given[-1][0] * SECOND
    before = [one for one in expected if stamp(one) < end]
    assert sorted(repr(one) for one in emitted if stamp(one) < end) == sorted(map(repr, before))


def require_equal(emitted: list[dict[str, Any]]) -> None:
    for row in emitted:
        for number, call in enumerate(PAIRS):
            assert row[f"a{number}"] == row[f"b{number}"], (call, row)


def stamp(row: dict[str, Any]) -> int:
    return round(row["_time"].timestamp() * SECOND)


def test_only_what_has_changed_is_told_to_one_that_can_retract() -> None:
    calls: list[tuple[str, int]] = []

    class Watched(Total):
        def update(self, value: int) -> None:
            calls.append(("+", value))
            super().update(value)

        def retract(self, value: int) -> None:
            calls.append(("-", value))
            super().retract(value)

    made = PythonAggregate("watched", Watched)
    assert made([1, 2, 3, 4]) == 10
    assert made([2, 3, 4, 4]) == 13
    assert calls[4:] == [("-", 1), ("+", 4)]
    assert made([7]) == 7  # less to tell anew
    assert calls[6:] == [("+", 7)]
    assert made([]) is None
    assert made(None) is None
    assert PythonAggregate("lists", Total.__mro__[0])([1]) == 1
    copy = pickle.loads(pickle.dumps(PythonAggregate("total", Total)))
    assert copy([1, 2]) == 3


def test_a_struct_is_one_value() -> None:
    db = database([(1, 0, 5, 1), (2, 0, 4, 2)])
    seen: list[Any] = []
    db.create_function(
        "see",
        PythonAggregate("see", lambda s: seen.append(s.tolist()) or 1),
        pa.int64(),
        by_row=True,
    )
    db.sql("SELECT see(struct(v, w)) AS n FROM S GROUP BY window(ts, '1 minute')")
    assert seen == [[{"v": 5, "w": 1}, {"v": 4, "w": 2}]]


def test_an_object_that_raised_is_not_asked_again() -> None:
    class Once(Total):
        def update(self, value: int) -> None:
            if value == 0:
                raise ValueError("no zero")
            super().update(value)

    made = PythonAggregate("once", Once)
    assert made([1, 2, 3]) == 6
    with pytest.raises(ValueError, match="no zero"):
        made([2, 3, 0])
    assert made([2, 3]) == 5


def test_structs_and_arrays_can_be_collected() -> None:
    db = LocalDatabase()
    db.create_stream("S", pa.Table.from_batches([batch([(1, 0, 5, 1), (2, 0, 4, 2)])]), time="ts")
    rows = db.sql(
        "SELECT array_agg(struct(v, w)) AS a, array_agg(array(w, v)) AS b "
        "FROM TUMBLE(TABLE S, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start"
    ).to_pylist()
    assert rows[0]["a"] == [{"v": 5, "w": 1}, {"v": 4, "w": 2}]
    assert rows[0]["b"] == [[1, 5], [2, 4]]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT spread(v, w) FROM S [RANGE 1 SECOND]", "spread does not take 2 arguments"),
        ("SELECT total(v, w) FROM S [RANGE 1 SECOND]", "total does not take 2 arguments"),
        ("SELECT spread(*) FROM S [RANGE 1 SECOND]", "spread needs the values of a column"),
        ("SELECT spread() FROM S [RANGE 1 SECOND]", "spread needs the values of a column"),
        ("SELECT spread(SUM(v)) FROM S [RANGE 1 SECOND]", "aggregates cannot be nested"),
        ("SELECT spread(v) OVER (ORDER BY ts) FROM S", "spread is not supported with OVER"),
        ("SELECT v FROM S WHERE spread(v) > 1", "the aggregate spread is not allowed in WHERE"),
        ("SELECT spread(v) FROM S [UNBOUNDED]", "keeps all values of a stream"),
    ],
)
def test_what_cannot_be_is_refused(statement: str, message: str) -> None:
    with pytest.raises(NilometerError, match=message.replace("(", r"\(")):
        database([(0, 0, 1, 1)]).sql(statement)


def test_without_spark_a_database_has_them() -> None:
    db = nm.connect()
    frame = pd.DataFrame({"ts": pd.to_datetime([0, 1], unit="s", utc=True), "v": [3.0, 5.0]})
    db.create_stream("S", frame, time="ts")
    db.create_aggregate("spread", lambda v: v.max() - v.min())
    drawn = db.sql("SELECT spread(v) AS s FROM S GROUP BY window(ts, '1 minute')").to_pandas()
    assert drawn["s"].tolist() == [2.0]
    with pytest.raises(InputError, match="the aggregate half has no method finish"):
        db.create_aggregate("half", type("Half", (), {"update": print}))
    with pytest.raises(InputError, match="function sum already exists"):
        db.create_aggregate("sum", Total)
    db.create_aggregate("broken", lambda v: v.nothing)
    with pytest.raises(NilometerError, match="the function broken raised AttributeError"):
        db.sql("SELECT broken(v) FROM S [RANGE 1 SECOND]")
