"""Values that sensors send, in the types that were declared."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.kernels.read_times import SECONDS
from nilometer.log.layout import SENSOR, TIME, TIMESTAMP
from nilometer.model.time_forms import EpochTimes, EpochUnit
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.manager import fit_values as fitting
from nilometer.sensors.manager.build_rows import NO_TIME, RowBuilder
from nilometer.sensors.manager.fit_values import fit_array, fit_values

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)

TAKEN = [
    (pa.float64(), 21.5, 21.5),
    (pa.float64(), 3, 3.0),
    (pa.float64(), Decimal("0.5"), 0.5),
    (pa.float32(), 0.25, 0.25),
    (pa.float32(), math.inf, math.inf),
    (pa.int8(), -128, -128),
    (pa.int32(), 3.0, 3),
    (pa.int64(), 2**62, 2**62),
    (pa.string(), "21.5", "21.5"),
    (pa.bool_(), True, True),
    (pa.binary(), b"\xff", b"\xff"),
    (pa.date32(), "2026-01-01", date(2026, 1, 1)),
    (pa.date32(), date(2026, 1, 1), date(2026, 1, 1)),
    (TIMESTAMP, "2026-01-01T00:00:00Z", NEW_YEAR),
    (TIMESTAMP, "2026-01-01T01:00:00+01:00", NEW_YEAR),
    (TIMESTAMP, "2026-01-01 00:00:00", NEW_YEAR),
    (TIMESTAMP, NEW_YEAR, NEW_YEAR),
    (TIMESTAMP, int(NEW_YEAR.timestamp()), NEW_YEAR),
    (TIMESTAMP, NEW_YEAR.timestamp() + 0.5, NEW_YEAR.replace(microsecond=500_000)),
    (pa.decimal128(5, 2), 1.25, Decimal("1.25")),
    (pa.decimal128(5, 2), 7, Decimal("7.00")),
    (pa.decimal128(5, 2), Decimal("0.1"), Decimal("0.10")),
]
REFUSED = [
    (pa.float64(), "21.5", "not a number: '21.5'"),
    (pa.float64(), True, "not a number: True"),
    (pa.float64(), {"a": 1}, "not a number: {'a': 1}"),
    (pa.float32(), 1e300, "too large for FLOAT: 1e+300"),
    (pa.int8(), 128, "does not fit INT8: 128"),
    (pa.int32(), 3.5, "not a whole number: 3.5"),
    (pa.int32(), "3", "not a whole number: '3'"),
    (pa.int64(), 2**63, "does not fit INT64: 9223372036854775808"),
    (pa.string(), 5, "not text: 5"),
    (pa.string(), "\ud800", "does not fit STRING: '\\ud800'"),
    (pa.bool_(), 1, "not true or false: 1"),
    (pa.binary(), "x", "not bytes: 'x'"),
    (pa.date32(), "yesterday", "not an ISO 8601 date: 'yesterday'"),
    (pa.date32(), 5, "not a date: 5"),
    (TIMESTAMP, "noon", "not an ISO 8601 time: 'noon'"),
    (TIMESTAMP, "1700000000", "not an ISO 8601 time: '1700000000'"),
    (TIMESTAMP, math.nan, "not a time: nan"),
    (TIMESTAMP, False, "not a time: False"),
    (pa.decimal128(5, 2), 1.255, "does not fit DECIMAL128(5, 2): 1.255"),
    (pa.decimal128(5, 2), 1000, "does not fit DECIMAL128(5, 2): 1000"),
    (pa.decimal128(5, 2), "1", "not a number: '1'"),
    (pa.string(), ["x" * 100], f"not text: ['{'x' * 57}…"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), TAKEN)
def test_values_that_fit(kind: pa.DataType, value: Any, expected: Any) -> None:
    fitted, refused = fit_values([value, None], kind, SECONDS)
    assert (fitted.type, fitted.to_pylist(), refused) == (kind, [expected, None], {})


@pytest.mark.parametrize(("kind", "value", "reason"), REFUSED)
def test_values_that_do_not_fit_leave_the_others_alone(
    kind: pa.DataType, value: Any, reason: str
) -> None:
    good, expected = next((one, shown) for held, one, shown in TAKEN if held == kind)
    fitted, refused = fit_values([good, value, good], kind, SECONDS)
    assert fitted.to_pylist() == [expected, None, expected]
    assert refused == {1: reason}


ARRAYS = pa.list_(pa.int32())


def test_arrays_that_fit() -> None:
    given = [[1, 2], None, [], (3.0, None), np.array([4, 5])]
    fitted, refused = fit_values(given, ARRAYS, SECONDS)
    assert fitted.to_pylist() == [[1, 2], None, [], [3, None], [4, 5]]
    assert (fitted.type, refused) == (ARRAYS, {})
    wide = pa.array([[1, 2], None, [3]], pa.list_(pa.int64()))
    assert fit_array(wide, ARRAYS, SECONDS)[0].to_pylist() == [[1, 2], None, [3]]


def test_an_array_with_an_item_that_does_not_fit_is_refused_and_no_other() -> None:
    given = [[1], [2, "x", 2.5], 7, "12", [3], [2**31]]
    expected = {
        1: "item 2: not a whole number: 'x'",
        2: "not an array: 7",
        3: "not an array: '12'",
        5: "item 1: does not fit INT32: 2147483648",
    }
    fitted, refused = fit_values(given, ARRAYS, SECONDS)
    assert fitted.to_pylist() == [[1], None, None, None, [3], None]
    assert refused == expected
    wide = pa.array([[1], [2**31]], pa.list_(pa.int64()))
    assert fit_array(wide, ARRAYS, SECONDS)[1] == {1: expected[5]}


anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3)
)


@given(st.lists(anything, max_size=6), st.sampled_from([held for held, _, _ in TAKEN]))
def test_all_at_once_is_one_by_one(values: list[Any], kind: pa.DataType) -> None:
    together = fit_values(values, kind, SECONDS)
    alone = fitting._fit_each(values, kind, SECONDS)
    assert together[1] == alone[1]
    assert together[0].equals(alone[0]) or _nan_free(together[0]) == _nan_free(alone[0])


def _nan_free(column: pa.Array) -> list[Any]:
    values = column.to_pylist()
    return ["nan" if isinstance(one, float) and math.isnan(one) else one for one in values]


@given(
    st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=6),
    st.sampled_from([pa.int8(), pa.int64(), pa.float64(), pa.float32(), pa.string(), TIMESTAMP]),
)
def test_a_column_of_a_record_batch_is_its_values(values: list[int], kind: pa.DataType) -> None:
    fitted, refused = fit_array(pa.array(values, pa.int32()), kind, SECONDS)
    expected, expected_refused = fit_values(values, kind, SECONDS)
    assert refused == expected_refused
    assert fitted.equals(expected)


def test_numbers_stand_for_times_in_the_unit_of_the_option() -> None:
    assert fit_values([1_767_225_600_000], TIMESTAMP, EpochTimes(EpochUnit.MILLIS))[
        0
    ].to_pylist() == [NEW_YEAR]


READINGS = pa.schema([("Temp", pa.float64()), ("at", TIMESTAMP)])


def builder(**given: Any) -> RowBuilder:
    return RowBuilder(Declaration("S", READINGS, "x", time="at", **given), SECONDS)


def test_readings_of_every_shape() -> None:
    at = NEW_YEAR
    built = builder().from_values(
        [
            {"Temp": 1, "at": at, "more": 5},
            {"temp": 2.5, "AT": at},
            {"temp": 9, "Temp": 3, "at": at},
            [4, at],
            (5, at),
            {"Temp": None, "at": at},
            {"at": at},
            {"other": 1},
            [1],
            7,
        ]
    )
    values = [1.0, 2.5, 3.0, 4.0, 5.0, None, None]
    assert built.arrays[0].to_pylist()[:7] == values
    assert built.refused == {
        7: "has none of the columns",
        8: "1 values for 2 columns",
        9: "a single value for 2 columns",
    }
    assert built.times is not None
    assert built.times.tolist()[6] == 1_767_225_600_000_000
    assert built.times.tolist()[7] == NO_TIME


def test_a_record_batch_may_lack_columns_and_have_others() -> None:
    batch = pa.record_batch({"AT": pa.array([NEW_YEAR]), "else": pa.array(["x"])})
    built = builder().from_batch(batch)
    assert [one.to_pylist() for one in built.arrays] == [[None], [NEW_YEAR]]
    assert not built.refused


def test_rows_of_a_table_bear_the_version_and_the_time() -> None:
    static = pa.schema([("id", pa.int32())])
    made = builder(static=static, column="r")
    built = made.from_values([[1, NEW_YEAR], ["x", NEW_YEAR]])
    assert built.times is not None
    versions, taken = np.array([7, 8], np.int32), np.array([True, False])
    rows = made.stored(built, built.times, versions, taken)
    assert rows.to_pylist() == [{SENSOR: 7, TIME: NEW_YEAR, "Temp": 1.0}]
