"""A sensor read by itself: what it sends is shown, and nothing of it is kept."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.database.try_sensor import (
    TrialResult,
    choose_sensor,
    declared_aside,
    read_aside,
    required_trial,
)
from nilometer.database.units import Units
from nilometer.errors import InputError, NilometerError
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sql.statements import read_statements

_TABLE = Declaration(
    "Farm",
    pa.schema([("v", pa.float64())]),
    "synthetic",
    {"rate": "200", "values": "v=normal(20,1)"},
    static=pa.schema([("place", pa.string())]),
    place=1,
    column="Reading",
)


def tried(text: str, seconds: float = 30.0, limit: int = 3) -> TrialResult:
    units = Units()
    known = {"farm": _TABLE}
    trial = required_trial(read_statements(text))
    with declared_aside(trial, lambda name: known.get(name.lower()), units.find) as (made, sensor):
        return read_aside(made, sensor, units.find, seconds=seconds, max_rows=limit, enough=limit)


def test_a_stream_is_read_until_there_is_enough() -> None:
    trial = tried(
        "CREATE STREAM S (v DOUBLE) FROM synthetic WITH (rate = 200, values = 'v=uniform(5,6)')"
    )
    assert trial.came >= 3
    assert len(trial.readings) == 3
    assert all(5 <= one["v"] <= 6 and "_sensor" not in one for one in trial.readings)
    assert (trial.refused, trial.last_error) == (0, None)


def test_new_sensors_of_a_table_are_read_before_they_are_inserted() -> None:
    trial = tried("INSERT INTO farm VALUES ('barn', '{}'), ('stable', '{}')")
    assert (trial.stream, trial.sensor) == ("Farm", "barn")
    assert len(trial.readings) == 3


def test_a_table_comes_with_its_first_sensor() -> None:
    trial = tried(
        "CREATE SENSOR TABLE T (n INT, R STREAM(v DOUBLE) FROM synthetic WITH (rate = 200)); "
        "INSERT INTO T VALUES (4, '{}')"
    )
    assert (trial.stream, trial.sensor, len(trial.readings)) == ("T", "4", 3)


def test_what_cannot_be_reached_is_reported(tmp_path: Path) -> None:
    trial = tried(
        "CREATE STREAM S (v INT) FROM tcp WITH (address = 'tcp://127.0.0.1:9')", seconds=1.0
    )
    assert trial.readings == ()
    assert trial.errors > 0
    assert "refused" in str(trial.last_error).lower()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SHOW STREAMS", "only a new stream"),
        ("CREATE STREAM S (v INT) FROM synthetic; DROP STREAM S", "only a new stream"),
        ("CREATE STREAM S (v INT) FROM nothing", "there is no stream type 'nothing'"),
        ("CREATE STREAM S (v INT) FROM synthetic WITH (unit = 'x')", "there is no unit x"),
        ("INSERT INTO Nowhere VALUES (1)", "there is no"),
        ("CREATE SENSOR TABLE T (n INT, R STREAM(v INT) FROM tcp)", "T has 0 sensors"),
    ],
)
def test_what_cannot_be_tried_is_refused_as_it_would_be_in_earnest(text: str, message: str) -> None:
    with pytest.raises(NilometerError, match=message):
        tried(text)


def test_the_sensor_that_is_meant() -> None:
    sensors = [Sensor(n, n, {"place": name}, "") for n, name in enumerate(("barn", "stable"))]
    assert choose_sensor(_TABLE, sensors, "stable") is sensors[1]
    with pytest.raises(InputError, match="Farm has 2 sensors"):
        choose_sensor(_TABLE, sensors)
    with pytest.raises(InputError, match="Farm has no sensor barm"):
        choose_sensor(_TABLE, sensors, "barm")
