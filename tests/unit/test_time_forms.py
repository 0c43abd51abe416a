"""Numbers and texts as instants: units, patterns, columns that declare them, and refusals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nilometer.errors import InputError, SqlError
from nilometer.kernels.read_times import (
    INSTANT,
    declared_type,
    form_of,
    read_times,
    time_field,
    with_forms,
)
from nilometer.model.time import EARLIEST, LATEST
from nilometer.model.time_forms import (
    EpochTimes,
    EpochUnit,
    TimeForm,
    WrittenTimes,
    meanings,
    read_unit,
)
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.execute import execute
from nilometer.sensors.types.distributions import value_maker
from nilometer.sql.ddl.nodes import CreateTable
from nilometer.sql.statements import read_one

MOMENTS = st.datetimes(datetime(1700, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))
RECENT = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
"""Which a DOUBLE holds in seconds, to the microsecond."""
PATTERN = "dd-MMM-yyyy H:mm:ss"


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def naive(number: int, unit: EpochUnit) -> int | None:
    """The instant of a whole number, by the definition; None: there is none."""
    nanos = number * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit.value]
    instant = nanos // 1000
    return instant if EARLIEST <= instant <= LATEST else None


@given(
    st.lists(st.integers(-(2**62), 2**62) | st.integers(-(10**12), 10**12)),
    st.sampled_from(EpochUnit),
)
@example([-1, -999, -1000, -1001], EpochUnit.NANOS)
def test_whole_numbers_count_exactly_alone_and_in_columns(
    numbers: list[int], unit: EpochUnit
) -> None:
    form = EpochTimes(unit)
    for number in numbers:
        expected = naive(number, unit)
        if expected is None:
            with pytest.raises(ValueError, match=r"between 1700 and 9999"):
                form.read(number)
        else:
            assert form.read(number) == expected
    expected_all = [naive(number, unit) for number in numbers]
    for column in (pa.array(numbers, pa.int64()), pa.array([str(one) for one in numbers])):
        if None in expected_all:
            with pytest.raises(pa.ArrowInvalid):
                read_times(column, form)
        else:
            times = read_times(column, form)
            assert times.type == INSTANT
            assert times.cast(pa.int64()).to_pylist() == expected_all


@given(RECENT, st.sampled_from([EpochUnit.SECONDS, EpochUnit.MILLIS, EpochUnit.MICROS]))
def test_fractions_count_to_the_nearest_microsecond(moment: datetime, unit: EpochUnit) -> None:
    exact = Fraction(micros(moment)) / unit.micros
    number = float(exact)
    instant = EpochTimes(unit).read(number)
    assert abs(instant - Fraction(number) * unit.micros) <= 2
    decimal = Decimal(micros(moment)) / int(unit.micros)
    assert EpochTimes(unit).read(decimal) == micros(moment)
    assert (
        read_times(pa.array([number, None]), EpochTimes(unit)).cast(pa.int64())[0].as_py()
        == instant
    )


@pytest.mark.parametrize("value", [nan, inf, -inf, True, "soon", [], 1e300, Decimal("NaN")])
@pytest.mark.parametrize("unit", EpochUnit)
def test_what_is_no_number_is_no_time(value: Any, unit: EpochUnit) -> None:
    with pytest.raises(ValueError, match="time"):
        EpochTimes(unit).read(value)


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (PATTERN, "%d-%b-%Y %H:%M:%S"),
        ("M/d/yyyy h:m:s a", "%m/%d/%Y %I:%M:%S %p"),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "%Y-%m-%dT%H:%M:%SZ"),
        ("dd. MMMM yyyy, HH 'o''clock' mm:ss", "%d. %B %Y, %H o'clock %M:%S"),
        ("yyyyMMddHHmmss", "%Y%m%d%H%M%S"),
    ],
)
@given(moment=MOMENTS)
def test_what_is_written_by_a_pattern_is_read_by_it(
    pattern: str, written: str, moment: datetime
) -> None:
    moment = moment.replace(microsecond=0)
    text = moment.strftime(written.replace("%Y", f"{moment.year:04}"))
    form = WrittenTimes(pattern)
    assert form.read(text) == micros(moment)
    times = read_times(pa.array([text, None, ""]), form).cast(pa.int64()).to_pylist()
    assert times == [micros(moment), None, None]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (PATTERN, "24-feb-2014 9:30:00", datetime(2014, 2, 24, 9, 30, tzinfo=UTC)),
        ("dd.MM.yy", "24.02.14", datetime(2014, 2, 24, tzinfo=UTC)),
        (
            "yyyy-MM-dd HH:mm:ss.SSS",
            "2014-02-24 09:30:00.5",
            datetime(2014, 2, 24, 9, 30, 0, 500_000, tzinfo=UTC),
        ),
        ("yyyy-MM-dd HH:mmX", "2014-02-24 09:30+0530", datetime(2014, 2, 24, 4, 0, tzinfo=UTC)),
        ("h a d.M.yyyy", "12 AM 1.3.2014", datetime(2014, 3, 1, 0, tzinfo=UTC)),
        ("h a d.M.yyyy", "12 pm 1.3.2014", datetime(2014, 3, 1, 12, tzinfo=UTC)),
    ],
)
def test_patterns(pattern: str, text: str, expected: datetime) -> None:
    assert WrittenTimes(pattern).read(text) == micros(expected)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (PATTERN, "24-02-2014 9:30:00"),
        (PATTERN, "30-Feb-2014 9:30:00"),
        (PATTERN, "24-Feb-2014 24:30:00"),
        (PATTERN, "24-Feb-2014 9:30:00 "[:-3]),
        ("h a d.M.yyyy", "13 PM 1.3.2014"),
        ("h a d.M.yyyy", "0 AM 1.3.2014"),
        ("dd.MM.yyyy", "01.01.1699"),
        ("dd.MM.yyyy", "٢٤.٠٢.٢٠١٤"),
    ],
)
def test_texts_that_are_not_of_their_pattern(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match="."):
        WrittenTimes(pattern).read(text)
    with pytest.raises(pa.ArrowInvalid):
        read_times(pa.array([text]), WrittenTimes(pattern))
    with pytest.raises(ValueError, match="not a text of the form"):
        WrittenTimes(pattern).read(5)


@pytest.mark.parametrize(
    ("pattern", "detail"),
    [
        ("", "it has not exactly one year"),
        ("yyyy-MM", "it has not exactly one day"),
        ("yyyy-MM-dd mm", "it has not exactly one hour"),
        ("yyyy-MM-dd h", "h and a (AM, PM) go together"),
        ("yyyy-MM-dd yyyy", "yyyy repeats a part that is already there"),
        ("yyyy-MM-dd EEE", "EEE cannot be used in it"),
        ("yyyy-MM-dd[ HH]", "[ cannot be used in it"),
        ("yyyy-MM-dd 'at", "a quote is not closed"),
    ],
)
def test_patterns_that_cannot_be_used(pattern: str, detail: str) -> None:
    with pytest.raises(InputError) as refused:
        WrittenTimes(pattern)
    assert refused.value.detail == detail


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1393263000, "1393263000 would be 2014-02-24 as seconds, 1970-01-17 as milliseconds"),
        (
            1393263000000,
            "1393263000000 would be 2014-02-24 as milliseconds, 1970-01-17 as microseconds",
        ),
        (1393263000000000000, "1393263000000000000 would be 2014-02-24 as nanoseconds"),
        (0.5, "0.5 would be 1970-01-01 in any unit"),
        (nan, "nan is not a time in any unit"),
        (10**30, f"{10**30} is not a time in any unit"),
    ],
)
def test_what_a_number_would_mean(number: float, words: str) -> None:
    assert meanings(number) == words


def test_units_have_names() -> None:
    assert read_unit(" MS ") is EpochUnit.MILLIS
    with pytest.raises(InputError, match="cannot count h since 1970") as refused:
        read_unit("h")
    assert refused.value.hint == "write one of s, ms, us, ns"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("TIMESTAMP", None),
        ("TIMESTAMP FROM EPOCH SECONDS", EpochTimes(EpochUnit.SECONDS)),
        ("TIMESTAMP FROM EPOCH MILLIS", EpochTimes(EpochUnit.MILLIS)),
        ("TIMESTAMP FROM EPOCH MICROS", EpochTimes(EpochUnit.MICROS)),
        ("TIMESTAMP FROM EPOCH NANOS", EpochTimes(EpochUnit.NANOS)),
        (f"TIMESTAMP FORMAT '{PATTERN}'", WrittenTimes(PATTERN)),
        (r"TIMESTAMP FORMAT 'yyyy-MM-dd\'T\'HH'", WrittenTimes("yyyy-MM-dd'T'HH")),
    ],
)
def test_forms_are_declared_and_shown_as_they_were(text: str, form: TimeForm | None) -> None:
    statement = read_one(f"CREATE TABLE t (ts {text.replace('FROM', 'from')}, a INT)")
    assert isinstance(statement, CreateTable)
    column = statement.columns[0]
    assert column.form == form
    assert form_of(column.field) == form
    assert declared_type(column.field) == text


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("ts TIMESTAMP FROM EPOCH", "expected the unit of the numbers since 1970"),
        ("ts TIMESTAMP FROM EPOCH HOURS", "expected the unit of the numbers since 1970"),
        ("ts TIMESTAMP FROM", "expected , or ) after the column"),
        ("ts TIMESTAMP FORMAT", "expected the pattern of the times"),
        ("ts TIMESTAMP FORMAT yyyy", "expected the pattern of the times"),
        ("ts TIMESTAMP FORMAT 'yyyy'", "cannot read times by the pattern 'yyyy'"),
        ("ts INT FROM EPOCH SECONDS", "only a TIMESTAMP can have FROM EPOCH or FORMAT"),
        ("ts STRING FORMAT 'dd.MM.yyyy'", "only a TIMESTAMP can have FROM EPOCH or FORMAT"),
    ],
)
def test_forms_that_are_refused(columns: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        read_one(f"CREATE TABLE t ({columns})")
    assert refused.value.message == message
    assert refused.value.place is not None
    assert refused.value.hint is not None


def test_a_default_is_for_times_that_say_nothing() -> None:
    columns = pa.schema(
        [
            time_field("a", INSTANT, EpochTimes(EpochUnit.MILLIS)),
            pa.field("b", INSTANT),
            pa.field("c", pa.list_(INSTANT)),
            pa.field("d", pa.int64()),
        ]
    )
    default = EpochTimes(EpochUnit.NANOS)
    forms = [form_of(one) for one in with_forms(columns, default)]
    assert forms == [EpochTimes(EpochUnit.MILLIS), default, default, None]
    assert pat.is_list(with_forms(columns, default).field("c").type)
    assert with_forms(columns, None).equals(columns, check_metadata=True)


def run(catalog: SensorCatalog, sql: str) -> Any:
    return execute(catalog, read_one(sql))  # type: ignore[arg-type]


def table_rows(catalog: SensorCatalog) -> list[dict[str, Any]]:
    table = catalog.table("t")
    assert table is not None
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_a_table_takes_times_in_the_form_that_it_declares(catalog: SensorCatalog) -> None:
    run(
        catalog,
        "CREATE TABLE t (k INT, ms TIMESTAMP FROM EPOCH MILLIS, "
        "day TIMESTAMP FORMAT 'd.M.yyyy', plain TIMESTAMP)",
    )
    run(
        catalog,
        "INSERT INTO t VALUES (1, 1393263000000, '24.2.2014', TIMESTAMP '2014-02-24 17:30:00'), "
        "(2, TIMESTAMP '2014-02-24 17:30:00', NULL, NULL)",
    )
    moment, day = datetime(2014, 2, 24, 17, 30, tzinfo=UTC), datetime(2014, 2, 24, tzinfo=UTC)
    assert table_rows(catalog) == [
        {"k": 1, "ms": moment, "day": day, "plain": moment},
        {"k": 2, "ms": moment, "day": None, "plain": None},
    ]
    run(catalog, "UPDATE t SET ms = k * 1000, day = '1.3.2014' WHERE k = 2")
    changed = table_rows(catalog)[1]
    assert changed["ms"] == datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    assert changed["day"] == datetime(2014, 3, 1, tzinfo=UTC)
    shown = run(catalog, "DESCRIBE t").rows.to_pylist()
    assert [one["type"] for one in shown] == [
        "INT",
        "TIMESTAMP FROM EPOCH MILLIS",
        "TIMESTAMP FORMAT 'd.M.yyyy'",
        "TIMESTAMP",
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("(1, 1e18, NULL, NULL)", "TIMESTAMP FROM EPOCH MILLIS cannot store 1e+18"),
        ("(1, 5, '2014-02-24', NULL)", "TIMESTAMP FORMAT 'd.M.yyyy' cannot store '2014-02-24'"),
        ("(1, 5, 5, NULL)", "TIMESTAMP FORMAT 'd.M.yyyy' cannot store 5"),
        ("(1, 5, NULL, 1393263000)", "TIMESTAMP cannot store 1393263000"),
    ],
)
def test_a_table_refuses_what_is_no_time(catalog: SensorCatalog, values: str, message: str) -> None:
    run(
        catalog,
        "CREATE TABLE t (k INT, ms TIMESTAMP FROM EPOCH MILLIS, "
        "day TIMESTAMP FORMAT 'd.M.yyyy', plain TIMESTAMP)",
    )
    with pytest.raises(SqlError, match="row 1, column") as refused:
        run(catalog, f"INSERT INTO t VALUES {values}")
    assert message in refused.value.message


def test_forms_survive_a_reopening(catalog_url: str) -> None:
    with SensorCatalog.open(catalog_url) as catalog:
        run(
            catalog,
            f"CREATE STREAM s (ts TIMESTAMP FORMAT '{PATTERN}', v INT, TIME ts) FROM synthetic",
        )
        run(
            catalog,
            "CREATE SENSOR TABLE n (since TIMESTAMP FROM EPOCH SECONDS, "
            "r STREAM(at TIMESTAMP FROM EPOCH NANOS, TIME at) FROM synthetic)",
        )
        run(catalog, "INSERT INTO n VALUES (1393263000, '{}')")
    with SensorCatalog.open(catalog_url) as catalog:
        declared = catalog.require_declaration("s")
        assert form_of(declared.readings.field("ts")) == WrittenTimes(PATTERN)
        assert declared.layout.stored.field("ts").metadata is None
        shown = run(catalog, "DESCRIBE n").rows.to_pylist()
        assert [one["type"] for one in shown] == [
            "TIMESTAMP FROM EPOCH SECONDS",
            "TIMESTAMP FROM EPOCH NANOS",
        ]
        sensor = catalog.sensors("n")[0]
        assert sensor.values == {"since": datetime(2014, 2, 24, 17, 30, tzinfo=UTC)}


@pytest.mark.parametrize("described", ["constant(1393263000)", "uniform(1393263000, 1393263000)"])
def test_made_up_numbers_are_times_in_seconds(described: str) -> None:
    name, arguments = described.rstrip(")").split("(")
    make = value_maker((name, tuple(arguments.split(", "))), INSTANT)
    times = make(np.random.default_rng(7), 1)
    assert times.to_pylist() == [datetime(2014, 2, 24, 17, 30, tzinfo=UTC)]
