"""When buckets of an engine have something to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.engine.plan_set import APART, PlanEntry, PlanFolder, PlanSet
from nilometer.engine.schedule import SHORTEST, Schedule
from nilometer.log.layout import TIMESTAMP, LogLayout
from nilometer.log.writer import LogWriter

SCHEMA = pa.schema([("v", pa.int64()), ("ts", TIMESTAMP)])


@dataclass
class Bench:
    """A log, a set of plans, and a schedule whose clock stands still."""

    folder: Path
    log: LogWriter
    schedule: Schedule
    behind: set[int] = field(default_factory=set)
    now: float = 100.0
    revision: int = 0

    def plans(self, *entries: PlanEntry) -> None:
        self.revision += 1
        by_id = {one.query: one for one in entries}
        PlanFolder(self.folder).write(PlanSet(self.revision, by_id))

    def entry(self, query: str, bucket: int, **more: bool) -> PlanEntry:
        logs = [(self.log._storage.location, query)]
        return PlanEntry(query, bucket, "plan", logs=logs, **more)

    def add_row(self) -> None:
        rows = pa.RecordBatch.from_pylist([{"v": 1, "ts": None}], SCHEMA)
        self.log.append(rows)

    def due(self, after: float = 1.01 * SHORTEST) -> list[int]:
        self.now += after
        return sorted(self.schedule.due())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with LogWriter.open(tmp_path / "log", LogLayout(SCHEMA, "ts")) as log:
        schedule = Schedule(tmp_path / "engine", 1.0, lambda bucket: bucket in made.behind)
        made = Bench(tmp_path / "engine", log, schedule)
        schedule.clock = lambda: made.now
        yield made


def test_what_reads_a_log_is_due_when_rows_have_come(bench: Bench) -> None:
    bench.plans(bench.entry("a", 0), bench.entry("b", 1))
    assert bench.due() == [0, 1]  # they are new
    assert bench.due() == []
    bench.add_row()
    assert bench.due() == [0, 1]
    assert bench.due() == []


def test_rows_that_keep_coming_are_gathered(bench: Bench) -> None:
    bench.plans(bench.entry("a", 0))
    assert bench.due() == [0]
    bench.add_row()
    assert bench.due(after=SHORTEST / 2) == []
    assert bench.due() == [0]


def test_who_waits_is_not_kept_waiting(bench: Bench) -> None:
    bench.plans(bench.entry("a", 0), bench.entry("b", 1))
    assert bench.due() == [0, 1]
    bench.behind = {1}
    assert bench.due(after=0) == [1]
    bench.behind = set()
    bench.plans(bench.entry("a", 0), bench.entry("b", 1), bench.entry("c", 1))
    assert bench.due(after=0) == [0, 1]


def test_a_query_that_is_apart_is_for_another_schedule(bench: Bench) -> None:
    bench.plans(bench.entry("a", 0), bench.entry("b", APART))
    assert bench.due() == [0]
    other = Schedule(bench.folder, 1.0, lambda _: False, APART)
    assert sorted(other.due()) == [APART]


def test_time_passes_for_those_who_must_know(bench: Bench) -> None:
    bench.plans(bench.entry("a", 0), bench.entry("b", 1, needs_now=True))
    assert bench.due() == [0, 1]
    assert bench.due(after=0.7) == []
    assert bench.due(after=0.7) == [1]


def test_a_log_that_is_gone_keeps_nobody_waiting(bench: Bench) -> None:
    lost = PlanEntry("lost", 0, "plan", logs=[(str(bench.folder / "nothing"), "lost")])
    bench.plans(lost, bench.entry("b", 1))
    assert bench.due() == [0, 1]
    bench.add_row()
    assert bench.due() == [1]
