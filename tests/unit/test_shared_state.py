"""Queries of the shared engine that have the same sub-plan hold its state once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nilometer.engine.bucket_files import BucketFolder
from nilometer.engine.control import EngineControl
from nilometer.engine.plan import HostedPlan, OpenedFeed, make_plan
from nilometer.engine.plan_set import PlanEntry
from nilometer.engine.spelled import NotSpelledError, spelled
from nilometer.engine.subplan import cut_subplan
from nilometer.log.position import Position
from nilometer.operators.window_join import WindowJoinSpec
from tests.unit.test_engine import KIN, LAYOUT, SCHEMA, STATEMENTS, STREAMS, Query, World, expected

JOIN, WINDOWED, DISTINCT = KIN


class Plant(World):
    """A world in which all queries are in one bucket, and rows come to both streams."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.control.cores = 1
        self.chance = random.Random(1)
        self.now = 0
        self.queries: dict[str, Query] = {}

    def create(self, name: str, sql: str, **options: Any) -> None:
        starts = self.ends()
        self.queries[name] = Query(sql, starts)
        self.start(name, sql, starts, **options)

    def pass_time(self, batches: int = 1) -> None:
        for _ in range(batches):
            for _ in range(6):
                self.now = self.add_rows(self.chance, self.now)
            self.run(0)

    def tags(self) -> dict[str, str]:
        """By which queries know that they share."""
        tags = {}
        for one in self.control.reports():
            tags |= {one.query: one.content["subplan"]} if "subplan" in one.content else {}
        return tags

    def check(self, *names: str) -> None:
        self.settle()
        for name in names or self.queries:
            query = self.queries[name]
            assert self.published(name) == expected(self, query, self.ends()), query.sql


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    with closing(Plant(tmp_path)) as made:
        yield made


@pytest.mark.parametrize("kin", KIN)
def test_queries_that_begin_at_different_times_share_once_their_windows_agree(
    plant: Plant, kin: tuple[str, ...]
) -> None:
    for number, sql in enumerate((*kin, kin[0])):
        plant.create(f"q{number}", sql)
        plant.pass_time()
    assert len(set(plant.tags().values())) > 1, "they have not the same rows yet"
    plant.pass_time(40)
    assert len(set(plant.tags().values())) == 1
    (subplan,) = plant.workers[0][0]._held.subplans()
    assert subplan.state_bytes > 0
    plant.check()


def test_queries_with_equal_starts_share_from_the_beginning(plant: Plant) -> None:
    for number in range(3):
        plant.create(
            f"q{number}", "SELECT k, v FROM A [ROWS 3] ORDER BY v DESC LIMIT 2 EMIT CHANGES"
        )
    plant.pass_time()
    assert len(set(plant.tags().values())) == 1
    plant.pass_time(5)
    plant.check()


def test_state_that_is_shared_is_in_the_files_once(tmp_path: Path) -> None:
    sizes = []
    for folder, count in (("one", 1), ("many", 20)):
        with closing(Plant(tmp_path / folder)) as plant:
            for number in range(count):
                plant.create(f"q{number}", JOIN[0])
            plant.pass_time(10)
            files = BucketFolder(plant.control._plans.files(0)._folder)
            chunks = 0
            for number in files.numbers():
                for entry in files.read_batch(number).entries:
                    chunks += sum(extent.length for extent in entry.chunks.values())
            sizes.append(chunks)
    assert sizes[0] == sizes[1] > 0


def test_whoever_leaves_takes_the_state_along(plant: Plant) -> None:
    """Dropped, stopped, moved: the others go on, and whoever comes back shares again."""
    for number in range(4):
        plant.create(f"q{number}", JOIN[number % len(JOIN)])
    plant.pass_time(5)
    assert len(set(plant.tags().values())) == 1
    holder = plant.workers[0][0]._held.subplans()[0].holder
    assert holder is not None
    plant.control.drop(holder)
    del plant.queries[holder]
    first, second, third = plant.queries
    plant.pass_time(3)
    plant.control.stop(first)
    plant.pass_time(3)
    plant.start(first, plant.queries[first].sql, plant.queries[first].starts)
    plant.move(second, 1, plant.chance)
    plant.pass_time(3)
    plant.run(1)
    plant.workers = [{}, {}]  # another process finds all of it in the files
    plant.pass_time(30)
    tags = plant.tags()
    assert tags[first] == tags[third] != tags[second]
    plant.check()


def test_a_row_that_one_query_cannot_compute_fails_it_alone(plant: Plant) -> None:
    plant.create("good", JOIN[0])
    plant.create("bad", JOIN[1], dead=False)
    plant.create("left", JOIN[1])
    plant.create("strict", JOIN[0], dead=False)
    plant.pass_time(10)
    failures = [one for one in plant.control.reports() if "failure" in one.content]
    assert {one.query for one in failures} == {"bad"}
    held = plant.workers[0][0]._held._held
    assert held["good"].run.subplan is held["left"].run.subplan, "rows that fail there are left out"
    assert held["good"].run.subplan is not held["strict"].run.subplan
    plant.check("good", "left", "strict")


