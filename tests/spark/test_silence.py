"""Queries whose sensors fall silent, end to end: who is blamed, and that they go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.database.query_status import QueryPhase, QueryStatus, StallReason
from nilometer.sensors.manager import arrivals, log_store
from nilometer.sensors.stream_type import SensorAddress
from nilometer.sensors.types.python import register
from tests.patience import wait_for

SECOND = 1_000_000


class Sensor:
    """Says a number and the time about five times a second, while it is let."""

    def __init__(self) -> None:
        self.speaks = Event()
        self.speaks.set()
        self.said = 0

    def __call__(self) -> Iterator[dict[str, Any] | None]:
        while True:
            time.sleep(0.2)
            if self.speaks.is_set():
                self.said += 1
                yield {"k": self.said % 3, "ts": time.time()}
            else:
                yield None


def many(sensor: SensorAddress) -> Iterator[dict[str, Any] | None]:
    """One of a hundred sensors: the one in room 7 is dead."""
    while True:
        time.sleep(0.5)
        is_dead = sensor.sensor == "7"
        yield None if is_dead else {"ts": time.time()}


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[nm.Database]:
    with nm.connect(spark, path=tmp_path / "plant") as opened:
        yield opened


def status(db: nm.Database, name: str) -> QueryStatus:
    return next(one for one in db.query_statuses() if one.name == name)


def shown(db: nm.Database, name: str) -> dict[str, Any]:
    rows = db.sql("SHOW QUERIES").collect()
    return next(row.asDict() for row in rows if row["name"] == name)


def test_a_join_with_a_dead_stream_is_stalled_by_it_and_recovers(db: nm.Database) -> None:
    alive, dying = Sensor(), Sensor()
    register("alive", alive)
    register("dying", dying)
    for name in ("alive", "dying"):
        db.sql(
            f"CREATE STREAM {name} (k INT, ts TIMESTAMP, TIME ts, LATENESS 1 SECOND, "
            f"EVERY 1 SECOND) FROM python WITH (address = '{name}')"
        )
    db.sql(
        "CREATE QUERY pairs AS SELECT A.k, COUNT(*) AS n FROM alive A, dying B "
        "WINDOW (A, B) = 2 SECONDS WHERE A.k = B.k GROUP BY A.k"
    )
    wait_for(lambda: status(db, "pairs").lag is not None)
    wait_for(lambda: status(db, "pairs").phase is QueryPhase.RUNNING)
    dying.speaks.clear()
    wait_for(lambda: status(db, "pairs").phase is QueryPhase.STALLED)
    stalled = status(db, "pairs")
    assert stalled.stalled is not None
    assert (stalled.stalled.reason, stalled.stalled.stream) == (StallReason.HELD, "dying")
    assert stalled.stalled.since is not None
    row = shown(db, "pairs")
    assert (row["state"], row["stalled_by"]) == ("stalled", stalled.stalled.cause)
    lag = stalled.lag or 0
    wait_for(lambda: (status(db, "pairs").lag or 0) > lag)  # though nothing is computed
    dying.speaks.set()
    wait_for(lambda: status(db, "pairs").phase is QueryPhase.RUNNING)
    wait_for(lambda: (status(db, "pairs").watermark or 0) > (stalled.watermark or 0) + SECOND)
    assert (status(db, "pairs").stalled, shown(db, "pairs")["stalled_by"]) == (None, None)
    alive.speaks.clear()
    dying.speaks.clear()
    wait_for(
        lambda: (
            (stall := status(db, "pairs").stalled) is not None
            and stall.reason is StallReason.NO_INPUT
        )
    )


def test_one_dead_sensor_of_a_hundred_does_not_stop_the_others(
    db: nm.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (arrivals, log_store):  # a minute is long for a test
        monkeypatch.setattr(module, "DEFAULT_IDLE", SECOND)
    register("many", many)
    db.sql(
        "CREATE SENSOR TABLE Rooms (room INT, r STREAM(ts TIMESTAMP, TIME ts, "
        "LATENESS 1 SECOND, EVERY 3 SECONDS) FROM python)"
    )
    rows = ", ".join(f"({n}, 'many')" for n in range(100))
    db.sql(f"INSERT INTO Rooms VALUES {rows}")
    explained = db.explain("SELECT COUNT(*) AS n FROM Rooms [RANGE 5 SECONDS]")
    assert "idle after 60s by default" in " ".join(explained.split())
    db.sql("CREATE QUERY counted AS SELECT COUNT(*) AS n FROM Rooms [RANGE 5 SECONDS]")
    wait_for(lambda: any(one.state == "silent" for one in db.sensors("Rooms")))
    first = wait_for(lambda: status(db, "counted").lag and status(db, "counted").watermark)
    wait_for(lambda: (status(db, "counted").watermark or 0) > first + 2 * SECOND)
    wait_for(lambda: status(db, "counted").phase is QueryPhase.RUNNING)
    (stream,) = db.streams()
    assert (stream.silent, stream.silent_since, stream.held_since) == (1, None, None)
    assert [one.sensor for one in db.sensors("Rooms") if one.state == "silent"] == ["7"]
