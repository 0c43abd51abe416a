"""The Spark streaming queries of an engine, with queries that a test ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from nilometer.engine.plan_set import APART
from nilometer.errors import NilometerError
from nilometer.spark import engine_streams
from nilometer.spark.engine_streams import EngineStreams


class Stream:
    """A streaming query of Spark's."""

    def __init__(self) -> None:
        self.isActive = True

    def exception(self) -> Exception | None:
        return NilometerError("a task failed")

    def stop(self) -> None:
        self.isActive = False
        raise RuntimeError("Spark is gone")


class Started(EngineStreams):
    """Starts streams that do nothing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(cast(SparkSession, None), folder, 1)
        self.fails = 0
        """How many of the next starts fail."""
        self.made: list[tuple[int, Stream]] = []

    def _start_in_spark(self, first: int) -> Any:
        if self.fails:
            self.fails -= 1
            raise NilometerError("there is no room")
        self.made.append((first, Stream()))
        return self.made[-1][1]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(engine_streams.time, "monotonic", lambda: now[0])
    return now


def test_buckets_that_are_shared_have_one_stream(tmp_path: Path) -> None:
    streams = Started(tmp_path)
    for bucket in (0, 3, APART, 1, APART + 1, APART):
        streams.start(bucket)
    assert [first for first, _ in streams.made] == [0, APART, APART + 1]
    assert all(streams.is_active(bucket) for bucket in (0, 7, APART, APART + 1))
    streams.stop(APART)
    assert not streams.is_active(APART)
    assert streams.is_active(2)
    streams.stop_all()
    assert streams.running == []
    assert not any(stream.isActive for _, stream in streams.made)


def test_a_start_that_fails_is_tried_once_more(tmp_path: Path) -> None:
    streams = Started(tmp_path)
    streams.fails = 1
    streams.start(0)
    assert streams.is_active(0)
    streams.stop_all()
    streams.fails = 2
    with pytest.raises(NilometerError, match="no room"):
        streams.start(0)


def test_one_that_ends_is_started_again_after_growing_pauses(
    tmp_path: Path, clock: list[float]
) -> None:
    streams = Started(tmp_path)
    streams.start(0)
    streams.made[0][1].isActive = False
    streams.fails = 4  # two attempts, each tried twice
    pauses = []
    while not streams.is_active(0):
        streams.start_again()
        before = streams.restarts
        trouble = streams.trouble(5)
        assert trouble is not None
        began = clock[0]
        while not streams.is_active(0) and streams.restarts == before:
            clock[0] += 0.25
            streams.start_again()
        pauses.append(clock[0] - began)
    assert pauses == [0.5, 1.0, 2.0]
    assert streams.restarts == 3
    assert "no room" in str(trouble)
    streams.has_worked(4)
    assert streams.trouble(0) is None
