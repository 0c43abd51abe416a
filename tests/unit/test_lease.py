"""Two databases with one catalog: one of them has it, for as long as it renews it or lives."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nilometer.database import home as home_module
from nilometer.database.home import Home
from nilometer.database.lease import Lease
from nilometer.errors import CatalogError, InputError, NilometerError
from nilometer.log.clock import now_micros
from nilometer.sensors.catalog import engine as engine_module
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sql.ddl.nodes import ObjectKind
from tests.forks import FORKS
from tests.patience import LONG, wait_for
from tests.postgres import Postgres

MINUTE = 60_000_000


@pytest.fixture
def catalog(postgres: Postgres) -> Iterator[SensorCatalog]:
    with SensorCatalog.open(postgres.new_database()) as opened:
        yield opened


def never(why: NilometerError) -> None:
    raise AssertionError(why)


def test_one_has_it_at_a_time(catalog: SensorCatalog) -> None:
    assert catalog.take_lease("a", "process 1", MINUTE) is None
    assert catalog.take_lease("a", "process 1", MINUTE) is None
    held = catalog.take_lease("b", "process 2", MINUTE)
    assert held is not None
    assert held.description == "process 1"
    assert abs(held.until - now_micros() - MINUTE) < MINUTE // 2
    catalog.release_lease("b")
    assert catalog.take_lease("b", "process 2", MINUTE) == held
    catalog.release_lease("a")
    assert catalog.take_lease("b", "process 2", 0) is None
    assert catalog.take_lease("a", "process 1", MINUTE) is None  # its time was over


def test_who_is_frozen_in_a_transaction_does_not_hold_others_up(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "FROZEN_SECONDS", 1)
    url = postgres.new_database()
    with SensorCatalog.open(url) as frozen, SensorCatalog.open(url) as other:
        with pytest.raises(CatalogError), frozen._in_turn(0):
            assert other.take_lease("b", "process 2", MINUTE) is None
        held = frozen.take_lease("a", "process 1", MINUTE)
        assert held is not None
        assert held.description == "process 2"


def test_of_many_at_the_same_moment_one_gets_it(catalog: SensorCatalog) -> None:
    outcomes: list[object] = []
    ready = threading.Barrier(8)

    def take(name: str) -> None:
        ready.wait()
        try:
            outcomes.append(catalog.take_lease(name, name, MINUTE))
        except CatalogError:  # two of them made the first row
            outcomes.append("another")

    threads = [threading.Thread(target=take, args=(str(n),)) for n in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert outcomes.count(None) == 1


def test_it_is_renewed_and_let_go(catalog: SensorCatalog) -> None:
    lease = Lease(catalog, "a", never, seconds=12.0)
    who = f"process {os.getpid()} of {socket.gethostname()} holds it until 20"
    seen: set[str] = set()

    def was_renewed() -> bool:
        with pytest.raises(InputError, match="the catalog is in use") as refused:
            Lease(catalog, "b", never)
        seen.add(str(refused.value.detail))
        return len(seen) > 1

    wait_for(was_renewed, every=0.2)
    assert all(one.startswith(who) for one in seen)
    lease.close()
    Lease(catalog, "b", never).close()


def test_it_is_lost_to_another_one(catalog: SensorCatalog) -> None:
    errors: list[NilometerError] = []
    lease = Lease(catalog, "a", errors.append, seconds=6.0)
    catalog.release_lease("a")
    assert catalog.take_lease("b", "process 2", MINUTE) is None
    wait_for(lambda: bool(errors))
    assert errors[0].message == "the database was closed: another database holds its catalog"
    assert errors[0].detail == "process 2 has taken it over"
    lease.close()
    held = catalog.take_lease("c", "process 3", MINUTE)
    assert held is not None
    assert held.description == "process 2"


def test_it_is_lost_before_its_time_is_over_if_the_catalog_is_away(
    catalog: SensorCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[NilometerError] = []
    lease = Lease(catalog, "a", errors.append, seconds=0.6)

    def away(*_: object) -> None:
        raise CatalogError("the catalog cannot be used", detail="no route")

    monkeypatch.setattr(catalog, "take_lease", away)
    wait_for(lambda: bool(errors))
    assert errors[0].message == "the database was closed: its catalog cannot be reached"
    monkeypatch.undo()
    lease.close()


def test_a_second_database_does_not_open_the_same_catalog(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.new_database()
    first = Home(tmp_path / "first", url, None, lambda rows, where: set())
    with pytest.raises(InputError, match="the catalog is in use"):
        Home(tmp_path / "second", url, None, lambda rows, where: set())
    first.close()
    Home(tmp_path / "second", url, None, lambda rows, where: set()).close()


def test_who_has_lost_it_changes_nothing(catalog: SensorCatalog, postgres: Postgres) -> None:
    assert catalog.take_lease("a", "process 1", 0) is None
    catalog.create_table("T", pa.schema([("v", pa.int64())]))  # its time is over: nobody minds
    with SensorCatalog(catalog._engine, now_micros) as other:
        assert other.take_lease("b", "process 2", MINUTE) is None
        with pytest.raises(CatalogError, match="another database now holds the catalog") as refused:
            catalog.drop(ObjectKind.TABLE, "T")
        assert refused.value.detail == "process 2 has taken it over"
        assert catalog.find("T") is not None
        other.drop(ObjectKind.TABLE, "T")


def test_a_catalog_in_a_file_is_held_by_one(tmp_path: Path) -> None:
    file = tmp_path / "shared" / "c.sqlite"
    first = open_home(tmp_path / "first", str(file))
    (tmp_path / "link.sqlite").symlink_to(file)
    for path in (file, tmp_path / "link.sqlite"):
        with pytest.raises(InputError, match="c.sqlite is in use") as refused:
            open_home(tmp_path / "second", str(path))
    assert refused.value.detail == (f"process {os.getpid()} of {socket.gethostname()} has it open")
    first.close()
    open_home(tmp_path / "second", str(file)).close()
    own = open_home(tmp_path / "own", None)
    with pytest.raises(InputError, match="catalog.sqlite is in use"):
        open_home(tmp_path / "second", str(tmp_path / "own" / "catalog.sqlite"))
    own.close()


def test_a_copy_of_a_folder_is_another_one(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.new_database()
    open_home(tmp_path / "first", url).close()
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    first = open_home(tmp_path / "first", url)
    with pytest.raises(InputError, match="the catalog is in use"):
        open_home(tmp_path / "copy", url)
    first.close()


def open_home(folder: Path, catalog: str | None, **more: Any) -> Home:
    return Home(folder, catalog, None, lambda rows, where: set(), **more)


# Processes


def hold(folder: Path, catalog: str, pipe: Connection) -> None:
    """Open a database and make the tables that are asked for; say what came of it, and if lost."""
    home_module.Lease = partial(home_module.Lease, seconds=3.0)  # type: ignore[misc, assignment]
    lock = threading.Lock()

    def tell(*what: object) -> None:
        with lock:
            pipe.send(what)

    def lost(why: NilometerError) -> None:
        tell("lost", why.message)

    try:
        home = open_home(folder, catalog, lost=lost)
    except InputError as error:
        tell("refused", error.message, error.detail)
        return
    tell("open")
    while (name := pipe.recv()) is not None:
        try:
            home.catalog.create_table(name, pa.schema([("v", pa.int64())]))
            tell("made", name)
        except CatalogError as error:
            tell("refused", error.message)
    home.close()


class Holder:
    """A process that has, or would like to have, a catalog."""

    def __init__(self, folder: Path, catalog: str) -> None:
        self.pipe, other = FORKS.Pipe()
        self.process = FORKS.Process(target=hold, args=(folder, catalog, other), daemon=True)
        self.process.start()
        other.close()

    def says(self) -> tuple[Any, ...]:
        assert self.pipe.poll(LONG), "it says nothing"
        message: tuple[Any, ...] = self.pipe.recv()
        return message

    def make(self, name: str) -> tuple[Any, ...]:
        self.pipe.send(name)
        return self.says()

    def signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)


@contextmanager
def holder(folder: Path, catalog: str) -> Iterator[Holder]:
    made = Holder(folder, catalog)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.join()
        made.pipe.close()


def until_open(folder: Path, catalog: str) -> Holder:
    """A process that has got the catalog, after as many attempts as it takes."""
    while True:
        made = Holder(folder, catalog)
        if made.says() == ("open",):
            return made
        made.process.join()
        made.pipe.close()


def test_two_processes_have_it_one_after_the_other(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.new_database()
    with holder(tmp_path / "first", url) as first:
        assert first.says() == ("open",)
        assert first.make("T1") == ("made", "T1")
        with holder(tmp_path / "second", url) as second:
            refused, message, detail = second.says()
            assert (refused, message) == ("refused", "the catalog is in use")
            assert f"process {first.process.pid} of {socket.gethostname()}" in detail
        first.signal(signal.SIGSTOP)  # as a machine that sleeps
        second = until_open(tmp_path / "second", url)
        try:
            assert second.make("T2") == ("made", "T2")
            first.pipe.send("T3")
            first.signal(signal.SIGCONT)
            said = {first.says(), first.says()}
            assert ("refused", "another database now holds the catalog") in said
            assert any(one[0] == "lost" for one in said)
            assert second.make("T4") == ("made", "T4")
        finally:
            second.process.kill()
            second.process.join()
            second.pipe.close()
    with SensorCatalog.open(url) as catalog:
        assert sorted(one.name for one in catalog.names()) == ["T1", "T2", "T4"]


def test_a_process_that_was_killed_opens_its_own_again_at_once(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.new_database()
    with holder(tmp_path / "first", url) as first:
        assert first.says() == ("open",)
        first.signal(signal.SIGKILL)
        first.process.join()
    with holder(tmp_path / "first", url) as again:
        assert again.says() == ("open",)
