"""CREATE OR REPLACE QUERY and ALTER QUERY … RENAME TO, over handles that do what a test says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from nilometer.database import replace as replace_module
from nilometer.database.home import Home
from nilometer.database.known import Known, Reading
from nilometer.database.new_queries import NewQueries
from nilometer.database.query_status import QueryPhase
from nilometer.database.run_settings import RunSettings
from nilometer.database.statements import run_statement
from nilometer.errors import InputError, SqlError
from nilometer.log.layout import TIME, TIMESTAMP
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, register, registrations
from nilometer.sensors.catalog.altered_catalog import AlteredCatalog
from nilometer.sql.parse.query_text import Statement
from nilometer.sql.plan.changes_plan import Plan
from nilometer.sql.statements import read_one
from tests.patience import wait_for
from tests.running_queries import Starts, append_results, no_plan, open_queries

OLD, NEW = "SELECT k FROM A", "SELECT k + 1 AS k FROM A"


class Killed(BaseException):
    """The process ends here."""


class Plant:
    """A stream with rows, and queries that read it when they are told to."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch
        self.starts = Starts()
        patch.setattr(replace_module, "_WAIT", 0.0)
        patch.setattr("nilometer.database.new_queries.emits_changes", lambda plan: False)
        self.open()

    def open(self) -> None:
        self.opened = ExitStack()
        settings = RunSettings(look_every=3600)
        entered = open_queries(self.folder, self.starts, self.patch, settings)
        self.home, self.queries = self.opened.enter_context(entered)
        self.queries._lifecycle._plan = self._plan

    def _plan(
        self, statement: Statement, reading: Reading, buckets: int | None
    ) -> tuple[Plan, Known]:
        if reading.reader is not None:
            log = LogReader.open(self.home.log_of("A"))
            place = log.start if reading.from_start else log.end
            about = {"query": reading.reader, "where": None}
            register(self.home.log_of("A"), reading.reader, place, about, now=1, named=True)
        return no_plan(statement, reading, buckets)

    def open_again(self) -> None:
        self.opened.close()
        self.open()
        self.queries.resume()

    def run(self, sql: str) -> str:
        read = read_one(sql)
        assert not isinstance(read, Statement)
        return run_statement(read, self.home, self.queries).message

    def read(self, reader: str) -> None:
        """Let a query have read all that there is."""
        log = self.home.log_of("A")
        commit(log, reader, LogReader.open(log).end, now=2)

    def texts(self) -> dict[str, str]:
        return {one.name: one.text for one in self.home.catalog.queries()}

    def readers(self) -> list[str]:
        return [one.reader for one in registrations(self.home.log_of("A"))]


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    made = Plant(tmp_path, monkeypatch)
    made.run("CREATE STREAM A (k BIGINT) FROM http")
    rows = [pa.array([1, 2], pa.int64()), pa.array([1, 2], pa.int64()).cast(TIMESTAMP)]
    writer = made.home.manager._watched["A"].stream.store.writer
    writer.append(pa.RecordBatch.from_arrays(rows, names=["k", TIME]))
    made.run(f"CREATE QUERY q AS {OLD}")
    append_results(made.home, "q", 5)
    yield made
    made.opened.close()


def test_old_results_are_served_until_the_new_query_has_caught_up(plant: Plant) -> None:
    old = plant.home.log_of("q")
    said = plant.run(f"CREATE OR REPLACE QUERY q AS {NEW}")
    assert said.startswith("query q keeps its old text until the new one, q (new), has caught up")
    assert plant.texts() == {"q": OLD, "q (new)": NEW}
    plant.queries.look()
    assert plant.home.log_of("q") == old
    assert LogReader.open(old).end.row == 5
    started = plant.starts.count
    plant.read("q (new)")
    plant.queries.look()
    wait_for(lambda: plant.texts() == {"q": NEW})
    wait_for(lambda: not Path(old).exists())
    assert plant.readers() == ["q (new)"]
    assert plant.starts.count == started
    assert plant.queries.status("q").phase is QueryPhase.RUNNING
    plant.open_again()
    assert plant.texts() == {"q": NEW}
    assert plant.readers() == ["q (new)"]


