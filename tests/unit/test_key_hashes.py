"""Hashes of keys and the equality of rows, for every type that can be a key."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels.equality import equal_rows
from nilometer.kernels.key_hashes import hash_rows, is_exact, key_hashes, mix

FLOATS = [0.0, -0.0, 1.5, -1.5, math.nan, -math.nan, math.inf, -math.inf, 5e-324]
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "byte": (pa.int8(), [0, 1, -128, 127]),
    "short": (pa.int16(), [0, 1, -1, 32767]),
    "int": (pa.int32(), [0, 1, -1, 2**31 - 1]),
    "long": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63)]),
    "float": (pa.float32(), FLOATS[:8]),
    "double": (pa.float64(), FLOATS),
    "date": (pa.date32(), [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31)]),
    "timestamp": (pa.timestamp("us", tz="UTC"), [datetime(1970, 1, 1), datetime(2026, 1, 1, 1)]),
    "interval": (pa.duration("us"), [timedelta(0), timedelta(days=-3)]),
    "small decimal": (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("-1.25"), Decimal("1.25")]),
    "large decimal": (
        pa.decimal128(38, 3),
        [Decimal("0"), Decimal(10) ** 30, -(Decimal(10) ** 30)],
    ),
    "string": (pa.string(), ["", "a", "b", "ab", "ä", "aaaaaaaa", "aaaaaaaab", "x" * 100]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\0", b"abc"]),
    "array": (pa.list_(pa.int32()), [[], [1], [1, 2], [None], [2, 1], [1, None]]),
    "nested array": (pa.list_(pa.list_(pa.string())), [[], [[]], [["a"], ["b"]], [["a", "b"]]]),
    "map": (pa.map_(pa.string(), pa.int32()), [[], [("a", 1)], [("a", None)], [("b", 1)]]),
    "struct": (
        pa.struct([("x", pa.float64()), ("y", pa.string())]),
        [{"x": 0.0, "y": "a"}, {"x": -0.0, "y": "a"}, {"x": None, "y": "a"}, {"x": 1.0, "y": None}],
    ),
}


def same(a: Any, b: Any) -> bool:
    """Spark's equality of two values."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return all(same(a[name], b[name]) for name in a)
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return (a is None) == (b is None) and a == b


@pytest.mark.parametrize("name", sorted(set(TYPES) - {"map"}))
def test_equal_values_have_equal_hashes_and_others_differ(name: str) -> None:
    kind, values = TYPES[name]
    values = [*values, None]
    left = pa.array([a for a in values for _ in values], kind)
    right = pa.array([b for _ in values for b in values], kind)
    expected = [same(a, b) for a in values for b in values]
    assert equal_rows(left, right).tolist() == expected
    hashes = hash_rows([left]) == hash_rows([right])
    assert hashes.tolist() == expected


@pytest.mark.parametrize("name", TYPES)
def test_a_slice_hashes_like_its_rows(name: str) -> None:
    kind, values = TYPES[name]
    column = pa.array([*values, None, *values], kind)
    sliced = column.slice(len(values) // 2, len(values) + 1)
    copied = pa.array(sliced.to_pylist(), kind)
    assert hash_rows([sliced]).tolist() == hash_rows([copied]).tolist()
    if name != "map":  # a map is never a key
        assert equal_rows(sliced, copied).all()


def test_the_order_and_the_number_of_columns_matter() -> None:
    a, b = pa.array([1, 2, 3]), pa.array([2, 1, 3])
    forward, backward = hash_rows([a, b]), hash_rows([b, a])
    assert (forward == backward).tolist() == [False, False, True]
    assert not (hash_rows([a]) == hash_rows([a, a])).any()


def test_borders_between_strings_matter() -> None:
    left = hash_rows([pa.array(["ab", "a"]), pa.array(["c", "bc"])])
    assert left[0] != left[1]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50, unique=True))
def test_different_words_have_different_hashes(words: list[int]) -> None:
    assert len(set(mix(np.array(words, dtype=np.int64)).tolist())) == len(words)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.text(max_size=12), st.integers(0, 3)), min_size=2, max_size=30))
def test_strings_and_numbers_together(rows: list[tuple[str, int]]) -> None:
    texts, numbers = zip(*rows, strict=True)
    hashes = key_hashes([pa.array(texts), pa.array(numbers)]).tolist()
    by_row = dict(zip(rows, hashes, strict=True))
    assert [by_row[row] for row in rows] == hashes
    assert len(set(hashes)) == len(set(rows))


def test_hashes_fill_all_buckets_evenly() -> None:
    for column in (pa.array(np.arange(10_000)), pa.array([f"sensor-{i}" for i in range(10_000)])):
        hashes = key_hashes([column])
        for counts in (np.bincount(hashes % np.uint64(7)), np.bincount(hashes >> np.uint64(61))):
            assert counts.max() < 1.2 * counts.mean()


def test_only_hashes_of_single_words_are_exact() -> None:
    assert is_exact([pa.int64()])
    assert is_exact([pa.float64()])
    assert not is_exact([pa.string()])
    assert not is_exact([pa.int64(), pa.int64()])
