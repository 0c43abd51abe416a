"""Ten queries over one stream: one connection to the sensor, one stored copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.log.registrations import registrations
from tests.patience import wait_for
from tests.sensors_at_work import HttpSensors

QUERIES = 10


def ends(log: str) -> list[int]:
    return [one.position.row for one in registrations(log)]


@pytest.mark.soak
@pytest.mark.limit(900)
def test_ten_queries_share_a_connection_and_a_copy(spark: SparkSession, tmp_path: Path) -> None:
    with HttpSensors() as http, nm.connect(spark, path=tmp_path / "plant") as db:
        db.sql(
            "CREATE SENSOR TABLE S (id INT, r STREAM(reading BIGINT) FROM http "
            "WITH (interval = '20ms', segment = '8KB'))"
        )
        db.sql(f"INSERT INTO S VALUES (1, '{http.url(1)}')")
        log = db.log_of("S")
        for number in range(QUERIES):
            db.sql(f"CREATE QUERY q{number} AS SELECT r.reading AS n FROM S WHERE r.reading >= 0")
        wait_for(lambda: len(ends(log)) == QUERIES and min(ends(log)) > 100)
        assert db.sql("SHOW SENSORS").collect()[0]["state"] == "connected"
        assert http.connections() == 1
        for number in range(1, QUERIES):
            db.sql(f"STOP QUERY q{number}")
        slowest = min(ends(log))
        wait_for(lambda: max(ends(log)) > slowest + 1000)
        assert db.history("S").count() >= max(ends(log)) - slowest, "nobody's rows are deleted"
        kept = segments(log)
        for number in range(1, QUERIES):
            db.sql(f"DROP QUERY q{number}")
        wait_for(lambda: segments(log) < kept)
        assert http.connections() == 1
        numbers = [row["n"] for row in db.history("q0").orderBy("n").collect()]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def segments(log: str) -> int:
    return len(list(Path(log).glob("*.seg")))
