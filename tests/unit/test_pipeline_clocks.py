"""Pipelines: how they are told time, and what they refuse."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nilometer.errors import InputError
from nilometer.local.database import LocalDatabase
from nilometer.local.pipeline_clock import Costs, measured_clock
from tests.change_oracle import changes_of
from tests.market import EXECUTIONS, SCHEMA, SUM, TIMESTAMP, market, sales


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_streams_without_a_time_column_take_the_time_of_arrival(execution: str) -> None:
    db = LocalDatabase()
    db.create_stream("L", pa.table({"price": pa.array([], pa.int64())}))
    pipeline = db.pipeline(
        "SELECT DISTINCT price FROM L [RANGE 3 MICROSECONDS]", execution, distinct_times=True
    )
    for now, price in ((5, 1), (6, 1), (8, 2), (20, 3)):
        pipeline.push("L", pa.table({"price": [price]}), now)
        pipeline.run()
    expected = {((1,), 5, 1), ((1,), 10, -1), ((2,), 8, 1), ((2,), 12, -1), ((3,), 20, 1)}
    assert set(changes_of(pipeline.changelog())) == expected


def test_tuples_that_are_late_or_without_a_time_are_counted() -> None:
    pipeline = market().pipeline(SUM.format(10), "tpa", distinct_times=True)
    pipeline.push("S", sales([(5, 9), (5, 8), (4, 7), (6, 6)]))
    none = pa.record_batch([pa.array([None], TIMESTAMP), pa.array([9])], schema=SCHEMA)
    pipeline.push("S", none)
    pipeline.run()
    assert (pipeline.statistics.late, pipeline.statistics.without_time) == (2, 1)
    totals = [row[0] for row, _, diff in changes_of(pipeline.finish()) if diff > 0]
    assert totals == [None, 9, 15, 6, None]


def test_without_distinct_times_an_instant_waits_for_the_next() -> None:
    pipeline = market().pipeline(SUM.format(10), "nta")
    pipeline.push("S", sales([(5, 9), (5, 8)]), 5)
    assert [len(one.changes) for one in pipeline.run()] == [1]  # NULL, since ever.
    pipeline.push("S", sales([(6, 1)]), 6)
    (one,) = pipeline.run()
    assert changes_of(pa.Table.from_batches([one.changes]))[1][:2] in (((17,), 5), ((None,), 5))


def test_what_a_pipeline_refuses() -> None:
    db = market()
    with pytest.raises(InputError, match="a pipeline is for queries whose answers change"):
        db.pipeline("SELECT price FROM S")
    with pytest.raises(InputError, match="there is no execution lazy"):
        db.pipeline(SUM.format(1), "lazy")
    with pytest.raises(InputError, match="costs need a clock that can be moved"):
        db.pipeline(SUM.format(1), clock=measured_clock(), costs=Costs(call=1))
    with pytest.raises(InputError, match="this query reads no stream R"):
        db.pipeline(SUM.format(1)).push("R", sales([(1, 1)]))


def test_a_measured_clock_goes_by_itself() -> None:
    pipeline = market().pipeline(SUM.format(1), clock=measured_clock(100), distinct_times=True)
    pipeline.push("S", sales([(1, 9), (2, 9)]))
    clocks = [one.clock for one in pipeline.run()]
    assert clocks == sorted(clocks)
    assert clocks[0] >= 100
    assert pipeline.statistics.elapsed > 0
    assert pipeline.operators == ["scan S", "select S", "aggregate"]
