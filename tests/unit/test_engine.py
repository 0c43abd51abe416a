"""Many queries in one engine, without Spark: whatever happens, the logs hold what each would give
alone. Workers come and go, two may work on the same bucket, and the publisher may end anywhere."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from nilometer.engine import bucket as bucket_module
from nilometer.engine import bucket_files, log_reads
from nilometer.engine import publisher as publisher_module
from nilometer.engine.bucket import Bucket, MicroBatchTask
from nilometer.engine.bucket_files import BucketFolder, QueryEntry
from nilometer.engine.control import EngineControl, _kept_of
from nilometer.engine.folder import LocalFolder
from nilometer.engine.place import EnginePlace, LocalPlace, ServedPlace
from nilometer.engine.plan import HostedPlan, OpenedFeed, make_plan
from nilometer.engine.plan_set import PLANS_FILE, PlanEntry, PlanFolder
from nilometer.engine.publisher import Publisher
from nilometer.engine.query_run import HostedRun
from nilometer.engine.result_rows import with_time
from nilometer.engine.serve_folder import FolderServer
from nilometer.engine.stuck_results import stuck_results
from nilometer.engine.subplan_run import SubPlanRun
from nilometer.errors import LogError
from nilometer.kernels.row_errors import RowErrors, leaving_out
from nilometer.local.database import NoEngine
from nilometer.local.run_changes import LocalChanges
from nilometer.local.run_query import LocalQuery, LocalUnion
from nilometer.log.layout import TIMESTAMP, LogLayout
from nilometer.log.options import LogOptions
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter, make_log
from nilometer.operators.watermarks import StreamClock
from nilometer.sql.catalog import Catalog, Relation
from nilometer.sql.compile import compile_statement
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan, UnionPlan
from nilometer.sql.statements import read_query
from tests.examples import share_of
from tests.file_systems import register_file_system
from tests.unit.log_samples import ObjectStore

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", TIMESTAMP)])
LAYOUT = LogLayout(SCHEMA, "ts")
STREAMS = ("A", "B")
TABLE = pa.RecordBatch.from_pylist([{"id": 1, "name": "one"}, {"id": 2, "name": "two"}])
STATEMENTS = (
    "SELECT k, v FROM A WHERE v > 40",
    "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM A [RANGE 20 MILLISECONDS] GROUP BY k EMIT CHANGES",
    "SELECT DISTINCT k FROM B [RANGE 15 MILLISECONDS] EMIT CHANGES",
    "SELECT A.v AS a, B.v AS b FROM A, B WHERE A.k = B.k WINDOW = 10 MILLISECONDS",
    "SELECT A.v, T.name FROM A JOIN T ON A.k = T.id",
    "SELECT k, v FROM A WHERE k = 1 UNION ALL SELECT k, v FROM B WHERE k = 2",
    "SELECT k, v FROM A [ROWS 3] ORDER BY v DESC LIMIT 2 EMIT CHANGES",
    "SELECT window.start AS w, COUNT(*) AS n FROM A GROUP BY window(ts, '10 milliseconds')",
    "SELECT k, 100 / (v % 5) AS x FROM B",
    "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM A [RANGE 9 MILLISECONDS] "
    "GROUP BY k) AS S GROUP BY n EMIT CHANGES",
)
KIN = (
    (
        STATEMENTS[3],
        "SELECT 100 / (A.v % 5) AS x, B.v AS b FROM A, B WHERE A.k = B.k WINDOW = 10 MILLISECONDS",
        "SELECT B.v - A.v AS d FROM A, B WHERE A.k = B.k WINDOW = 10 MILLISECONDS",
    ),
    (
        "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM A [RANGE 12 MILLISECONDS] GROUP BY k) AS S "
        "EMIT CHANGES",
        "SELECT k, n > 1 AS many FROM (SELECT k, COUNT(*) AS n FROM A [RANGE 12 MILLISECONDS] "
        "GROUP BY k) AS S EMIT CHANGES",
        "SELECT k, 6 / (n - 2) AS x FROM (SELECT k, COUNT(*) AS n FROM A [RANGE 12 MILLISECONDS] "
        "GROUP BY k) AS S WHERE n < 4 EMIT CHANGES",
    ),
    (
        "SELECT k, w FROM (SELECT DISTINCT k, v % 2 AS w FROM B [RANGE 15 MILLISECONDS]) AS S "
        "EMIT CHANGES",
        "SELECT k, w, 1 / w AS x FROM (SELECT DISTINCT k, v % 2 AS w FROM B "
        "[RANGE 15 MILLISECONDS]) AS S WHERE k < 2 EMIT CHANGES",
    ),
)
"""Statements whose sub-plans are the same, with other parts above them."""


class World:
    """Two logs, and an engine of two buckets; of two workers, one is on another machine."""

    def __init__(self, folder: Path, known: set[str] | None = None) -> None:
        """`known` are queries whose state is there already."""
        self.folder = folder
        self.place = str(folder / "logs")
        """Where logs of results are."""
        self.logs = {name: str(folder / "logs" / name.lower()) for name in STREAMS}
        self.writers = {
            name: LogWriter.open(log, LAYOUT, LogOptions(history=1 << 60))
            for name, log in self.logs.items()
        }
        clock = StreamClock(stated=True)
        relations = {
            name: Relation(name, tuple(SCHEMA.names), tuple(SCHEMA.types), "ts", clock)
            for name in STREAMS
        }
        ended = StreamClock(ended=True)
        names, kinds = tuple(TABLE.schema.names), tuple(TABLE.schema.types)
        relations["T"] = Relation("T", names, kinds, clock=ended, is_table=True)
        self.catalog = Catalog(relations, {}, NoEngine())
        self.engine = folder / "engine"
        self.control = EngineControl(self.engine, 2)
        self.control.open(known or set(), str(folder / "logs"))
        self.publisher = Publisher(self.engine)
        self.server = FolderServer(self.engine, "127.0.0.1")
        self.workers: list[dict[int, Bucket]] = [{}, {}]
        self.places = [self.new_place(0), self.new_place(1)]
        self.poisoned = set[str]()
        """Queries that fail in their next micro-batch,"""
        self.poisoned_below = set[str]()
        """or whose sub-plan fails."""
        self.shared = 0
        """How many times a query was fed by the sub-plan of another one."""

    def has_failed(self, query: str) -> bool:
        """Whether a query has failed since it was last started."""
        entry = self.control.entry(query)
        assert entry is not None
        kept, _ = _kept_of(PlanFolder(self.engine).files(entry.bucket), query)
        return kept.failed == entry.attempt

    def failing(self, feed: Callable[..., Any]) -> Callable[..., Any]:
        """Feeds a query, which fails where it is to."""

        def fail(run: HostedRun, *given: Any) -> Any:
            result = feed(run, *given)
            names = {one.name for one in run.hosted.feeds}
            self.shared += names.isdisjoint({one.name for one in run.subplan.plan.feeds})
            if result is not None and not self.poisoned.isdisjoint(names):
                self.poisoned -= names
                raise ArithmeticError("poison")
            return result

        return fail

    def failing_below(self, process: Callable[..., Any]) -> Callable[..., Any]:
        """Feeds a sub-plan, which fails where it is to, when it has done all."""

        def fail(subplan: SubPlanRun, *given: Any) -> Any:
            result = process(subplan, *given)
            names = {one.name for one in subplan.plan.feeds}
            if result is not None and not self.poisoned_below.isdisjoint(names):
                self.poisoned_below -= names
                raise ArithmeticError("poison")
            return result

        return fail

    def new_place(self, worker: int) -> EnginePlace:
        """How a worker reaches the files."""
        return ServedPlace(self.server.address) if worker else LocalPlace(self.engine)

    def plan(self, sql: str) -> Plan:
        return compile_statement(read_query(sql), self.catalog, 1)

    def results(self, query: str) -> str:
        return f"{self.place}/{query}"

    def start(
        self,
        query: str,
        sql: str,
        starts: Mapping[str, Position],
        *,
        disk: int | None = None,
        dead: bool = True,
        shed: int | None = None,
        shed_by: str | None = None,
    ) -> None:
        """Let a query run."""
        plan = make_plan(self.plan(sql), {"T": TABLE}, shed_by)
        feeds = tuple(
            OpenedFeed(
                feed,
                self.logs[feed.relation],
                starts[feed.relation],
                query,
                LAYOUT,
            )
            for feed in plan.feeds
        )
        letters = f"{self.results(query)}.dead" if dead else None
        log_id = make_log(self.results(query), plan.layout)
        hosted = HostedPlan(plan, feeds, "zstd", letters, shed)
        entry = PlanEntry(
            query,
            0,
            None,
            results=self.results(query),
            log_id=log_id,
            history=1 << 60,
            disk=disk,
            dead_letters=letters,
            needs_now=plan.needs_now,
        )
        self.control.run(pickle.dumps(hosted), entry)

    def ends(self) -> dict[str, Position]:
        return {name: writer.end for name, writer in self.writers.items()}

    def run(self, bucket: int, worker: int = 0) -> None:
        """A micro-batch of one bucket, in one of the workers."""
        host = self.workers[worker].get(bucket)
        if host is None:
            host = self.workers[worker][bucket] = Bucket(self.places[worker], bucket)
        ends = {self.logs[name]: end for name, end in self.ends().items()}
        host.run(MicroBatchTask(self.control._set.revision, ends, 0))

    def run_somewhere(self, chance: random.Random) -> None:
        """A micro-batch that may be lost with its worker, before or after its file is there.

        Or another worker runs it meanwhile, and is faster.
        """
        bucket, worker = chance.randrange(2), chance.randrange(2)
        end = chance.choice(("done", "done", "done", "before", "after", "slower"))
        write = BucketFolder.write

        def lose(folder: BucketFolder, *given: Any, **more: Any) -> Any:
            if end == "slower":
                patch.undo()
                self.run(bucket, 1 - worker)
                return write(folder, *given, **more)
            if end == "after":
                write(folder, *given, **more)
            raise Lost

        if end == "done":
            self.run(bucket, worker)
            return
        with pytest.MonkeyPatch.context() as patch, suppress(Lost):
            patch.setattr(BucketFolder, "write", lose)
            self.run(bucket, worker)
            return
        self.workers[worker] = {}
        self.places[worker] = self.new_place(worker)

    def publish(self, chance: random.Random) -> None:
        """Publish, and maybe end in the middle of it."""
        left = chance.choice((1, 2, 1000))
        append = LogWriter.append_frames

        def lose(writer: LogWriter, *given: Any, **more: Any) -> bool:
            nonlocal left
            left -= 1
            done = append(writer, *given, **more) if left or chance.random() < 0.5 else False
            if not left:
                raise Lost
            return done

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LogWriter, "append_frames", lose)
            try:
                self.publisher.step()
            except Lost:
                self.new_publisher()
        if chance.random() < 0.3:
            self.publisher.force()

    def move(self, query: str, to: int, chance: random.Random) -> None:
        """Move a query that runs to another bucket, which may be running meanwhile."""
        before = self.control.entry(query)
        assert before is not None
        assert before.plan is not None
        self.control.stop(query)
        self.run(before.bucket, chance.randrange(2))
        while self.publisher.step():
            pass
        self.publisher.force()
        write, worker = BucketFolder.write, chance.choice((None, 0, 1))

        def be_slower(folder: BucketFolder, *given: Any, **more: Any) -> Any:
            patch.undo()
            if worker is not None:
                self.run(to, worker)
            return write(folder, *given, **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BucketFolder, "write", be_slower)
            assert self.control.move(query, before.plan, to) == to

    def new_publisher(self) -> None:
        for one in self.publisher._open.values():
            one.writer.close()
        self.publisher = Publisher(self.engine)

    def settle(self) -> None:
        """Let everything be done that is to do."""
        for _ in range(200):
            for number in (0, 1):
                self.run(number)
            progressed = self.publisher.step()
            if not progressed and not any(map(self.publisher.is_behind, (0, 1))):
                return
        raise AssertionError("it does not come to an end")

    def add_rows(self, chance: random.Random, now: int) -> int:
        """A few rows for one of the logs, in the order of time."""
        writer = self.writers[chance.choice(STREAMS)]
        times = sorted(now + chance.randrange(5) for _ in range(chance.randrange(1, 5)))
        rows = [
            {"k": chance.randrange(3), "v": chance.randrange(100), "ts": 1000 * one}
            for one in times
        ]
        columns = [pa.array([r[f.name] for r in rows], pa.int64()).cast(f.type) for f in SCHEMA]
        stored = writer.layout.stored
        columns += [pa.array(range(len(rows)), pa.int64())] * (len(stored) - len(SCHEMA))
        batch = pa.RecordBatch.from_arrays(columns, schema=stored)
        writer.append(batch, watermark=1000 * max(times))
        return times[-1]

    def alter(self, chance: random.Random, number: int) -> None:
        """Another column for one of the logs, or one less; queries go on with those they know."""
        name = chance.choice(STREAMS)
        before = self.writers[name].layout.stored
        is_more = len(before) == len(SCHEMA) or chance.random() < 0.6
        added = f"c{number}"
        stored = before.append(pa.field(added, pa.int64())) if is_more else before.remove(3)
        options = LogOptions(history=1 << 60, segment=chance.choice((500, 1 << 20)))
        self.writers[name].close()
        self.writers[name] = LogWriter.open(
            self.logs[name], LogLayout(stored, "ts"), options, may_change=True
        )

    def close(self) -> None:
        for one in self.publisher._open.values():
            one.writer.close()
        for writer in self.writers.values():
            writer.close()
        self.server.close()

    def published(self, query: str) -> Counter[Any]:
        """The results in a query's log, each of them with how often it is there."""
        log = LogReader.open(self.results(query))
        rows = [row for one in log.read(log.start) for row in one.rows.to_pylist()]
        return Counter(tuple(row.items()) for row in rows)


