"""Two databases with one catalog in PostgreSQL: one of them has it, for as long as it renews it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nilometer.database.home import Home
from nilometer.database.lease import Lease
from nilometer.errors import CatalogError, InputError, NilometerError
from nilometer.sensors.catalog.catalog import SensorCatalog
from tests.patience import wait_for
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
    assert catalog.take_lease("b", "process 2", MINUTE) == "process 1"
    catalog.release_lease("b")
    assert catalog.take_lease("b", "process 2", MINUTE) == "process 1"
    catalog.release_lease("a")
    assert catalog.take_lease("b", "process 2", 0) is None
    assert catalog.take_lease("a", "process 1", MINUTE) is None  # its time was over


def test_of_many_at_the_same_moment_one_gets_it(catalog: SensorCatalog) -> None:
    found: list[str | None] = []
    ready = threading.Barrier(8)

    def take(name: str) -> None:
        ready.wait()
        try:
            found.append(catalog.take_lease(name, name, MINUTE))
        except CatalogError:  # two of them made the first row
            found.append("another")

    threads = [threading.Thread(target=take, args=(str(n),)) for n in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found.count(None) == 1


def test_it_is_renewed_and_let_go(catalog: SensorCatalog) -> None:
    lease = Lease(catalog, "a", never, seconds=0.6)
    for _ in range(10):
        threading.Event().wait(0.1)
        with pytest.raises(InputError, match="the catalog is in use") as refused:
            Lease(catalog, "b", never)
        assert "process" in str(refused.value.detail)
    lease.close()
    Lease(catalog, "b", never).close()


def test_it_is_lost_to_another_one(catalog: SensorCatalog) -> None:
    told: list[NilometerError] = []
    lease = Lease(catalog, "a", told.append, seconds=0.6)
    catalog.release_lease("a")
    assert catalog.take_lease("b", "process 2", MINUTE) is None
    wait_for(lambda: bool(told))
    assert told[0].message == "the database was closed: another one has its catalog"
    assert told[0].detail == "process 2 has taken it over"
    lease.close()
    assert catalog.take_lease("c", "process 3", MINUTE) == "process 2"


def test_it_is_lost_before_its_time_is_over_if_the_catalog_is_away(
    catalog: SensorCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[NilometerError] = []
    lease = Lease(catalog, "a", told.append, seconds=0.6)

    def away(*_: object) -> None:
        raise CatalogError("the catalog cannot be used", detail="no route")

    monkeypatch.setattr(catalog, "take_lease", away)
    wait_for(lambda: bool(told))
    assert told[0].message == "the database was closed: its catalog cannot be reached"
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
