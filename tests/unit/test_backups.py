"""Backups at any instant: what is restored goes on with every result once."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nilometer.engine import bucket as bucket_module
from nilometer.engine import bucket_files
from nilometer.log.layout import TIMESTAMP
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter
from nilometer.operators.watermarks import StreamClock
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.stored_queries import HOSTED
from nilometer.sensors.declaration import Declaration
from nilometer.sql.catalog import Relation
from nilometer.upkeep import image as image_module
from nilometer.upkeep import query_state
from nilometer.upkeep.backup import make_backup
from nilometer.upkeep.places import CATALOG_FILE
from nilometer.upkeep.query_state import EngineImage
from nilometer.upkeep.restore import restore_backup
from tests.examples import share_of
from tests.unit.log_samples import OPTIONS_TO_PACK
from tests.unit.test_engine import SCHEMA, STATEMENTS, STREAMS, Query, World, expected

FIRST = "SELECT k, v FROM A WHERE v > 20"
SECOND = "SELECT k, COUNT(*) AS n FROM C [RANGE 20 MILLISECONDS] GROUP BY k EMIT CHANGES"
"""A query over the results of the first one, which is called c."""


OPTIONS = replace(OPTIONS_TO_PACK, history=1 << 60, segment=600)


class Plant(World):
    """An engine beside a catalog: a database, but for Spark."""

    def __init__(self, folder: Path, known: set[str] | None = None) -> None:
        super().__init__(folder, known)
        for name, log in self.logs.items():  # with segments that are full after a few rows
            layout = self.writers[name].layout
            self.writers[name].close()
            self.writers[name] = LogWriter.open(log, layout, OPTIONS)
        self.queries: dict[str, Query] = {}
        names, kinds = ("k", "v", "_time"), (pa.int64(), pa.int64(), TIMESTAMP)
        made = Relation("C", names, kinds, "_time", StreamClock(stated=True))
        relations = {**self.catalog.relations, "C": made}
        self.catalog = replace(self.catalog, relations=relations)
        self.stored = SensorCatalog.open(folder / CATALOG_FILE)
        if known is None:
            for name in STREAMS:
                self.stored.create(Declaration(name, SCHEMA, "synthetic", {}, "ts"))

    def ends(self) -> dict[str, Position]:
        ends = super().ends()
        if "C" in self.logs:
            ends["C"] = LogReader.open(self.logs["C"]).end
        return ends

    def create(self, name: str, sql: str) -> None:
        """A query that begins with the first rows."""
        starts = {one: LogReader.open(log).start for one, log in self.logs.items()}
        self.queries[name] = Query(sql, starts)
        self.stored.create_query(name, sql, "append", options={HOSTED: name})
        self.start(name, sql, starts)
        if name == "c":
            self.logs["C"] = self.results("c")

    def go_on(self, queries: dict[str, Query]) -> None:
        """Let all queries run that were restored."""
        self.queries = queries
        self.logs["C"] = self.results("c")
        for name, query in queries.items():
            self.start(name, query.sql, query.starts)

    def check(self, now: int) -> int:
        """All queries have every result once; rows that pass every filter come last."""
        last = [(0, 99, 1000 * (now + 1))]
        columns = [pa.array(one, pa.int64()) for one in zip(*last, strict=True)]
        columns = [one.cast(field.type) for one, field in zip(columns, SCHEMA, strict=True)]
        for writer in self.writers.values():
            rows = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
            writer.append(rows, watermark=1000 * (now + 1))
        self.settle()
        self.settle()  # what the second one makes of the results of the first
        for name, query in self.queries.items():
            starts = {**dict.fromkeys(self.logs, Position(0, 0)), **query.starts}
            wanted = expected(self, replace(query, starts=starts), self.ends())
            assert self.published(name) == wanted, name
        return now + 1

    def step(self, chance: random.Random, now: int) -> int:
        """Something happens."""
        match chance.choices(("rows", "run", "publish", "pack"), (3, 4, 3, 2))[0]:
            case "rows":
                return self.add_rows(chance, now)
            case "run":
                self.run_somewhere(chance)
            case "publish":
                self.publish(chance)
            case "pack":
                self.writers[chance.choice(STREAMS)].pack()
        return now

    def close(self) -> None:
        super().close()
        self.stored.close()


def disturbed(patch: pytest.MonkeyPatch, chance: random.Random, happen: Callable[[], None]) -> None:
    """Let things happen between the steps of taking an image, a few times."""
    left = chance.choice((0, 3, 6))

    def before(do: Callable[..., Any], how_often: float) -> Callable[..., Any]:
        def done(*given: Any) -> Any:
            nonlocal left
            if left and chance.random() < how_often:
                left -= 1
                happen()
            return do(*given)

        return done

    patch.setattr(image_module, "link", before(image_module.link, 0.02))
    patch.setattr(image_module, "read_head", before(image_module.read_head, 0.4))
    patch.setattr(image_module, "cut_log", before(image_module.cut_log, 0.1))
    patch.setattr(EngineImage, "look", before(EngineImage.look, 0.3))
    patch.setattr(query_state, "_listed", before(query_state._listed, 0.3))
    patch.setattr(image_module, "_PAUSE", 0)


@pytest.mark.one_of(3)
@pytest.mark.generated
@pytest.mark.parametrize("seed", range(share_of(40)))
def test_what_was_backed_up_at_any_instant_goes_on_with_every_result_once(
    tmp_path: Path, seed: int
) -> None:
    check_backups(tmp_path, seed)


def check_backups(folder: Path, seed: int) -> None:
    chance, now = random.Random(seed), 0
    with pytest.MonkeyPatch.context() as patch, closing(Plant(folder / "db")) as plant:
        patch.setattr(bucket_module, "_WHOLE_AFTER_FILES", chance.choice((3, 200)))
        patch.setattr(bucket_files, "_LARGE", chance.choice((100, 1 << 20)))
        now = plant.add_rows(chance, now)
        plant.create("c", FIRST)
        plant.create("d", SECOND)
        for number in range(2):
            plant.create(f"q{number}", chance.choice(STATEMENTS))
        for _ in range(chance.randrange(30)):
            now = plant.step(chance, now)
        for number in range(2):

            def happen() -> None:
                nonlocal now
                if chance.random() < 0.3:
                    now = plant.step(chance, now)
                else:  # results reach their logs, and queries that read those
                    now = plant.add_rows(chance, now)
                    plant.settle()

            with pytest.MonkeyPatch.context() as within:
                disturbed(within, chance, happen)
                make_backup(plant.folder, str(folder / "backups"))
            restored = folder / f"restored {number}"
            restore_backup(str(folder / "backups"), restored)
            with closing(Plant(restored, set(plant.queries))) as again:
                again.go_on({**plant.queries})
                later = again.check(now)
                for _ in range(10):
                    later = again.step(chance, later)
                again.check(later)
            for _ in range(10):
                now = plant.step(chance, now)
        plant.check(now)
        assert not list(plant.folder.glob(".backup-*"))


def test_results_that_another_query_may_have_read_are_not_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, read_head, look = [0], image_module.read_head, EngineImage.look
    with closing(Plant(tmp_path / "db")) as plant:
        plant.create("c", FIRST)
        plant.create("d", SECOND)
        plant.check(1)

        def counted(folder: Path) -> EngineImage:
            looks.append(looks[-1] + 1)
            return look(folder)

        def late(storage: Any) -> Any:
            if looks[-1] == 1 and plant.published("c").total() == 1:
                plant.check(100)  # c has a result more, which d has read
            return read_head(storage)

        monkeypatch.setattr(EngineImage, "look", counted)
        monkeypatch.setattr(image_module, "read_head", late)
        made = make_backup(plant.folder, str(tmp_path / "backups"))
        assert looks[-1] == 2, "once more, after c had results that d may have read"
        assert made.manifest.files
        restore_backup(str(tmp_path / "backups"), tmp_path / "restored")
        with closing(Plant(tmp_path / "restored", set(plant.queries))) as again:
            assert again.published("c").total() == 2