@dataclass
class Query:
    """A query of a history, and what it must have given."""

    sql: str
    starts: dict[str, Position]
    runs: bool = True


def expected(world: World, query: Query, until: Mapping[str, Position]) -> Counter[Any]:
    """What the local engine gives, in one go, for the rows that a query has read."""
    known = world.catalog.relations
    relations = {
        name: one if one.is_table else replace(one, clock=StreamClock())
        for name, one in known.items()
    }
    catalog = replace(world.catalog, relations=relations)
    plan = with_time(compile_statement(read_query(query.sql), catalog, 1))
    rows = {}
    for name, log in world.logs.items():
        read = LogReader.open(log, LAYOUT)
        frames = [one.rows for one in read.read(query.starts[name], until[name])]
        table = pa.Table.from_batches(frames, read.layout.stored).combine_chunks()
        if len(table):
            rows[name] = table.to_batches()[0]
    with leaving_out(RowErrors()):
        answer = _local(plan).feed(rows, 0)
    return Counter(tuple(row.items()) for row in answer.to_pylist())


def _local(plan: Plan) -> LocalChanges | LocalUnion | LocalQuery:
    held = {"T": TABLE}
    if isinstance(plan, ChangesPlan):
        return LocalChanges(plan, None, held)
    return LocalUnion(plan, held) if isinstance(plan, UnionPlan) else LocalQuery(plan, held)


