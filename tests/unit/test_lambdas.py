"""Lambdas over arrays and maps, of generated values, against plain Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase

Items = list[int | None] | None
numbers = st.none() | st.integers(-5, 5)
arrays = st.none() | st.lists(numbers, max_size=4)
maps = st.none() | st.dictionaries(st.sampled_from("abc"), numbers, max_size=3)
ROWS = st.lists(st.tuples(st.integers(-3, 3), arrays, arrays, maps), min_size=1, max_size=6)


def plus(*values: int | None) -> int | None:
    return None if None in values else sum(v for v in values if v is not None)


def some(tests: list[bool | None]) -> bool | None:
    return True if True in tests else None if None in tests else False


def above(value: int | None, least: int) -> bool | None:
    return None if value is None else value > least


def of(function: Callable[[list[int | None]], Any]) -> Callable[..., Any]:
    return lambda k, a, b, m: None if a is None else function(a)


def zipped(k: int, a: Items, b: Items, m: object) -> Any:
    if a is None or b is None:
        return None
    size = max(len(a), len(b))
    padded = [[*one, *[None] * (size - len(one))] for one in (a, b)]
    return [plus(x, y, k) for x, y in zip(*padded, strict=True)]


def opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


CASES: dict[str, Callable[..., Any]] = {
    "transform(a, x -> x + k)": lambda k, a, b, m: a and [plus(x, k) for x in a],
    "transform(a, (x, i) -> x + i)": of(lambda a: [plus(x, i) for i, x in enumerate(a)]),
    "transform(a, x -> aggregate(b, 0, (s, y) -> s + y + x))": lambda k, a, b, m: (
        None
        if a is None
        else [
            None if b is None else reduce(lambda s, y, x=x: plus(s, y, x), b, 0)  # type: ignore[misc]
            for x in a
        ]
    ),
    "filter(a, x -> x > 0)": of(lambda a: [x for x in a if above(x, 0)]),
    "filter(a, (x, i) -> i % 2 = 1)": of(lambda a: a[1::2]),
    "exists(a, x -> x > 1)": of(lambda a: some([above(x, 1) for x in a])),
    "forall(a, x -> NOT x > 1)": of(lambda a: opposite(some([above(x, 1) for x in a]))),
    "zip_with(a, b, (x, y) -> x + y + k)": zipped,
    "aggregate(a, 10, (s, x) -> s + coalesce(x, 0), s -> s * 2)": of(
        lambda a: 2 * (10 + sum(x or 0 for x in a))
    ),
    "map_filter(m, (n, v) -> v > k)": lambda k, a, b, m: (
        None if m is None else [(n, v) for n, v in m.items() if above(v, k)]
    ),
    "transform_values(m, (n, v) -> v + k)": lambda k, a, b, m: (
        None if m is None else [(n, plus(v, k)) for n, v in m.items()]
    ),
    "transform_keys(m, (n, v) -> upper(n))": lambda k, a, b, m: (
        None if m is None else [(n.upper(), v) for n, v in m.items()]
    ),
    "map_from_entries(map_entries(m))": lambda k, a, b, m: None if m is None else [*m.items()],
    "map_concat(m, map('z', k))": lambda k, a, b, m: None if m is None else [*m.items(), ("z", k)],
}


def asked(expression: str, rows: list[tuple[Any, ...]]) -> list[Any]:
    ids, *columns = zip(*((number, *row) for number, row in enumerate(rows)), strict=True)
    kinds = [pa.int32(), pa.list_(pa.int32()), pa.list_(pa.int32())]
    given_columns = [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=False)]
    entries = [None if one is None else list(one.items()) for one in columns[3]]
    given_columns.append(pa.array(entries, pa.map_(pa.string(), pa.int32())))
    db = LocalDatabase()
    names = ["id", "k", "a", "b", "m"]
    db.create_table("T", pa.table([pa.array(ids), *given_columns], names=names))
    answer = db.sql(f"SELECT id, {expression} AS f FROM T").to_pylist()
    return [row["f"] for row in sorted(answer, key=lambda row: int(row["id"]))]


@pytest.mark.parametrize("expression", CASES)
@given(ROWS)
@settings(max_examples=30, deadline=None)
def test_items_are_asked_one_by_one(expression: str, rows: list[tuple[Any, ...]]) -> None:
    assert asked(expression, rows) == [CASES[expression](*row) for row in rows]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("map('a', k, 'a', k)", "a map has the same key twice"),
        ("map(CAST(NULL AS STRING), k)", "a key of a map is NULL"),
        ("map_from_arrays(array(1, 2), array(1))", "as many keys as values"),
        ("transform_keys(m, (n, v) -> 'x')", "a map has the same key twice"),
        ("transform(a, (x, y, z) -> x)", "TRANSFORM"),
        ("transform(a, x -> y)", "there is no column y"),
        ("aggregate(a, 0, (s, x) -> s + 0.5)", "AGGREGATE|Spark"),
    ],
)
def test_what_cannot_be_is_an_error(expression: str, message: str) -> None:
    with pytest.raises(NilometerError, match=message):
        asked(expression, [(1, [1], [2], {"a": 1, "b": 2})])
