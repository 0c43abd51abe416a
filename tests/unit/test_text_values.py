"""Values as text, against what Python and its JSON say of them."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from nilometer.kernels.text_values import json_objects, json_texts, text_values


@given(st.lists(st.none() | st.floats()))
def test_floats_are_read_as_what_they_were(values: list[float | None]) -> None:
    for value, text in zip(values, text_values(pa.array(values, pa.float64())), strict=True):
        if value is None:
            assert text.as_py() is None
            continue
        spelled = text.as_py()
        read = float(spelled.replace("Infinity", "inf"))
        assert read == value or (math.isnan(read) and math.isnan(value))
        if math.isfinite(value):
            assert "." in spelled
            assert ("E" in spelled) == (value != 0 and not 1e-3 <= abs(value) < 1e7)
            digits = spelled.partition("E")[0].lstrip("-0.").replace(".", "").rstrip("0")
            assert len(digits) <= len(repr(value).partition("e")[0].replace(".", "").lstrip("-0"))


def test_the_usual_values_look_as_they_do_in_spark() -> None:
    for values, kind, expected in [
        ([1.0, 1e7, 1e-4, 0.1 + 0.2], pa.float64(), ["1.0", "1.0E7", "1.0E-4", None]),
        ([0.1, 1e10], pa.float32(), ["0.1", "1.0E10"]),
        ([True, False], pa.bool_(), ["true", "false"]),
        ([Decimal("0.0000001")], pa.decimal128(10, 7), ["0.0000001"]),
        ([date(2026, 1, 31)], pa.date32(), ["2026-01-31"]),
        ([b"ab"], pa.binary(), ["YWI="]),
        ([90_000_000_001], pa.duration("us"), ["INTERVAL '1 01:00:00.000001' DAY TO SECOND"]),
        ([-300], pa.duration("s"), ["INTERVAL '-0 00:05:00' DAY TO SECOND"]),
        ([[1, None], []], pa.list_(pa.int64()), ["[1,null]", "[]"]),
        ([{"a": 'x"', "b": 1.5}], pa.struct({"a": "str", "b": "f8"}), ['{"a":"x\\"","b":1.5}']),
        ([[("k", None)]], pa.map_(pa.string(), pa.int8()), ['{"k":null}']),
    ]:
        texts = text_values(pa.array([*values, None], kind)).to_pylist()
        assert texts[-1] is None
        wanted = [one or "0.30000000000000004" for one in expected]
        assert texts[:-1] == wanted


@given(st.lists(st.none() | st.datetimes(datetime(1700, 1, 1), datetime(9999, 1, 1))))
def test_times(values: list[datetime | None]) -> None:
    column = pa.array([None if v is None else v.replace(tzinfo=UTC) for v in values])
    column = column.cast(pa.timestamp("us", "UTC"))
    for value, plain, zoned, full in zip(
        values,
        text_values(column).to_pylist(),
        text_values(column, zoned=True).to_pylist(),
        json_texts(column).to_pylist(),
        strict=True,
    ):
        if value is None:
            assert (plain, zoned, full) == (None, None, "null")
            continue
        assert datetime.fromisoformat(plain) == value
        assert not plain.endswith(".")
        assert "." not in plain or not plain.endswith("0")
        assert zoned == f"{plain.replace(' ', 'T')}Z"
        assert full == f'"{value.isoformat(timespec="microseconds")}Z"'


@given(st.lists(st.none() | st.text()), st.text())
def test_objects_are_json(values: list[str | None], name: str) -> None:
    nested = [None if v is None else [{"f": v, "g": None}] for v in values]
    kind = pa.list_(pa.struct({"f": pa.string(), "g": pa.int64()}))
    columns = [pa.array(values, pa.string()), pa.array(nested, kind)]
    lines = json_objects([name, "n"], columns, len(values)).to_pylist()
    objects = [json.loads(line, object_pairs_hook=list) for line in lines]
    expected = [
        [(name, v), ("n", None if v is None else [[("f", v), ("g", None)]])] for v in values
    ]
    assert objects == expected
