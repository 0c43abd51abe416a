"""Opening a catalog: by path or URL, new or old, by several at once, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from nilometer.errors import CatalogError, InstallationError
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.engine import open_engine
from nilometer.sensors.catalog.schema import VERSION_TABLE, metadata
from nilometer.sensors.declaration import Declaration
from tests.forks import FORKS
from tests.patience import LONG
from tests.postgres import Postgres

SENSORS = Declaration(
    "S", pa.schema({"x": pa.int32()}), "http", static=pa.schema({"k": pa.int32()}), column="r"
)
EACH = 10
_meeting: Barrier


def test_migrations_make_what_the_schema_says(catalog_url: str) -> None:
    SensorCatalog.open(catalog_url).close()
    engine = open_engine(catalog_url)
    with engine.connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_a_catalog_of_a_later_version_is_refused(catalog_url: str) -> None:
    with SensorCatalog.open(catalog_url) as catalog:
        catalog.create(SENSORS)
    _run(catalog_url, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(CatalogError) as caught:
        SensorCatalog.open(catalog_url)
    assert caught.value.message == "the catalog was written by a later version of Nilometer"
    assert caught.value.hint == "upgrade Nilometer"
    assert "has revision 9999, this version knows 0009" in str(caught.value.detail)
    _run(catalog_url, f"UPDATE {VERSION_TABLE} SET version_num = '0009'")
    with SensorCatalog.open(catalog_url) as catalog:
        assert catalog.declarations() == [SENSORS]


@pytest.mark.parametrize("revision", ["0001", "0008"])
def test_a_catalog_from_before_the_first_release_is_refused(
    catalog_url: str, revision: str
) -> None:
    """Nothing in it is changed, whatever tables it has."""
    with SensorCatalog.open(catalog_url) as catalog:
        catalog.create(SENSORS)
    _run(catalog_url, "CREATE TABLE nilometer_readers (log VARCHAR)")
    _run(catalog_url, "DROP TABLE nilometer_alerts")
    _run(catalog_url, f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'")
    before = _tables(catalog_url)
    with pytest.raises(CatalogError) as caught:
        SensorCatalog.open(catalog_url)
    assert caught.value.message == "the catalog was written before the first release of Nilometer"
    assert f"has revision {revision}, this version knows 0009" in str(caught.value.detail)
    assert (
        caught.value.hint
        == "create the database anew in another place, with its streams and queries"
    )
    assert _tables(catalog_url) == before


def _tables(url: str) -> set[str]:
    engine = open_engine(url)
    try:
        return set(inspect(engine).get_table_names())
    finally:
        engine.dispose()


def _run(url: str, statement: str) -> None:
    engine = open_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    """Two processes that begin their work at the same time."""
    with ProcessPoolExecutor(2, FORKS, _meet_at, (FORKS.Barrier(2),)) as pool:
        yield pool


def _meet_at(barrier: Barrier) -> None:
    global _meeting  # noqa: PLW0603 - a barrier reaches a process only when it starts
    _meeting = barrier


def test_processes_may_open_and_change_it_at_the_same_time(
    processes: ProcessPoolExecutor, catalog_url: str
) -> None:
    for job in [processes.submit(_meet_and_change, catalog_url) for _ in range(2)]:
        job.result(LONG)
    _assert_all_there(catalog_url, 2)


def _meet_and_change(url: str) -> None:
    _meeting.wait(LONG)
    _open_and_change(url)


def _change(catalog: SensorCatalog) -> None:
    catalog.create(SENSORS, if_not_exists=True)
    catalog.create_table("T", pa.schema({"k": pa.int64()}), if_not_exists=True)
    for number in range(EACH):
        catalog.insert_sensors("S", [({"k": number}, "a"), ({"k": number}, "b")])
        catalog.insert_rows("T", pa.table({"k": [number]}))
        catalog.change_rows("T", _count_up)


def _count_up(rows: pa.Table) -> pa.Table:
    return pa.table({"k": [*rows["k"].to_pylist(), -1]})


def _assert_all_there(url: str, workers: int) -> None:
    with SensorCatalog.open(url) as catalog:
        sensors = catalog.sensors("S")
        assert sorted(one.version for one in sensors) == list(range(1, workers * EACH * 2 + 1))
        assert sorted(one.values["k"] for one in sensors) == sorted(  # type: ignore[type-var]
            [*range(EACH), *range(EACH)] * workers
        )
        table = catalog.table("T")
        assert table is not None
        assert sorted(table["k"].to_pylist()) == sorted([*range(EACH), *[-1] * EACH] * workers)


def test_threads_may_share_one_or_open_their_own(catalog_url: str) -> None:
    with SensorCatalog.open(catalog_url) as shared, ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(_change, shared) for _ in range(2)]
        jobs += [pool.submit(_open_and_change, catalog_url) for _ in range(2)]
        for job in jobs:
            job.result()
    _assert_all_there(catalog_url, 4)


def _open_and_change(url: str) -> None:
    with SensorCatalog.open(url) as catalog:
        _change(catalog)


def test_a_change_that_fails_leaves_nothing(catalog: SensorCatalog) -> None:
    catalog.create_table("T", pa.schema({"k": pa.int64()}))
    catalog.insert_rows("T", pa.table({"k": [1]}))
    before = catalog.generation()
    with pytest.raises(ZeroDivisionError):
        catalog.change_rows("T", lambda rows: 1 // 0)  # type: ignore[arg-type, return-value]
    assert catalog.generation() == before
    assert catalog.count_rows("T") == 1


def test_paths_and_sqlite_urls_are_one(tmp_path: Path) -> None:
    path = tmp_path / "some %20 folder" / "c.db"
    with SensorCatalog.open(path) as catalog:
        catalog.create(SENSORS)
    with SensorCatalog.open(str(path)) as catalog:
        assert catalog.declarations() == [SENSORS]
    url = f"sqlite:///{tmp_path}/plain.db"
    with SensorCatalog.open(url) as catalog:
        catalog.create(SENSORS)
    assert (tmp_path / "plain.db").exists()


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg", "postgres"])
def test_every_spelling_of_postgresql_is_taken(postgres: Postgres, scheme: str) -> None:
    url = postgres.new_database().replace("postgresql", scheme, 1)
    with SensorCatalog.open(url) as catalog:
        assert catalog.create(SENSORS)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://nile:secret@host/db", "a catalog is kept in SQLite or PostgreSQL"),
        ("sqlite://", "a catalog needs a file or a server"),
        ("sqlite:///:memory:", "a catalog needs a file or a server"),
        ("postgresql://host:secret/db", "this is not the URL of a database"),
        ("://secret", "this is not the URL of a database"),
    ],
)
def test_other_urls_are_refused_without_their_passwords(url: str, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        SensorCatalog.open(url)
    assert caught.value.message == message
    assert "give the path of a file, or postgresql://" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_server_that_is_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        SensorCatalog.open(f"postgresql://nile:secret@/db?host={tmp_path}")
    assert caught.value.message == "the catalog cannot be used"
    assert "postgresql+psycopg://nile:***@/db" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InstallationError) as caught:
        SensorCatalog.open("postgresql://host/db")
    assert caught.value.message == (
        "a catalog in PostgreSQL needs psycopg: pip install 'nilometer[postgres]'"
    )


def test_a_place_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CatalogError, match="the catalog file cannot be opened or created"):
        SensorCatalog.open(tmp_path / "file" / "c.db")
    with pytest.raises(CatalogError, match="the catalog file cannot be opened or created"):
        SensorCatalog.open(tmp_path)


def test_a_server_that_was_away_is_used_again(catalog_url: str) -> None:
    with SensorCatalog.open(catalog_url) as catalog:
        catalog.create(SENSORS)
        if catalog_url.startswith("postgresql"):
            _run(
                catalog_url,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
        assert catalog.declarations() == [SENSORS]