def test_a_query_that_has_caught_up_at_once_is_there_at_once(plant: Plant) -> None:
    plant.patch.setattr(replace_module, "_WAIT", 60.0)
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: plant.read("q (new)"))
    plant.patch.setattr(replace_module, "time", clock)
    assert plant.run(f"CREATE OR REPLACE QUERY q AS {NEW}") == "query q replaced"
    assert plant.run(f"create or replace query Q AS {NEW} -- the same") == (
        "query q already has this text, and keeps running"
    )
    assert plant.texts() == {"q": NEW}


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    "step",
    [(AlteredCatalog, "replace_query"), (Home, "delete"), (NewQueries, "_free_reader")],
    ids=lambda one: one[1],
)
def test_whoever_ends_in_the_middle_finds_the_old_or_the_new(
    plant: Plant, step: tuple[type, str], before: bool
) -> None:
    function = getattr(*step)

    def die(*given: object) -> None:
        if not before:
            function(*given)
        raise Killed

    with plant.patch.context() as patch, suppress(Killed):
        if step[1] == "_free_reader":
            patch.setattr(*step, die)
        plant.run(f"CREATE OR REPLACE QUERY q AS {NEW}")
        plant.read("q (new)")
        patch.setattr(*step, die)
        plant.queries.replace("q", "q (new)")
    plant.open_again()
    wanted = {"q": OLD} if step[1] == "_free_reader" else {"q": NEW}
    if step[1] == "replace_query" and before:
        assert plant.texts() == {"q": OLD, "q (new)": NEW}
        plant.read("q (new)")
        plant.queries.look()
    wait_for(lambda: plant.texts() == wanted)
    wait_for(lambda: plant.readers() == (["q"] if wanted["q"] == OLD else ["q (new)"]))
    plant.run("DROP QUERY q")
    assert plant.readers() == []
    plant.run(f"CREATE QUERY q AS {NEW}")
    assert LogReader.open(plant.home.log_of("q")).end.row == 0


def test_dropping_a_query_gives_up_what_would_be_in_its_place(plant: Plant) -> None:
    plant.run(f"CREATE OR REPLACE QUERY q AS {NEW}")
    with pytest.raises(SqlError, match="query q is being replaced"):
        plant.run("ALTER QUERY q RENAME TO r")
    plant.run("CREATE OR REPLACE QUERY q AS SELECT k + 2 AS k FROM A")
    assert plant.texts() == {"q": OLD, "q (new)": "SELECT k + 2 AS k FROM A"}
    plant.run("DROP QUERY q")
    assert plant.texts() == {}
    assert plant.readers() == []


def test_what_others_use_is_not_replaced(plant: Plant) -> None:
    plant.run("CREATE QUERY r AS SELECT k FROM q")
    options = "url = 'http://127.0.0.1:1', secret = 'no one knows this one'"
    plant.run(f"CREATE DELIVERY d FROM q TO webhook WITH ({options})")
    with pytest.raises(SqlError) as refused:
        plant.run(f"CREATE OR REPLACE QUERY q AS {NEW}")
    assert refused.value.message == (
        "query q cannot be replaced: query r reads it, delivery d delivers its results"
    )
    with pytest.raises(SqlError, match="q is read under this name by query r"):
        plant.run("ALTER QUERY q RENAME TO s")
    plant.run("DROP QUERY r")
    plant.run("ALTER QUERY q RENAME TO s")
    (delivery,) = plant.home.deliveries.statuses()
    assert delivery.query == "s"


def test_a_renamed_query_goes_on_and_its_name_is_free(plant: Plant) -> None:
    log, started = plant.home.log_of("q"), plant.starts.count
    assert plant.run("ALTER QUERY q RENAME TO R") == "query q is now R"
    assert plant.starts.count == started
    assert plant.queries.status("r").phase is QueryPhase.RUNNING
    assert plant.home.log_of("r") == log
    with pytest.raises(InputError, match="there is no query q"):
        plant.queries.status("q")
    plant.run(f"CREATE QUERY q AS {NEW}")
    assert plant.home.log_of("q") != log
    first, second = plant.readers()
    assert first == "q"
    assert second.startswith("q+")
    plant.open_again()
    assert plant.readers() == [first, second]
    plant.run("DROP QUERY r")
    assert plant.readers() == [second]
    assert not Path(log).exists()
    assert Path(plant.home.log_of("q")).exists()