def test_rows_that_were_late_are_counted_for_each_query(plant: Plant) -> None:
    plant.create("early", JOIN[0])
    plant.pass_time(2)
    late = pa.RecordBatch.from_pylist([{"k": 1, "v": 1, "ts": 0}]).cast(SCHEMA)
    plant.writers["A"].append(late)
    plant.run(0)
    plant.create("later", JOIN[2])
    plant.pass_time(30)
    counts = {}
    for one in plant.control.reports():
        counts[one.query] = [json.loads(text)["late"] for text in one.content["metrics"]]
    assert counts == {"early": [[1, 0]], "later": [[0, 0]]}
    held = plant.workers[0][0]._held._held
    assert held["early"].run.subplan is held["later"].run.subplan
    plant.workers = [{}, {}]
    plant.writers["A"].append(late)
    plant.pass_time()
    for one in plant.control.reports():
        counts[one.query] = [json.loads(text)["late"] for text in one.content["metrics"]]
    assert counts == {"early": [[2, 0]], "later": [[1, 0]]}


def test_a_file_that_could_not_be_written_is_made_again(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a full disk: the process goes on, and forgets what it has done."""
    plant.create("q", JOIN[0])
    plant.create("r", WINDOWED[0])
    plant.pass_time(2)
    with monkeypatch.context() as patch:

        def full(*_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(BucketFolder, "write", full)
        with pytest.raises(OSError, match="No space"):
            plant.pass_time()
    plant.pass_time(2)
    plant.check()


def test_other_windows_streams_conditions_and_columns_are_other_sub_plans(plant: Plant) -> None:
    def key(sql: str, **options: Any) -> str | None:
        plan = make_plan(plant.plan(sql), {})
        feeds = tuple(
            OpenedFeed(one, plant.logs[one.relation], Position(0, 0), "q", LAYOUT)
            for one in plan.feeds
        )
        return cut_subplan(HostedPlan(plan, feeds, None, "letters", **options))[0].key

    for kin in KIN:
        assert len({key(sql) for sql in kin}) == 1
    others = [
        JOIN[0],
        JOIN[0].replace("= 10", "= 11"),
        JOIN[0].replace("A.k = B.k", "A.k = B.k AND A.v > 3"),
        JOIN[0].replace("A.k = B.k", "A.k = B.k AND A.v > 4"),
        JOIN[0].replace("A.k = B.k", "A.k = B.k AND A.v > B.v"),
        JOIN[0].replace("B.v", "B.k"),
        *(WINDOWED[0].replace("COUNT(*)", one) for one in ("COUNT(*)", "SUM(v)", "MAX(v)")),
        WINDOWED[0].replace("FROM A", "FROM B"),
        WINDOWED[0].replace("12 M", "13 M"),
        *(STATEMENTS[one] for one in (0, 1, 2, 5, 6, 7, 8, 9)),
    ]
    keys = [key(sql) for sql in others]
    assert None not in keys
    assert len(set(keys)) == len(others)
    assert key(JOIN[0], shed_above=5) is None


def test_what_cannot_be_spelled_out_is_like_nothing_else() -> None:
    assert spelled((1, 2.0, "x", None)) == spelled((1, 2.0, "x", None))
    texts = (1, True, 1.0, "1", b"1", -0.0, 0.0, float("nan"), None, (), [], pa.int64(), pa.int32())
    assert len({spelled(one) for one in texts}) == len(texts)
    with pytest.raises(NotSpelledError):
        spelled((len,))


def test_how_fast_a_stream_is_said_to_be_makes_no_other_sub_plan(plant: Plant) -> None:
    stage = make_plan(plant.plan(JOIN[0]), {}).parts[0].stages[0]
    assert isinstance(stage.operator, WindowJoinSpec)
    assert len(stage.operator.loads) == len(STREAMS)
    other = replace(stage, operator=replace(stage.operator, loads=()))
    assert spelled(stage) == spelled(other)


def test_queries_with_the_same_sub_plan_come_to_the_same_bucket_as_long_as_it_has_room(
    tmp_path: Path,
) -> None:
    control = EngineControl(tmp_path, 4)
    control.open(set(), str(tmp_path))

    def place(name: str, sub_plan: str | None) -> int:
        control.run(b"", PlanEntry(name, 0, None, sub_plan=sub_plan))
        entry = control.entry(name)
        assert entry is not None
        return entry.bucket

    assert [place(f"a{n}", None) for n in range(3)] == [0, 1, 2]
    assert [place(f"b{n}", "b") for n in range(3)] == [3, 3, 3]
    assert [place(f"c{n}", "c") for n in range(2)] == [0, 0]
    buckets = [place(f"d{n}", "d") for n in range(60)]
    assert buckets[:16] == [buckets[0]] * 16, "together at first"
    counts = Counter([0, 1, 2, 3, 3, 3, 0, 0, *buckets])
    assert max(counts.values()) - min(counts.values()) <= 16, "not all wait for one bucket"


def test_one_that_has_just_joined_may_be_the_one_that_writes(plant: Plant) -> None:
    """The files have other chunks of it, which those of the shared state replace."""
    plant.create("q0", JOIN[0])
    plant.pass_time()
    plant.create("q1", JOIN[1])
    held = plant.workers[0][0]._held
    while len(held.subplans()) != 1 or held.subplans()[0].holder != "q1":
        plant.now = plant.add_rows(plant.chance, plant.now)
        plant.run(0)
        for query, seconds in (("q0", 1.0), ("q1", 0.0)):  # the faster one is first
            if (one := held.find(query)) is not None:
                one.seconds = seconds
    plant.workers = [{}, {}]
    plant.pass_time(5)
    plant.check()
