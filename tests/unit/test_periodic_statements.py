"""PERIODS and PATTERNS in statements: the same answers however rows are cut, and a real meter."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from tests.mining_streams import check_any_split, times_of

METER = Path(__file__).parents[3] / "shared" / "data" / "ampds_electricity_b1e.csv"


def beats(seed: int) -> pa.Table:
    """Two sensors that repeat themselves after 4 and after 5 seconds, with noise and gaps."""
    dice = random.Random(seed)
    rows = []
    for second in range(120):
        for sensor, beat in (("x", "aabc"), ("y", "ddabc")):
            symbol = beat[second % len(beat)] if dice.random() < 0.9 else dice.choice("abcd")
            rows.append((second + dice.random() / 2, sensor, symbol, float(ord(symbol))))
    kept = sorted(row for row in rows if dice.random() < 0.95)
    return pa.table(
        {
            "ts": times_of([row[0] for row in kept]),
            "sensor": [row[1] for row in kept],
            "symbol": [row[2] for row in kept],
            "number": [row[3] for row in kept],
        }
    )


STATEMENTS = (
    "SELECT * FROM PERIODS(S, by => sensor, value => symbol, step => 1 SECOND, longest => 20, "
    "every => 15 SECONDS)",
    "SELECT * FROM PERIODS(S [RANGE 40 SECONDS], by => sensor, value => number, levels => 3, "
    "step => 1 SECOND, longest => 20, every => 10 SECONDS)",
    "SELECT * FROM PERIODS(S, by => sensor, value => number, learn => 30, longest => 20, "
    "every => 20 SECONDS)",
    "SELECT * FROM PATTERNS(S [RANGE 60 SECONDS], by => sensor, value => symbol, period => 20, "
    "step => 1 SECOND, every => 20 SECONDS)",
    "SELECT * FROM PATTERNS(S, by => sensor, value => number, breaks => [97.5, 99], period => 4, "
    "confidence => 0.3, hits => 5, every => 20 SECONDS)",
)


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("lateness", [0, 5])
def test_answers_do_not_depend_on_how_rows_are_cut(statement: str, lateness: int) -> None:
    assert len(check_any_split(statement, beats(lateness), seed=lateness, lateness=lateness))


def test_each_sensor_has_its_own_period() -> None:
    database = LocalDatabase()
    database.create_stream("S", beats(1), time="ts")
    rows = database.sql(f"{STATEMENTS[0]} WHERE rank = 1").to_pylist()
    rows = sorted((row for row in rows if row["_diff"] > 0), key=lambda row: row["_time"])
    last = {row["sensor"]: (row["period"], row["seconds"]) for row in rows}
    assert last == {"x": (4, 4.0), "y": (5, 5.0)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("PERIODS(S, value => number, breaks => [2, 1])", "breaks must be ascending numbers"),
        ("PERIODS(S, value => symbol, breaks => [1])", "only numbers are cut by breaks"),
        ("PATTERNS(S, value => symbol)", "period"),
        ("PATTERNS(S, value => symbol, period => 0)", "period"),
        ("PATTERNS(S, value => symbol, period => 2, report => 'some')", "report"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: str, said: str) -> None:
    database = LocalDatabase()
    database.create_stream("S", beats(1), time="ts")
    with pytest.raises(NilometerError, match=said):
        database.sql(f"SELECT * FROM {arguments.rstrip(')')}, every => 1 DAY)")


@pytest.mark.parametrize("window", ["", " [RANGE 14 DAYS]"])
def test_the_day_is_the_best_period_of_a_real_meter(window: str) -> None:
    if not METER.exists():
        pytest.skip(f"{METER.name} is not there")
    with METER.open() as lines:
        rows = list(csv.DictReader(lines))
    times = pa.array([int(row["unix_ts"]) * 1_000_000 for row in rows])
    stream = pa.table(
        {"ts": times.cast(pa.timestamp("us", tz="UTC")), "P": [float(row["P"]) for row in rows]}
    )
    database = LocalDatabase()
    database.create_stream("Meter", stream, time="ts")
    answer = database.sql(
        f"SELECT * FROM PERIODS(Meter{window}, value => P, step => 1 MINUTE, every => 7 DAYS) "
        "WHERE rank <= 5"
    )
    # The answer after the last row; a window has another one when it is half empty.
    end = pc.min(pc.filter(answer["_time"], pc.greater(answer["_time"], stream["ts"][-1])))
    held = answer.filter(pc.and_(pc.equal(answer["_time"], end), pc.greater(answer["_diff"], 0)))
    best = held.sort_by("rank").to_pylist()[0]
    assert best["period"] == pytest.approx(1440, rel=0.002)
    assert best["seconds"] == best["period"] * 60.0
