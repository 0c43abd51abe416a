"""When there will be no room: against a simulation that lets logs grow second by second."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nilometer.database.home import Home
from nilometer.database.storage_watch import StorageUse, StorageWatch
from nilometer.log.growth import DAY, Growth, LogUse, seconds_until_full
from nilometer.log.options import LogOptions
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER
from nilometer.sensors.catalog.stored_queries import NamedQuery
from tests.unit.log_samples import LAYOUT, rows_from

SECOND = 1_000_000


def simulated(uses: list[LogUse], free: int, limit: int) -> int | None:
    sizes = [float(one.bytes) for one in uses]
    for second in range(1, limit):
        sizes = [
            min(max(one.peak, one.bytes), size + (one.rate or 0))
            for one, size in zip(uses, sizes, strict=True)
        ]
        if sum(sizes) - sum(one.bytes for one in uses) >= free:
            return second
    return None


@pytest.mark.parametrize("seed", range(30))
def test_the_disk_is_full_when_a_simulation_says_so(seed: int) -> None:
    chance = random.Random(seed)
    uses = [
        LogUse(
            "a",
            "stream",
            chance.randint(0, 1000),
            chance.choice([None, chance.randint(500, 5000)]),
            chance.choice([0, 50 * SECOND, FOREVER]),
            chance.choice([None, 0.0, chance.uniform(0.5, 30)]),
        )
        for _ in range(chance.randint(0, 6))
    ]
    free = chance.randint(1, 6000)
    wanted, estimate = simulated(uses, free, 3000), seconds_until_full(uses, free)
    if wanted is None:
        assert estimate is None or estimate > 2990
    else:
        assert estimate is not None
        assert abs(estimate - wanted) <= 1.01


def test_growth_is_that_of_rows_over_a_day() -> None:
    growth = Growth()
    assert growth.rows_per_second is None
    growth.see(0, 100)
    growth.see(SECOND, 200)
    assert growth.rows_per_second is None, "a second is too short"
    growth.see(100 * SECOND, 1100)
    assert growth.rows_per_second == 10
    growth.see(200 * SECOND, 5)
    assert growth.rows_per_second is None, "it is another log"
    growth.see(DAY + 300 * SECOND, 5)
    growth.see(DAY + 400 * SECOND, 205)
    assert growth.rows_per_second == 2


def test_a_log_says_when_its_limit_is_reached() -> None:
    assert LogUse("a", "stream", 100, 1100, FOREVER, 10.0).seconds_left == 100
    assert LogUse("a", "stream", 100, 1100, 50 * SECOND, 10.0).seconds_left is None
    assert LogUse("a", "stream", 100, None, FOREVER, 10.0).seconds_left is None
    assert LogUse("a", "stream", 100, 1100, FOREVER, None).seconds_left is None


def test_little_room_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    query = NamedQuery("q", "SELECT", "append", cast(Any, None), 0, None, {"results": 200_000})
    catalog = SimpleNamespace(declarations=list, queries=lambda: [query], alerts=list)
    home = SimpleNamespace(
        catalog=catalog, folder=tmp_path, log_of=lambda name: str(tmp_path / name)
    )
    now = 0
    watch = StorageWatch(cast(Home, home), lambda: now)
    with (
        caplog.at_level(logging.WARNING, "nilometer.storage"),
        LogWriter.open(tmp_path / "q", LAYOUT, LogOptions(history=FOREVER)) as writer,
    ):
        for number in range(5):
            writer.append(rows_from(number * 100, 100))
            watch.look()
            now += 60 * SECOND
        rows = watch.show().rows
    assert rows is not None
    messages = [one.getMessage() for one in caplog.records if "query q" in one.getMessage()]
    assert len(messages) == 1
    assert "reaches its limit in about" in messages[0]
    first = rows.to_pylist()[0]
    assert (first["name"], first["limit_bytes"], first["history"]) == ("q", 200_000, "forever")
    assert first["bytes_per_day"] > 100_000
    assert first["full_in"] is not None
    assert rows.to_pylist()[-1]["name"] == "(disk)"


def test_the_growth_of_all_logs_agrees_with_when_the_disk_is_full() -> None:
    passing = LogUse("S", "stream", 1_000, None, 0, 500.0)  # what was read is deleted
    daily = LogUse("q", "query", 0, None, DAY, 2.0)
    kept = LogUse("r", "query", 0, None, FOREVER, 10.0)
    free = 10 * 86_400 * 100 + 2 * 86_400  # a hundred days of one, and a day of the other
    left = seconds_until_full((passing, daily, kept), free)
    assert left == 100 * 86_400
    storage = StorageUse((passing, daily, kept), free, left)
    assert storage.bytes_per_day == free // 100
    assert StorageUse((passing, daily), free, None).bytes_per_day == 2 * 86_400
    assert StorageUse((passing,), free, None).bytes_per_day == 0
    unseen = LogUse("S", "stream", 1_000, None, 0, None)
    assert StorageUse((unseen,), free, None).bytes_per_day is None
