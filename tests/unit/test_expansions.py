"""The items of arrays as rows, and rows that a statement brings along, beside DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nilometer as nm
from nilometer.errors import NilometerError
from nilometer.kernels.expand_arrays import expand_arrays
from nilometer.local.database import LocalDatabase
from tests.duck import connect

SECOND = 1_000_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("k", pa.int64()),
        ("a", pa.list_(pa.int64())),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)
Row = tuple[int, int | None, list[int | None] | None, list[tuple[str, int | None]] | None]

items = st.none() | st.integers(-3, 3)
maps = st.dictionaries(st.sampled_from("abc"), items, max_size=3).map(lambda one: list(one.items()))
rows = st.lists(
    st.tuples(
        st.integers(0, 12).map(lambda second: second * SECOND),
        items,
        st.none() | st.lists(items, max_size=4),
        st.none() | maps,
    ),
    max_size=12,
)
cuts = st.lists(st.integers(0, 12), max_size=3)

APPENDED = {
    "SELECT k, x FROM S, UNNEST(a) AS u(x)": "SELECT k, unnest(a) FROM S",
    "SELECT k, explode(a) AS x FROM S WHERE k > 0": "SELECT k, unnest(a) FROM S WHERE k > 0",
    "SELECT k, x FROM S LEFT JOIN UNNEST(a) AS u(x) ON TRUE": (
        "SELECT k, unnest(CASE WHEN len(a) > 0 THEN a ELSE [NULL] END) FROM S"
    ),
    "SELECT k, i, x FROM S LATERAL VIEW OUTER posexplode(a) e AS i, x": (
        "SELECT k, unnest(CASE WHEN len(a) > 0 THEN range(len(a)) ELSE [NULL] END), "
        "unnest(CASE WHEN len(a) > 0 THEN a ELSE [NULL] END) FROM S"
    ),
    "SELECT k, key, value FROM S, LATERAL explode(m)": (
        "SELECT k, unnest(map_keys(m)), unnest(map_values(m)) FROM S"
    ),
    "SELECT k, x, y FROM S, UNNEST(a) u(x), UNNEST(array(x, k, NULL)) v(y) WHERE y IS NOT NULL": (
        "SELECT * FROM (SELECT k, x, unnest([x, k, NULL]) AS y FROM "
        "(SELECT k, unnest(a) AS x FROM S)) WHERE y IS NOT NULL"
    ),
    "SELECT q.x, t.name FROM (SELECT x FROM S, UNNEST(a) u(x)) q "
    "JOIN (VALUES (1, 'one'), (2, 'two'), (NULL, 'none')) t(n, name) ON q.x = t.n": (
        "SELECT q.x, t.name FROM (SELECT unnest(a) AS x FROM S) q "
        "JOIN (VALUES (1, 'one'), (2, 'two'), (NULL, 'none')) t(n, name) ON q.x = t.n"
    ),
}
CHANGING = {
    "SELECT x, COUNT(*) AS n FROM S [RANGE 3 SECONDS], UNNEST(a) u(x) GROUP BY x": (
        "SELECT x, count(*) FROM (SELECT unnest(a) AS x FROM {S}) GROUP BY x"
    ),
    "SELECT DISTINCT key FROM S [RANGE 3 SECONDS], LATERAL explode(m)": (
        "SELECT DISTINCT unnest(map_keys(m)) FROM {S}"
    ),
    "SELECT k, x, name FROM S [RANGE 3 SECONDS], UNNEST(a) u(x) "
    "LEFT JOIN (VALUES (1, 'one'), (2, 'two')) t(n, name) ON u.x = t.n": (
        "SELECT k, x, name FROM (SELECT k, unnest(a) AS x FROM {S}) "
        "LEFT JOIN (VALUES (1, 'one'), (2, 'two')) t(n, name) ON x = t.n"
    ),
    "SELECT t.n, (SELECT COUNT(*) FROM S [RANGE 3 SECONDS], UNNEST(a) u(x) WHERE x = t.n) AS c "
    "FROM (VALUES (1), (2)) t(n)": (
        "SELECT t.n, (SELECT count(*) FROM (SELECT unnest(a) AS x FROM {S}) WHERE x = t.n) "
        "FROM (VALUES (1), (2)) t(n)"
    ),
    "SELECT k FROM S [RANGE 3 SECONDS] WHERE k IN (VALUES (1), (2))": (
        "SELECT k FROM {S} WHERE k IN (1, 2)"
    ),
}


def to_batch(given_rows: Sequence[Row]) -> pa.RecordBatch:
    columns = list(zip(*given_rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def judge(sql: str, given_rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    connection = connect()
    connection.register("S", pa.Table.from_batches([to_batch(given_rows)]))
    return Counter(connection.execute(sql.format(S="S")).fetchall())


def streamed(
    statement: str, given_rows: Sequence[Row], places: Sequence[int], buckets: int
) -> pa.Table:
    """What micro-batches bring, with a restart between them."""
    db = LocalDatabase(buckets)
    db.create_stream("S", pa.Table.from_batches([to_batch([])]), time="ts")
    query, parts = db.query(statement), []
    ends = [0, *sorted(min(one, len(given_rows)) for one in places), len(given_rows)]
    for number, end in enumerate(ends[1:]):
        parts.append(query.feed({"S": to_batch(given_rows[ends[number] : end])}))
        query.restart()
    parts.append(query.feed({"S": to_batch([(100 * SECOND, None, None, None)])}))
    return pa.concat_tables(parts)


def values_of(table: pa.Table) -> list[tuple[Any, ...]]:
    hidden = [name for name in ("_time", "_diff") if name in table.column_names]
    shown = table.drop_columns(hidden)
    return list(zip(*(column.to_pylist() for column in shown.columns), strict=True))


@pytest.mark.parametrize("statement", APPENDED)
@given(rows, cuts, st.integers(1, 3))
@settings(max_examples=20)
def test_what_is_appended(
    statement: str, given_rows: list[Row], places: list[int], buckets: int
) -> None:
    ordered = sorted(given_rows, key=lambda row: row[0])
    right = judge(APPENDED[statement], ordered)
    db = LocalDatabase(buckets)
    db.create_stream("S", pa.Table.from_batches([to_batch(ordered)]), time="ts")
    assert Counter(values_of(db.sql(statement))) == right
    outer = streamed(statement, [], [], buckets)  # the row that comes last
    appended = Counter(values_of(streamed(statement, ordered, places, buckets)))
    assert appended - Counter(values_of(outer)) == right


@pytest.mark.parametrize("statement", CHANGING)
@given(rows, cuts, st.integers(1, 3))
@settings(max_examples=12)
def test_at_every_instant(
    statement: str, given_rows: list[Row], places: list[int], buckets: int
) -> None:
    ordered = sorted(given_rows, key=lambda row: row[0])
    changes = streamed(statement, ordered, places, buckets)
    times = changes["_time"].cast(pa.int64()).to_pylist()
    emitted = list(zip(values_of(changes), times, changes["_diff"].to_pylist(), strict=True))
    for second in range(16):
        at = second * SECOND
        folded: Counter[tuple[Any, ...]] = Counter()
        for row, time, diff in emitted:
            if time <= at:
                folded[row] += diff
        recent = [row for row in ordered if at - 3 * SECOND <= row[0] <= at]
        assert +folded == judge(CHANGING[statement], recent), second


@given(st.lists(st.none() | st.lists(items, max_size=3), max_size=6), st.integers(0, 6))
def test_slices_of_arrays_are_expanded_alike(
    arrays: list[list[int | None] | None], at: int
) -> None:
    whole = pa.array(arrays, pa.list_(pa.int64()))
    numbers = pa.array(range(len(arrays)))
    columns = [c.to_pylist() for c in expand_arrays([numbers.slice(at)], whole.slice(at))]
    expected = [
        (number, place, item)
        for number, own in list(enumerate(arrays))[at:]
        for place, item in (enumerate(own) if own else [(None, None)])
    ]
    assert list(zip(*columns, strict=True)) == expected


@pytest.mark.parametrize(
    ("statement", "right"),
    [
        ("SELECT 1 + 1 AS x, 'a' AS s", [(2, "a")]),
        ("SELECT 1 AS x WHERE 1 > 2", []),
        ("SELECT count(*) AS n", [(1,)]),
        ("VALUES (3, 'c'), (1, NULL) ORDER BY col1", [(1, None), (3, "c")]),
        ("SELECT x FROM UNNEST(sequence(1, 5)) u(x) WHERE x > 3", [(4,), (5,)]),
        ("SELECT sum(n) AS s FROM (VALUES (1), (2.5)) t(n)", [(3.5,)]),
        ("WITH v(n) AS (VALUES (1), (2)) SELECT max(n) AS m FROM v", [(2,)]),
        ("SELECT (SELECT max(n) FROM (VALUES (1), (2)) t(n)) AS m", [(2,)]),
        ("SELECT 1 AS x UNION SELECT 1 UNION ALL SELECT 2", [(1,), (2,)]),
        ("SELECT EXISTS (SELECT 1 FROM (VALUES (1)) t(n) WHERE n > 1) AS e", [(False,)]),
    ],
)
def test_without_streams(statement: str, right: list[tuple[Any, ...]]) -> None:
    answer = nm.connect().sql(statement)
    assert sorted(values_of(answer), key=repr) == right


def test_columns_of_values_are_named_as_spark_names_them() -> None:
    assert nm.connect().sql("VALUES (1, 2)").column_names == ["col1", "col2"]
    with pytest.raises(NilometerError, match="there is no column x"):
        nm.connect().sql("SELECT x")


def test_a_row_is_not_made_into_millions() -> None:
    for array in (
        "sequence(1, 1000)",
        f"array({', '.join('1' * 300)})",
        "split('a" + "-" * 300 + "', '-')",
    ):
        made = ", ".join(f"UNNEST({array}) u{number}(x{number})" for number in range(3))
        with pytest.raises(NilometerError, match="could expand into more than 1,000,000 rows"):
            nm.connect().sql(f"SELECT x0 FROM {made}")


def test_no_name_stands_in_the_way_of_another() -> None:
    """Columns with the names under which items travel, and one alias on two levels."""
    db = nm.connect()
    rows = {"ts": pa.array([0], pa.timestamp("us", "UTC")), "a": [[1, 2]], "b": [[10]]}
    db.create_stream("S", pa.table({**rows, "u.item": [7], "U.NUMBER": [8]}), time="ts")
    for statement, right in {
        "SELECT x, `u.item`, `U.NUMBER` FROM S, UNNEST(a) u(x)": [(1, 7, 8), (2, 7, 8)],
        "SELECT x, y FROM (SELECT x, b FROM S, UNNEST(a) u(x)) q, UNNEST(q.b) u(y)": [
            (1, 10),
            (2, 10),
        ],
    }.items():
        assert sorted(values_of(db.sql(statement))) == right
    for statement in ("SELECT *, explode(a) AS x FROM S", "SELECT explode(a) AS x, * FROM S"):
        answer = db.sql(statement)
        assert answer.column_names.count("x") == 1
        assert answer["x"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT *, explode(a) FROM S", "needs an alias"),
        ("SELECT x FROM S, UNNEST(a) u(x) [RANGE 5 SECONDS]", "the window of the row"),
        ("VALUES ()", "at least one value"),
    ],
)
def test_what_cannot_be_is_said(statement: str, message: str) -> None:
    db = LocalDatabase()
    db.create_stream("S", pa.Table.from_batches([to_batch([])]), time="ts")
    with pytest.raises(NilometerError, match=message):
        db.sql(statement)
