"""TIME (start, end): a row counts from start, until end and no longer; against DuckDB."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import SqlError
from nilometer.local.database import LocalDatabase
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.execute import execute
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.manager.build_rows import RowBuilder
from nilometer.sql.ddl.nodes import CreateStream
from nilometer.sql.ddl.parts import StreamDef
from nilometer.sql.statements import read_one

SECOND = 1_000_000
ORACLE = duckdb.connect()
INSTANT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("b", INSTANT), ("e", INSTANT)])
QUERIES = (
    "SELECT k, v FROM A WHERE v > 1 EMIT CHANGES",
    "SELECT k, COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m FROM A GROUP BY k",
    "SELECT COUNT(*) AS n FROM A WHERE e > b",
    "SELECT DISTINCT v FROM A",
    "SELECT A.k, A.v, B.v AS w FROM A, B WHERE A.k = B.k EMIT CHANGES",
    "SELECT A.v, COUNT(*) AS n FROM A JOIN B ON A.k = B.k WHERE A.v <= B.v GROUP BY A.v",
    "SELECT X.v, Y.v AS w FROM A X, A Y WHERE X.k = Y.k AND X.v < Y.v EMIT CHANGES",
    "SELECT A.k, A.v, B.v AS w FROM A LEFT JOIN B ON A.k = B.k",
    "SELECT k, v FROM A WHERE NOT EXISTS (SELECT * FROM B WHERE B.k = A.k)",
    "SELECT k FROM A EXCEPT SELECT k FROM B",
    "SELECT k, v FROM A UNION ALL SELECT k, v FROM B EMIT CHANGES",
    "SELECT n, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k) q GROUP BY n",
    "SELECT k, v FROM A ORDER BY v DESC, k LIMIT 2",
)

ROW = st.tuples(
    st.integers(0, 2),
    st.integers(0, 3),
    st.integers(0, 12) | st.none(),
    st.integers(-1, 6) | st.none(),
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows with a key, a value, a start and a length in seconds; either may be missing."""
    made = [
        {
            "k": k,
            "v": v,
            "b": None if b is None else b * SECOND,
            "e": None if b is None or length is None else (b + length) * SECOND,
        }
        for k, v, b, length in rows
    ]
    return pa.Table.from_pylist(made, SCHEMA)


def alive(rows: pa.Table, instant: int) -> pa.Table:
    """The rows that count at an instant, by the definition."""
    kept = []
    for row in rows.to_pylist():
        b, e = (None if one is None else micros(one) for one in (row["b"], row["e"]))
        if b is not None and e is not None and b <= instant < e:
            kept.append(row)
    return pa.Table.from_pylist(kept, SCHEMA)


def instants_around(*tables: pa.Table) -> list[int]:
    """Instants at which something may change, and those just before."""
    columns = [column for rows in tables for column in (rows["b"], rows["e"])]
    known = {micros(one) for column in columns for one in column.to_pylist() if one is not None}
    return sorted({0, *known, *(one - 1 for one in known)})


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def folded(changes: pa.Table, instant: int) -> Counter[tuple[Any, ...]]:
    """The answer at an instant."""
    names = [name for name in changes.column_names if name not in ("_time", "_diff")]
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in changes.to_pylist():
        if micros(row["_time"]) <= instant:
            counts[tuple(row[name] for name in names)] += row["_diff"]
    assert min(counts.values(), default=0) >= 0
    return +counts


def expected(query: str, a: pa.Table, b: pa.Table, instant: int) -> Counter[tuple[Any, ...]]:
    ORACLE.register("A", alive(a, instant))
    ORACLE.register("B", alive(b, instant))
    return Counter(ORACLE.execute(query.replace(" EMIT CHANGES", "")).fetchall())


def database(a: pa.Table, b: pa.Table, execution: str, buckets: int) -> LocalDatabase:
    db = LocalDatabase(buckets, execution)
    db.create_stream("A", a, time=("b", "e"))
    db.create_stream("B", b, time=("b", "e"))
    return db


@pytest.mark.parametrize("query", QUERIES)
@settings(max_examples=8)
@given(
    a=st.lists(ROW, max_size=8),
    b=st.lists(ROW, max_size=5),
    execution=st.sampled_from(["auto", "ita", "tpa", "nta"]),
    buckets=st.integers(1, 3),
)
def test_the_answer_is_that_of_the_rows_that_count(
    query: str, a: list[Any], b: list[Any], execution: str, buckets: int
) -> None:
    rows, others = table(a), table(b)
    changes = database(rows, others, execution, buckets).sql(query)
    for instant in instants_around(rows, others):
        assert folded(changes, instant) == expected(query, rows, others, instant), instant


