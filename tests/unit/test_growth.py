"""Short statements that mean very much are refused at once; each name may be used often."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from nilometer.errors import SqlError
from nilometer.local.database import LocalDatabase
from nilometer.sql.expressions.growth import MOST_PARTS
from tests.patience import pace

LEVELS = 22
"""Doubled so often, one column would have four million parts."""
WINDOWED = " [RANGE 5 SECONDS]"


@pytest.fixture
def db() -> LocalDatabase:
    made = LocalDatabase()
    rows = pa.table({"k": pa.array([1, 2]), "ts": pa.array([1, 2], pa.timestamp("us", tz="UTC"))})
    made.create_stream("W", rows, time="ts")
    return made


def doubled(step: str, levels: int, window: str = "") -> str:
    """A query of WITH for each level; `step` says what the next makes of the one before, {}."""
    parts = [f"a0 AS (SELECT k AS v FROM W{window})"]
    parts += [f"a{i} AS ({step.format(f'a{i - 1}')})" for i in range(1, levels)]
    return f"WITH {', '.join(parts)} SELECT v FROM a{levels - 1}"


@pytest.mark.parametrize(
    ("step", "window"),
    [
        ("SELECT v + v AS v FROM {0}", ""),
        ("SELECT v + v AS v FROM {0}", WINDOWED),
        ("SELECT CASE WHEN v > v THEN v ELSE v END AS v FROM {0}", ""),
        ("SELECT struct(*, v) AS v FROM {0}", ""),
        ("SELECT v FROM {0} UNION ALL SELECT v FROM {0}", WINDOWED),
        ("SELECT v FROM {0} UNION ALL SELECT v FROM {0}", ""),
        ("SELECT v FROM {0} UNION SELECT v FROM {0}", WINDOWED),
        ("SELECT v FROM {0} WHERE v IN (SELECT v FROM {0})", WINDOWED),
        ("SELECT a.v FROM {0} a LEFT JOIN {0} b ON a.v = b.v", WINDOWED),
    ],
)
def test_what_doubles_at_every_level_is_refused_at_once(
    db: LocalDatabase, step: str, window: str
) -> None:
    started = time.process_time()
    with pytest.raises(SqlError, match=f"more than {MOST_PARTS:,} parts"):
        db.sql(doubled(step, LEVELS, window))
    assert time.process_time() - started < 10 * pace()


def test_what_doubles_below_windows_is_refused_at_once(db: LocalDatabase) -> None:
    parts = ["a0 AS (SELECT * FROM W)"]
    step = "SELECT * FROM a{0} UNION ALL SELECT * FROM a{0}"
    parts += [f"a{i + 1} AS ({step.format(i)})" for i in range(LEVELS)]
    asked = f"SELECT date_trunc('minute', ts) AS m, COUNT(*) FROM a{LEVELS} GROUP BY m"
    started = time.process_time()
    with pytest.raises(SqlError, match=f"more than {MOST_PARTS:,} parts"):
        db.sql(f"WITH {', '.join(parts)} {asked}")
    assert time.process_time() - started < 10 * pace()
    few = asked.replace(f"a{LEVELS}", "a3")
    assert db.sql(f"WITH {', '.join(parts[:4])} {few}").column(1).to_pylist() == [16]


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT {', '.join(['COUNT(*) OVER w'] * 500)} FROM W WINDOW w AS (PARTITION BY "
        f"{', '.join(['k'] * 500)} ORDER BY ts)",
        f"SELECT approx_percentile(k, array({', '.join(['0.1'] * 500)})) OVER (PARTITION BY "
        f"{', '.join(['k'] * 500)} ORDER BY ts ROWS 1 PRECEDING) FROM W",
    ],
)
def test_what_multiplies_is_refused_at_once(db: LocalDatabase, statement: str) -> None:
    started = time.process_time()
    with pytest.raises(SqlError, match=f"more than {MOST_PARTS:,} parts"):
        db.sql(statement)
    assert time.process_time() - started < 10 * pace()


def test_queries_may_be_read_twice(db: LocalDatabase) -> None:
    step = "SELECT v FROM {0} UNION SELECT v FROM {0}"
    answer = db.sql(doubled(step, 8, WINDOWED))
    assert set(answer.column("v").to_pylist()) == {1, 2}


def test_few_levels_are_computed(db: LocalDatabase) -> None:
    answer = db.sql(doubled("SELECT v + v AS v FROM {0}", 9))
    assert answer.column("v").to_pylist() == [2**8, 2 * 2**8]
