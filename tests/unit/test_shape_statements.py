"""MATCHES and MOTIFS in statements, in the local runner."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from nilometer.mining.motif_finder import MotifFinder
from nilometer.mining.shape_matcher import ShapeMatcher

TIMESTAMP = pa.timestamp("us", tz="UTC")
COUNT = 600
SECOND = 1_000_000
WAVE = np.sin(np.arange(20) / 3)


def series() -> np.ndarray:
    values = np.random.default_rng(0).normal(size=COUNT)
    for at in (100, 300, 500):
        values[at : at + 20] += 5 * WAVE + 7
    return values


@pytest.fixture
def db() -> LocalDatabase:
    made = LocalDatabase(buckets=2)
    rows = {
        "ts": pa.array(np.arange(COUNT) * SECOND, TIMESTAMP),
        "sensor": np.where(np.arange(COUNT) % 2, "odd", "even"),
        "v": series(),
    }
    made.create_stream("S", pa.table(rows), time="ts")
    order = np.random.default_rng(1).permutation(20)
    made.create_table("Wave", pa.table({"at": order, "v": WAVE[order]}))
    return made


def starts(table: pa.Table) -> list[int]:
    return sorted(one // SECOND for one in table["starts"].cast(pa.int64()).to_pylist())


def test_matches_of_a_stream(db: LocalDatabase) -> None:
    shape = "shape => (SELECT at, v FROM Wave)"
    answer = db.sql(f"SELECT * FROM MATCHES(S, value => v, {shape})")
    expected = ShapeMatcher(WAVE).add(series())
    assert starts(answer) == [one.start for one in expected] == [100, 300, 500]
    assert sorted(answer["distance"].to_pylist()) == sorted(one.distance for one in expected)
    known = sorted(one // SECOND for one in answer["_time"].cast(pa.int64()).to_pylist())
    assert known == [one.known for one in expected]


def test_matches_of_each_key(db: LocalDatabase) -> None:
    shape = "shape => (SELECT at, v FROM Wave WHERE at % 2 = 0)"
    answer = db.sql(f"SELECT sensor, starts FROM MATCHES(S, by => sensor, value => v, {shape})")
    expected = [
        2 * one.start + odd
        for odd in (0, 1)
        for one in ShapeMatcher(WAVE[::2]).add(series()[odd::2])
    ]
    assert starts(answer) == sorted(expected)


def test_shapes_of_one_statement_are_not_those_of_the_next(db: LocalDatabase) -> None:
    """Both had the first one's: what was made of tables was kept by names that came again."""
    answers = [
        db.sql(
            "SELECT * FROM MATCHES(S, value => v, normalize => 'none', distance => 6, "
            f"shape => (SELECT at, 5 * v + {level} FROM Wave))"
        )
        for level in (7, 1_000)
    ]
    assert [starts(one) for one in answers] == [[100, 300, 500], []]


def test_a_shape_without_points_is_refused_whatever_ran_before(db: LocalDatabase) -> None:
    db.sql("SELECT * FROM MOTIFS(S [RANGE 1 HOUR], value => v, length => 20, every => 1 HOUR)")
    with pytest.raises(NilometerError, match="a shape has at least 3 points, got 0"):
        db.sql(
            "SELECT * FROM MATCHES(S, value => v, shape => (SELECT at, v FROM Wave WHERE at < 0))"
        )


def test_motifs_of_a_window(db: LocalDatabase) -> None:
    answer = db.sql(
        "SELECT * FROM MOTIFS(S [RANGE 5 MINUTES], value => v, length => 20, motifs => 1, "
        "every => 200 SECONDS, radius => 4)"
    )
    for instant in (200, 400, 600):
        now = pa.scalar(instant * SECOND, pa.int64())
        until = answer.filter(pa.compute.less_equal(answer["_time"].cast(pa.int64()), now))
        folded = {}
        for row in until.to_pylist():
            diff = row.pop("_diff")
            row.pop("_time")
            folded[tuple(row.values())] = folded.get(tuple(row.values()), 0) + diff
        finder = MotifFinder(20, motifs=1, radius=4)
        finder.add(series()[: instant + 1])
        finder.forget(max(0, instant - 300))
        expected = [
            (one.kind.value, one.number, one.start, one.nearest, one.distance, len(one.occurrences))
            for one in finder.answer()
        ]
        assert sorted(_in_seconds(row) for row, copies in folded.items() if copies) == sorted(
            expected
        )


def _in_seconds(row: tuple) -> tuple:
    times = [int(one.timestamp()) for one in row[2:4]]
    return (*row[:2], *times, *row[4:])