HAPPENS = {
    "rows": 8,
    "run": 10,
    "create": 3,
    "stop": 1,
    "start": 2,
    "drop": 1,
    "alter_stream": 1,
    "alter_query": 1,
    "replace": 1,
    "take_the_place": 1,
    "move": 2,
    "poison": 1,
    "mend": 2,
    "publish": 5,
    "worker": 1,
    "publisher": 1,
}
"""What may happen in a history, and how often."""


class Lost(BaseException):
    """A worker is gone."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.mark.generated
@pytest.mark.parametrize("seed", [*range(share_of(60)), 3009, 3024])
def test_whatever_happens_every_query_gives_what_it_would_alone(tmp_path: Path, seed: int) -> None:
    check_history(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_the_same_of_thousands_of_histories(tmp_path: Path, part: int) -> None:
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        check_history(tmp_path / str(seed), seed)


def check_history(folder: Path, seed: int) -> None:
    """Let many things happen, and compare every query with the local engine."""
    chance = random.Random(seed)
    world = World(folder)
    if chance.random() < 0.5:
        register_file_system("results", fs.PyFileSystem(ObjectStore()))
        world.place = "results://bucket/plant"
    with pytest.MonkeyPatch.context() as patch, closing(world):
        patch.setattr(publisher_module, "_MOST_COLLECTED", chance.choice((1000, 1 << 20)))
        patch.setattr(bucket_module, "_WHOLE_AFTER_FILES", chance.choice((3, 200)))
        patch.setattr(bucket_module, "CATCH_UP_FOR", chance.choice((0, 0.5)))
        patch.setattr(bucket_files, "_LARGE", chance.choice((100, 1 << 20)))
        max_rows = chance.choice((3, 1000))
        patch.setattr(log_reads.LogReads.__init__, "__defaults__", (max_rows,))
        patch.setattr(HostedRun, "feed", world.failing(HostedRun.feed))
        patch.setattr(SubPlanRun, "_process", world.failing_below(SubPlanRun._process))
        _live(world, chance)


@dataclass
class History:
    """What happens in a world, step by step."""

    world: World
    chance: random.Random
    queries: dict[str, Query] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    """Queries that others are to be in the place of, by these others."""
    now: int = 0
    step: int = 0

    def happen(self) -> None:
        self.step += 1
        what = self.chance.choices(list(HAPPENS), list(HAPPENS.values()))[0]
        getattr(self, what)()

    def one(self, runs: bool | None = None) -> str | None:
        """A query that runs, or does not; or any."""
        names = [n for n, q in self.queries.items() if runs in (None, q.runs)]
        return self.chance.choice(names) if names else None

    def rows(self) -> None:
        self.now = self.world.add_rows(self.chance, self.now)

    def run(self) -> None:
        self.world.run_somewhere(self.chance)

    def create(self) -> None:
        self.begin(f"q{self.step}", from_start=self.chance.random() < 0.5)

    def begin(self, name: str, *, from_start: bool) -> None:
        sql, world = self.statement(), self.world
        starts = {n: w.end for n, w in world.writers.items()}
        if from_start:
            starts = {n: LogReader.open(world.logs[n]).start for n in STREAMS}
        self.queries[name] = Query(sql, starts)
        world.start(name, sql, starts)

    def statement(self) -> str:
        """Any, or one that has the sub-plan of a query that is there."""
        every = [*STATEMENTS, *(sql for kin in KIN for sql in kin)]
        if not self.queries or self.chance.random() < 0.3:
            return self.chance.choice(every)
        sql = self.queries[self.chance.choice(list(self.queries))].sql
        return self.chance.choice(next((kin for kin in KIN if sql in kin), (sql,)))

    def poison(self) -> None:
        """Something that a query, or its sub-plan, does in its next micro-batch is an error."""
        if (name := self.one(runs=True)) is not None:
            self.chance.choice((self.world.poisoned, self.world.poisoned_below)).add(name)

    def mend(self) -> None:
        """Start queries again that have failed."""
        self.world.poisoned.clear()
        self.world.poisoned_below.clear()
        for name, query in self.queries.items():
            if query.runs and self.world.has_failed(name):
                self.world.start(name, query.sql, query.starts)

    def stop(self) -> None:
        if (name := self.one(runs=True)) is not None:
            self.world.control.stop(name)
            self.queries[name].runs = False

    def start(self) -> None:
        if (name := self.one(runs=False)) is not None:
            self.world.start(name, self.queries[name].sql, self.queries[name].starts)
            self.queries[name].runs = True

    def drop(self) -> None:
        if (name := self.one()) is not None:
            self.world.control.drop(name)
            del self.queries[name]

    def alter_stream(self) -> None:
        self.world.alter(self.chance, self.step)

    def alter_query(self) -> None:
        """Another limit: it is started again with its state."""
        if (name := self.one(runs=True)) is not None:
            query, limit = self.queries[name], self.chance.choice((None, 1 << 20))
            self.world.start(name, query.sql, query.starts, disk=limit)

    def replace(self) -> None:
        if (old := self.one()) is not None:
            self.begin(f"r{self.step}", from_start=True)
            self.replaced[f"r{self.step}"] = old

    def take_the_place(self) -> None:
        if self.replaced:
            old = self.replaced.pop(self.chance.choice(list(self.replaced)))
            if self.queries.pop(old, None) is not None:
                self.world.control.drop(old)

    def move(self) -> None:
        if (name := self.one(runs=True)) is not None:
            self.world.move(name, self.chance.randrange(2), self.chance)

    def publish(self) -> None:
        self.world.publish(self.chance)

    def worker(self) -> None:
        self.world.workers[self.chance.randrange(2)] = {}

    def publisher(self) -> None:
        self.world.new_publisher()


def _live(world: World, chance: random.Random) -> None:
    history = History(world, chance)
    for _ in range(60):
        history.happen()
    for name, query in history.queries.items():
        if not query.runs:
            world.start(name, query.sql, query.starts)
    world.settle()
    history.mend()
    world.settle()
    for name, query in history.queries.items():
        assert world.published(name) == expected(world, query, world.ends()), query.sql


def test_a_query_that_raises_fails_alone(world: World) -> None:
    starts = world.ends()
    world.start("good", STATEMENTS[0], starts)
    world.start("bad", "SELECT k, 100 / (v - v) AS x FROM A", starts, dead=False)
    chance, now = random.Random(1), 0
    for _ in range(5):
        now = world.add_rows(chance, now)
    for number in (0, 1):
        world.run(number)
    reports = {one.query: one.content for one in world.control.reports()}
    assert reports["bad"]["failure"]["kind"] == "PredicateError"
    assert "failure" not in reports["good"]
    world.settle()
    assert not [one for one in world.control.reports() if one.query == "bad"]
    wanted = expected(world, Query(STATEMENTS[0], starts), world.ends())
    assert world.published("good") == wanted


def test_a_query_that_is_behind_catches_up_while_others_can_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reads.LogReads.__init__, "__defaults__", (10,))
    starts = world.ends()
    chance, now = random.Random(1), 0
    while world.writers["A"].end.row < 100 or world.writers["B"].end.row < 100:
        now = world.add_rows(chance, now)
    world.start("behind", "SELECT k, v FROM A", starts)
    world.start("small", "SELECT k, v FROM B", {**starts, "B": world.ends()["B"]})
    monkeypatch.setattr(bucket_module, "CATCH_UP_FOR", 0)
    world.run(0)
    reports = {one.query: one.content for one in world.control.reports()}
    assert reports["behind"]["behind"]
    first = Position.from_json(reports["behind"]["positions"][0])
    assert first.row <= 10
    monkeypatch.setattr(bucket_module, "CATCH_UP_FOR", 1000)
    world.run(0)
    reports = {one.query: one.content for one in world.control.reports()}
    assert not reports["behind"]["behind"]
    assert Position.from_json(reports["behind"]["positions"][0]) == world.ends()["A"]
    world.settle()
    wanted = expected(world, Query("SELECT k, v FROM A", starts), world.ends())
    assert world.published("behind") == wanted


def test_an_engine_that_does_not_find_its_plans_drops_nothing(world: World) -> None:
    """An executor that joins later and has another folder there, or a file that is gone."""
    starts, sql = world.ends(), "SELECT k, v FROM A"
    world.start("q", sql, starts)
    chance, now = random.Random(1), 0
    for _ in range(5):
        now = world.add_rows(chance, now)
    plans, aside = world.engine / PLANS_FILE, world.engine / "aside"
    world.run(0)
    plans.rename(aside)
    world.new_publisher()
    with pytest.raises(LogError, match="the set of plans .* is not here"):
        world.publisher.step()
    world.workers = [{}, {}]
    with pytest.raises(LogError, match="the set of plans .* is not here"):
        world.run(0)
    aside.rename(plans)
    world.workers = [{}, {}]
    world.settle()
    assert world.published("q") == expected(world, Query(sql, starts), world.ends())


def test_results_for_an_object_store_become_few_objects(world: World) -> None:
    store = ObjectStore()
    register_file_system("few", fs.PyFileSystem(store))
    world.place = "few://bucket/plant"
    starts = world.ends()
    sql = "SELECT k, v FROM A"
    for name in ("p", "q"):
        world.start(name, sql, starts)
    chance, now = random.Random(1), 0
    for _ in range(10):
        now = world.add_rows(chance, now)
        for number in (0, 1):
            world.run(number)
    world.settle()
    objects = [one for one in store.objects if one.endswith(".seg")]
    assert len([one for one in objects if "/q/" in one]) == 1, objects
    for name in ("p", "q"):
        assert world.published(name) == expected(world, Query(sql, starts), world.ends())


def test_results_that_find_no_room_wait_alone(world: World) -> None:
    starts = world.ends()
    world.start("full", "SELECT k, v FROM A", starts, disk=2000)
    world.start("good", "SELECT k, v FROM A", starts)
    chance, now = random.Random(1), 0
    for _ in range(30):
        now = world.add_rows(chance, now)
        world.settle()
    why = stuck_results(world.engine, "full", attempt=0)
    assert why is not None
    assert why["kind"] == "LogFullError"
    wanted = expected(world, Query("SELECT k, v FROM A", starts), world.ends())
    assert world.published("good") == wanted
    assert world.published("full") != wanted
    world.new_publisher()
    world.start("full", "SELECT k, v FROM A", starts)
    assert stuck_results(world.engine, "full", attempt=0) is not None
    assert stuck_results(world.engine, "full", attempt=1) is None, "of the attempt before"
    world.settle()
    assert world.published("full") == wanted
    assert stuck_results(world.engine, "full", attempt=0) is None


@pytest.mark.parametrize("head", ["old", "new"])
def test_what_a_power_cut_takes_of_results_comes_again_where_it_stood(
    world: World, head: str
) -> None:
    """Results were published, and read, but not forced to the disk yet."""
    starts, sql = world.ends(), "SELECT k, v FROM A"
    world.start("q", sql, starts)
    chance, now = random.Random(1), 0
    for _ in range(10):
        now = world.add_rows(chance, now)
        world.settle()
    world.publisher.force()
    log = Path(world.results("q"))
    forced = {one: one.read_bytes() for one in log.iterdir() if one.is_file()}
    for _ in range(10):
        now = world.add_rows(chance, now)
        world.settle()
    seen = LogReader.open(log).end
    rows = [one.rows.to_pylist() for one in LogReader.open(log).read(Position(0, 0), seen)]
    if head == "new":
        forced[log / "head"] = (log / "head").read_bytes()
    world.new_publisher()
    for file, content in forced.items():
        file.write_bytes(content)
    world.settle()
    assert LogReader.open(log).end == seen
    again = [one.rows.to_pylist() for one in LogReader.open(log).read(Position(0, 0), seen)]
    assert again == rows
    world.add_rows(chance, now)
    world.settle()
    wanted = expected(world, Query(sql, starts), world.ends())
    assert world.published("q") == wanted


def test_the_first_file_of_a_number_wins(tmp_path: Path) -> None:
    folder = BucketFolder(LocalFolder(tmp_path))
    assert folder.write(0, 1, 5, [QueryEntry("q", b"one")], is_whole=True) is not None
    assert folder.write(0, 1, 5, [QueryEntry("q", b"two")], is_whole=True) is None
    (entry,) = folder.read_batch(0).entries
    assert entry.state is not None
    assert folder.read(entry.state) == b"one"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["000000000000.batch"]


@pytest.mark.parametrize("place", [3, 30, -2])
def test_a_damaged_file_is_reported(tmp_path: Path, place: int) -> None:
    folder = BucketFolder(LocalFolder(tmp_path))
    folder.write(0, 1, 5, [QueryEntry("q", b"state of the query")], is_whole=True)
    file = tmp_path / "000000000000.batch"
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    with pytest.raises(LogError, match="damaged or missing"):
        _states(folder)


def _states(folder: BucketFolder) -> list[bytes]:
    entries = folder.read_batch(0).entries
    return [folder.read(one.state) for one in entries if one.state is not None]
