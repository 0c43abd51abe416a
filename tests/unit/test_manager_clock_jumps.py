"""A clock that jumps, seen in what a real manager stores of readings without a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from nilometer.log.clock import SteadyClock
from nilometer.log.reader import LogReader
from nilometer.sensors.manager.manager import StreamManager
from tests.manager_streams import ONLY, Site, stream
from tests.patience import wait_for

SECOND = 1_000_000
HOUR = 3600 * SECOND
BEGAN = 500_000 * HOUR


class Plant:
    """A site whose machine has a clock that is set by hand."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(folder)
        self.site.rows["S"] = [ONLY]
        self.true = BEGAN
        self.off = 0
        self.said: list[str] = []
        self.sent = 0
        self.clock = self._new_clock()
        self.site.now = self._now

    def _now(self) -> int:
        return self.clock()

    def _new_clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.true + self.off, lambda: self.true, self.said.append)

    @contextmanager
    def manager(self) -> Iterator[StreamManager]:
        """A process: its clock begins with that of the system."""
        self.clock = self._new_clock()
        with self.site.manager(stream(), clock=self.clock) as manager:
            self.site.read("S")
            yield manager

    def after(self, seconds: int) -> int:
        """The time of a reading that comes after so many seconds."""
        for _ in range(min(seconds, 100)):  # sensors are heard meanwhile
            self.true += seconds * SECOND // min(seconds, 100)
            self.clock()
        self.site.lines["a0"].say(float(self.sent))
        self.sent += 1
        wait_for(lambda: len(self.site.stored("S")) == self.sent)
        times = [row["arrived"] for row in self.rows()]
        assert times == sorted(times)
        return times[-1]

    def rows(self) -> list[dict[str, int]]:
        log = LogReader.open(self.site.locate("S"))
        name = log.layout.time
        rows = []
        for frame in log.read(log.start):
            micros = frame.rows.column(name).cast("int64").to_pylist()
            rows += [{"arrived": one} for one in micros]
        return rows


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    return Plant(tmp_path)


def test_a_jump_that_is_taken_back_is_in_no_reading(plant: Plant) -> None:
    with plant.manager() as manager:
        assert plant.after(10) == plant.true
        plant.off = 50 * HOUR
        assert plant.after(30) == plant.true
        assert manager.clock_ahead == 50 * HOUR
        plant.off = 0
        assert plant.after(30) == plant.true
        assert manager.clock_ahead == 0
        assert manager.streams()[0].error is None
    assert "jumped ahead by 180000s" in plant.said[0]
    assert "jumped back to where it was" in plant.said[1]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_after_a_jump_that_lasted_readings_stand_not_still(
    plant: Plant, is_restarted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with plant.manager() as manager:
        plant.off = HOUR
        plant.after(30)
        far = plant.after(90)
        assert far == plant.true + HOUR
        plant.off = 0
        if not is_restarted:
            recover(plant, manager, far)
    if is_restarted:
        with plant.manager() as manager:
            recover(plant, manager, far)
        assert "the log of S is ahead of the clock by" in caplog.text


def recover(plant: Plant, manager: StreamManager, far: int) -> None:
    """Time goes on at half the speed, with the watermark, and is right in the end."""
    times = [plant.after(600) for _ in range(4)]
    assert times[0] >= far
    steps = [after - before for before, after in pairwise(times)]
    assert all(abs(step - 300 * SECOND) < 20 * SECOND for step in steps), steps
    wait_for(lambda: (manager.streams()[0].watermark or 0) >= times[-1])
    error = manager.streams()[0].error
    assert error is not None
    assert error.startswith("its log is ahead of the clock by")
    plant.after(5 * 3600)
    assert plant.after(10) == plant.true
    assert manager.streams()[0].error is None
