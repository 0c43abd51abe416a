"""A query that is too far behind reads the rows that matter most, and counts the others."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.engine import log_reads
from nilometer.engine.log_reads import LogRows
from nilometer.engine.shedding import LEAST_KEPT, select_rows, share_to_read
from nilometer.engine.subplan_run import SubPlanRun
from nilometer.errors import NilometerError, SqlError, UnknownNameError
from nilometer.kernels.key_hashes import hash_rows
from nilometer.log.position import Position
from nilometer.model.expressions import Argument, Binary, Operator
from nilometer.sql.utility import compile_utility
from tests.unit.test_engine import SCHEMA, World

UTILITY = Binary(Operator.DIVIDE, Argument(1), Argument(0))
"""Cannot be computed where the first column is 0, and is NULL where either is."""
VALUES = st.one_of(st.none(), st.integers(0, 4))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def worth(k: int | None, v: int | None) -> float:
    return -math.inf if not k or v is None else v / k


@given(
    rows=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=60),
    share=st.floats(LEAST_KEPT, 1),
    chosen=st.randoms(use_true_random=False),
)
def test_the_rows_that_are_read_are_those_worth_most(
    rows: list[tuple[int | None, int | None]], share: float, chosen: np.random.Generator
) -> None:
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, ["k", "v"])
    selected = select_rows(batch, batch, UTILITY, share)
    ranks = sorted(zip([worth(*row) for row in rows], hash_rows(batch.columns), strict=True))
    least = ranks[len(rows) - math.ceil(share * len(rows))]
    read = [
        (worth(*row), one) >= least for row, one in zip(rows, hash_rows(batch.columns), strict=True)
    ]
    wanted = [row for row, is_read in zip(rows, read, strict=True) if is_read]
    assert list(zip(*(c.to_pylist() for c in selected.columns), strict=True)) == wanted
    assert len(wanted) >= share * len(rows)
    some = [place for place in range(len(rows)) if chosen.random() < 0.5]
    of_some = select_rows(batch.take(pa.array(some, pa.int64())), batch, UTILITY, share)
    assert len(of_some) == sum(read[place] for place in some)


def test_without_a_utility_rows_are_shed_evenly() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(range(10_000))], ["v"])
    chosen = select_rows(batch, batch, None, 0.25)
    assert len(chosen) == 2500
    assert chosen.column(0).to_numpy().mean() == pytest.approx(5000, abs=200)


def test_how_many_rows_are_read() -> None:
    assert share_to_read(0, 10) == share_to_read(10, 10) == 1
    assert share_to_read(40, 10) == 0.25
    assert share_to_read(10**12, 10) == LEAST_KEPT


def test_a_query_that_is_behind_sheds_and_one_that_is_not_reads_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reads.LogReads.__init__, "__defaults__", (100,))
    starts = world.ends()
    append(world, range(400))
    pairs = "SELECT X.v AS v FROM A X, A Y WHERE X.v = Y.v WINDOW = 0 SECONDS"
    world.start("values", "SELECT v FROM A", starts, shed=200, shed_by="v % 10")
    world.start("pairs", pairs, starts, shed=200, shed_by="v % 10")
    world.start("high", "SELECT v FROM A WHERE v % 10 >= 5", starts, shed=200, shed_by="v % 10")
    world.start("all", "SELECT v FROM A", starts)
    world.settle()
    # 400, 300, 200 and 100 rows wait: 50 of 100, 67 of 100, and then all are read.
    shed = shed_rows(world)
    assert shed == {"values": [83], "pairs": [83, 83], "high": [83], "all": [0]}
    read = values_of(world, "values")
    assert len(read) == 400 - 83
    assert {v % 10 for v in range(400)} - {v % 10 for v in read if v < 100} == {0, 1, 2, 3, 4}
    assert min(v % 10 for v in read if v < 100) == 5
    assert read[read.index(200) :] == list(range(200, 400))
    assert values_of(world, "pairs") == read
    assert values_of(world, "high") == [v for v in range(400) if v % 10 >= 5]
    assert values_of(world, "all") == list(range(400))
    world.workers = [{}, {}]
    append(world, range(400, 600))
    world.settle()
    assert shed_rows(world) == shed, "the count is kept, and 200 rows are not too many"
    assert values_of(world, "values")[-200:] == list(range(400, 600))


def test_who_reads_some_sensors_of_a_table_sheds_the_same_rows_as_who_reads_all() -> None:
    """Also where those some are so few that they would not be too many."""
    everything = pa.RecordBatch.from_pydict({"k": [1] * 400, "v": list(range(400))})
    some = everything.filter(pc.less(everything.column(1), 60))
    end = Position(0, 1, row=400)
    reads: Any = SimpleNamespace(rows=lambda *_: LogRows(everything, None, end, 0))
    run = SubPlanRun.__new__(SubPlanRun)
    run.plan = cast(Any, SimpleNamespace(shed_above=100))

    def read(where: str | None, rows: pa.RecordBatch) -> list[int]:
        feed = SimpleNamespace(where=where, utility=None)
        opened = cast(Any, SimpleNamespace(feed=feed, log="", layout=None))
        left = run._shed(reads, opened, Position(0, 0), LogRows(rows, None, end, 0))
        values: list[int] = left.column(1).to_pylist()
        return values

    of_all = read(None, everything)
    assert len(of_all) == 100
    assert read("room = 'hall'", some) == [v for v in of_all if v < 60]


def test_one_stream_must_have_the_columns_of_what_rows_are_worth(world: World) -> None:
    union = "SELECT v FROM A UNION ALL SELECT v FROM B"
    with pytest.raises(UnknownNameError, match="priority"):
        world.start("none", union, world.ends(), shed=1, shed_by="priority")
    world.start("some", union, world.ends(), shed=1, shed_by="A.v")


@pytest.mark.parametrize(
    "text",
    [
        "COUNT(*)",
        "v) AS x, (v",
        "v) AS DOUBLE) AS x FROM A, B --",
        "(SELECT MAX(v) FROM A)",
        "SUM(v) OVER (ORDER BY ts)",
        "priority",
        "v +",
        "reflect('java.lang.System', 'exit', 1)",
    ],
)
def test_what_cannot_be_a_utility(world: World, text: str) -> None:
    with pytest.raises(NilometerError):
        compile_utility(text, world.catalog, world.catalog.relations["A"])


@pytest.mark.parametrize("text", ["", "  ", "COUNT(*)", "v + MAX(v)", "(SELECT MAX(v) FROM A)"])
def test_what_is_not_over_one_row_is_refused(world: World, text: str) -> None:
    with pytest.raises(SqlError, match="expected an expression over one row"):
        compile_utility(text, world.catalog, world.catalog.relations["A"])


def test_an_error_shows_the_place_in_the_option(world: World) -> None:
    with pytest.raises(UnknownNameError) as error:
        compile_utility("k + priority", world.catalog, world.catalog.relations["A"])
    assert "    k + priority\n        ^^^^^^^^\n" in str(error.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("v", 7.0),
        ("A.v", 7.0),
        ("k * 2 + v", 9.0),
        ("CASE WHEN v > 5 THEN 1 ELSE 0 END", 1.0),
        ("v > 5", 1.0),
        ("v -- the value", 7.0),
    ],
)
def test_what_a_row_is_worth(world: World, text: str, value: float) -> None:
    utility = compile_utility(text, world.catalog, world.catalog.relations["A"])
    rows = [{"k": 1, "v": v, "ts": v} for v in (7, 0)]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    (row,) = select_rows(batch, batch, utility, 0.5).to_pylist()
    assert row["v"] == 7, f"it is worth {value}"


def append(world: World, values: range) -> None:
    columns = [pa.array([0] * len(values)), pa.array(values), pa.array(values).cast(SCHEMA[2].type)]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    world.writers["A"].append(batch, watermark=values[-1])
    world.writers["B"].append(batch.slice(0, 0), watermark=values[-1])


def values_of(world: World, query: str) -> list[int]:
    counts: Counter[int] = Counter()
    for row, copies in world.published(query).items():
        counts[dict(row)["v"]] += copies
    assert set(counts.values()) <= {1}
    return sorted(counts)


def shed_rows(world: World) -> dict[str, list[int]]:
    """Of each stream of each query; only reported by queries that have read something."""
    return {
        one.query: [shed for stage in one.content["metrics"] for shed in json.loads(stage)["shed"]]
        for one in world.control.reports()
        if "metrics" in one.content and Position.from_json(one.content["positions"][0]).row
    }