@settings(max_examples=30)
@given(a=st.lists(ROW, max_size=10), cuts=st.lists(st.integers(0, 10), max_size=3))
def test_streamed_is_batch_before_the_last_watermark(a: list[Any], cuts: list[int]) -> None:
    query = "SELECT k, COUNT(*) AS n FROM A GROUP BY k"
    ordered = sorted(a, key=lambda row: -1 if row[2] is None else row[2])
    rows, db = table(ordered), database(table([]), table([]), "auto", 2)
    running = db.query(query)
    places = sorted({0, *(min(cut, len(rows)) for cut in cuts), len(rows)})
    emitted = [running.feed({"A": part}) for part in _parts(rows, places)]
    batch = database(rows, table([]), "auto", 2).sql(query)
    starts = [b * SECOND for _, _, b, length in a if b is not None and (length or -1) >= 0]
    watermark = max(starts, default=-1)
    changes = pa.concat_tables([*(one for one in emitted), batch.slice(0, 0)])
    for instant in range(-1, min(watermark, 14 * SECOND), SECOND // 2):
        assert folded(changes, instant) == folded(batch, instant)


def _parts(rows: pa.Table, places: list[int]) -> list[pa.RecordBatch]:
    return [
        rows.slice(start, end - start).combine_chunks().to_batches()[0]
        for start, end in pairwise(places)
        if end > start
    ]


@pytest.mark.parametrize("window", ["[RANGE 1 MINUTE]", "[ROWS 2]", "[UNBOUNDED]"])
def test_such_a_stream_has_no_window(window: str) -> None:
    db = database(table([]), table([]), "auto", 1)
    with pytest.raises(SqlError) as refused:
        db.sql(f"SELECT k, COUNT(*) AS n FROM A {window} GROUP BY k")
    assert refused.value.message == "A cannot have a window"
    assert refused.value.detail == "its rows are valid from b to e"
    assert refused.value.hint == "leave the window out"


def test_rows_that_are_appended_come_at_their_start() -> None:
    db = database(table([(1, 1, 0, 5), (1, 2, 3, 0)]), table([(1, 7, 4, 1)]), "auto", 1)
    answer = db.sql("SELECT A.v, B.v AS w FROM A, B WINDOW(A, B) = 2 SECONDS WHERE A.k = B.k")
    assert answer.to_pydict()["v"] == [2]
    plan = db.sql("EXPLAIN SELECT COUNT(*) AS n FROM A")["plan"][0].as_py()
    assert "kept until e" in plan


def declared(columns: str) -> StreamDef:
    read = read_one(f"CREATE STREAM s ({columns}) FROM synthetic")
    assert isinstance(read, CreateStream)
    return read.stream


def test_two_columns_are_declared() -> None:
    stream = declared("v INT, b TIMESTAMP, e TIMESTAMP, TIME (b, E), LATENESS 5 SECONDS")
    assert (stream.time, stream.end, stream.lateness) == ("b", "e", 5_000_000)
    assert declared("time TIMESTAMP, e TIMESTAMP, TIME time").end is None


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("b TIMESTAMP, TIME (b)", "expected , and the column that holds the end"),
        ("b TIMESTAMP, e INT, TIME (b, e)", "the time column must be of type TIMESTAMP"),
        ("b TIMESTAMP, TIME (b, e)", "TIME names e, which is not a column"),
        ("b TIMESTAMP, TIME (b, b)", "b cannot be both the start and the end of a row"),
        ("b TIMESTAMP, e TIMESTAMP, TIME (b, e), TIME b", "TIME is given twice"),
    ],
)
def test_declarations_that_are_refused(columns: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        declared(columns)
    assert refused.value.message == message


def test_ends_are_kept_and_shown(catalog_url: str) -> None:
    with SensorCatalog.open(catalog_url) as catalog:
        execute(
            catalog,
            read_one(  # type: ignore[arg-type]
                "CREATE SENSOR TABLE n (id INT, r STREAM(b TIMESTAMP, e TIMESTAMP, TIME (b, e)) "
                "FROM synthetic)"
            ),
        )
    with SensorCatalog.open(catalog_url) as catalog:
        kept = catalog.require_declaration("n")
        assert (kept.time, kept.end) == ("b", "e")
        shown = execute(catalog, read_one("DESCRIBE n")).rows  # type: ignore[arg-type]
        assert shown is not None
        assert [one["role"] for one in shown.to_pylist()] == ["static", "time", "end"]


def test_readings_that_end_before_they_begin_are_refused() -> None:
    readings = pa.schema([("b", INSTANT), ("e", INSTANT)])
    builder = RowBuilder(Declaration("S", readings, "x", time="b", end="e"))
    values = [(5, 6), (5, 5), (5, 4), (5, None), (None, 6)]
    refused = {2: "ends before it begins", 3: "has no end"}
    assert builder.from_values(values).refused == refused
    seconds = [[None if one is None else one * SECOND for one in row] for row in values]
    columns = [pa.array(column, INSTANT) for column in zip(*seconds, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, schema=readings)
    assert builder.from_batch(batch).refused == refused
