"""What is declared of a stream's rows, what is measured of them, and what of it is kept."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import SqlError
from nilometer.kernels.distinct_sketch import KEPT, DistinctSketch
from nilometer.kernels.read_times import declared_type
from nilometer.log.layout import TIME
from nilometer.sensors.alter import altered
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.execute import execute
from nilometer.sensors.manager.measured import MeasuredStream, read_measured
from nilometer.sql.catalog import Statistics
from nilometer.sql.ddl.nodes import AlterStream
from nilometer.sql.statements import read_one

SECOND = 1_000_000


@given(st.lists(st.lists(st.sampled_from([None, "", "a", "b", "long text"]))))
def test_few_values_are_counted(parts: list[list[str | None]]) -> None:
    sketch = DistinctSketch()
    for part in parts:
        sketch.add(pa.array(part, pa.string()))
    assert sketch.estimate == len({one for part in parts for one in part} - {None})


@pytest.mark.parametrize("values", [1_000, 30_000, 1_000_000])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
def test_many_values_are_estimated(kind: pa.DataType, values: int) -> None:
    """Three times the standard error, which is one over the root of what is kept."""
    sketch = DistinctSketch()
    numbers = pa.array(range(values)).cast(kind)
    for part in (numbers, numbers[: values // 2]):
        sketch.add(part)
    assert abs(sketch.estimate / values - 1) < 3 / (KEPT - 2) ** 0.5


def rows(first: int, count: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.record_batch(
        {
            "k": [one % 7 for one in numbers],
            "id": list(numbers),
            "counts": [[one] for one in numbers],
        }
    )


def test_a_stream_is_measured_while_it_runs() -> None:
    measured = MeasuredStream()
    assert measured.statistics == Statistics()
    for second in range(30):
        measured.add(rows(20 * second, 20), second * SECOND)
    assert measured.statistics.rate is None  # not for long enough yet
    assert measured.statistics.distinct["k"] == 7
    for second in range(30, 120):
        measured.add(rows(20 * second, 20), second * SECOND)
    statistics = measured.statistics
    assert statistics.rate == pytest.approx(20, rel=0.02)
    assert statistics.distinct["id"] == pytest.approx(2400, rel=0.2)
    assert "counts" not in statistics.distinct


def test_a_rate_follows_the_stream() -> None:
    measured = MeasuredStream()
    for second in range(3600):
        measured.add(rows(0, 1 if second < 1800 else 10), second * SECOND)
    assert measured.statistics.rate == pytest.approx(10, rel=0.02)


def test_many_rows_at_once_are_sampled() -> None:
    measured = MeasuredStream()
    measured.add(rows(0, 50_000), 0)
    assert measured.statistics.distinct["k"] == 7
    measured.add(rows(50_000, 1), SECOND // 2)  # in the same second: not looked at
    assert measured._sampled == 1_000


def test_sensors_that_come_in_turn_are_all_seen() -> None:
    measured = MeasuredStream()
    batch = pa.record_batch({"s": [one % 10 for one in range(10_000)]})
    for second in range(5):
        measured.add(batch, second * SECOND)
    assert measured.statistics.distinct == {"s": 10}


def test_a_pause_is_no_low_rate() -> None:
    measured = MeasuredStream()
    for second in (*range(300), *range(36_000, 36_120)):
        measured.add(rows(0, 100), second * SECOND)
    assert measured.statistics.rate == pytest.approx(100, rel=0.02)


def test_few_rows_after_a_restart_do_not_show_few_values() -> None:
    measured = read_measured({"rate": 5.0, "distinct": {"id": 5000.0, "k": 2.0}})
    measured.add(rows(0, 100), 0)
    assert measured.statistics.distinct == {"id": 5000, "k": 7}
    for second in range(1, 400):
        measured.add(rows(0, 100), second * SECOND)
    assert measured.statistics.distinct == {"id": 100, "k": 7}


def test_what_was_measured_is_kept_until_more_is_known() -> None:
    measured = MeasuredStream()
    for second in range(120):
        measured.add(rows(20 * second, 20), second * SECOND)
    again = read_measured(measured.to_json())
    assert again.statistics == measured.statistics
    again.add(rows(0, 1), 500 * SECOND)
    assert again.statistics == measured.statistics


@pytest.mark.parametrize(
    "kept",
    [
        None,
        3,
        [],
        {"rate": "x", "distinct": 5},
        {"rate": -1, "distinct": {"k": None}},
        {"rate": True, "distinct": {"k": float("nan")}},
        {"rate": 10**400, "distinct": {"k": float("inf")}},
    ],
)
def test_what_is_wrong_with_what_was_kept_is_left_out(kept: object) -> None:
    assert read_measured(kept).statistics == Statistics()


def test_what_is_declared_and_what_is_measured(catalog: SensorCatalog) -> None:
    statement = (
        "CREATE STREAM A (room STRING DISTINCT 12, v DOUBLE, ts TIMESTAMP FROM EPOCH MILLIS "
        "DISTINCT 99, TIME ts, EVERY 5 MILLISECONDS) FROM http"
    )
    execute(catalog, read_one(statement))
    declared = catalog.require_declaration("A")
    assert [declared_type(one) for one in declared.readings] == [
        "STRING DISTINCT 12",
        "DOUBLE",
        "TIMESTAMP FROM EPOCH MILLIS DISTINCT 99",
    ]
    assert not any(one.metadata for one in declared.layout.stored)
    measured = Statistics(3.0, {"room": 7.0, "v": 1000.0, TIME: 5.0})
    assert declared.statistics(measured, 1) == Statistics(
        3.0, {"room": 12.0, "v": 1000.0, "ts": 99.0}, is_measured=True
    )
    declared_alone = Statistics(200.0, {"room": 12.0, "ts": 99.0})
    assert declared.statistics(Statistics(), 1) == declared_alone
    change = read_one("ALTER STREAM A RENAME COLUMN room TO place")
    assert isinstance(change, AlterStream)
    renamed = altered(declared, change.change, 1)
    assert renamed.statistics(Statistics(), 1).distinct == {"place": 12.0, "ts": 99.0}


def test_of_a_sensor_table(catalog: SensorCatalog) -> None:
    execute(
        catalog,
        read_one(
            "CREATE SENSOR TABLE T (id INT DISTINCT 500, reading STREAM(v DOUBLE DISTINCT 8, "
            "EVERY 10 SECONDS) FROM http)"
        ),
    )
    execute(catalog, read_one("INSERT INTO T VALUES (1, 'a'), (2, 'b'), (3, 'c')"))
    assert catalog.count_sensors() == {"T": 3}
    declared = catalog.require_declaration("T")
    assert declared.statistics(Statistics(None, {"v": 2.0, "_sensor": 3.0}), 3) == Statistics(
        0.3, {"id": 500.0, "reading.v": 8.0}
    )
    assert declared.statistics(Statistics(), 0).rate is None


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE STREAM A (k INT DISTINCT, v INT) FROM http", "the number of distinct values"),
        ("CREATE STREAM A (k INT DISTINCT 0) FROM http", "the number of distinct values"),
        ("CREATE STREAM A (k INT DISTINCT 1.5) FROM http", "the number of distinct values"),
        ("CREATE STREAM A (k INT DISTINCT -3) FROM http", "the number of distinct values"),
        (
            "CREATE STREAM A (k INT DISTINCT 99999999999999999999) FROM http",
            "the number of distinct values",
        ),
        ("CREATE STREAM A (k INT DISTINCT 3 4) FROM http", "expected , or )"),
        ("CREATE TABLE A (k INT DISTINCT 3)", "expected , or )"),
    ],
)
def test_what_cannot_be_declared(statement: str, said: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_one(statement)
    assert said in caught.value.message
