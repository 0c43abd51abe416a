"""Settings that all tests share."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine, event

from nilometer.sensors.catalog.catalog import SensorCatalog
from tests.examples import pytest_collection_modifyitems  # noqa: F401  a hook
from tests.limits import pytest_configure, pytest_runtest_protocol  # noqa: F401  hooks
from tests.mosquitto import Mosquitto, start_mosquitto
from tests.patience import LONG
from tests.postgres import Postgres, start_postgres

collect_ignore = ["smoke"]  # scripts/spark_versions.sh runs it against an installed package

os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1"
"""Java compiles less: a process that lives for minutes is ready with half the work."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts tests in the background lets them ignore SIGINT, which some tests send.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "nilometer",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("nilometer")


def pytest_collection_finish() -> None:
    """Freeze imported and collected objects: the cycle collector need not scan them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_forced_to_the_disk() -> Iterator[None]:
    """Force no files to the disk: no test loses power, and thousands would wait for it."""

    def hurry(connection: Any, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", hurry)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda _: None)
        yield
    event.remove(Engine, "connect", hurry)


@pytest.fixture(scope="session", autouse=True)
def answers_may_take_long() -> Iterator[None]:
    """Without its own timeout a request waits for 5 seconds; a busy machine may need more."""
    with pytest.MonkeyPatch.context() as patch:
        for part in ("connect", "read", "write", "pool"):
            patch.setattr(DEFAULT_TIMEOUT_CONFIG, part, LONG)
        yield


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker of the test's own that stores nothing and accepts everybody."""
    with start_mosquitto(tmp_path / "mosquitto") as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests that need one."""
    with start_postgres() as server:
        yield server


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a catalog of the test's own, in either database."""
    if request.param == "SQLite":
        return str(tmp_path / "catalog.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[SensorCatalog]:
    """An empty catalog, in either database."""
    with SensorCatalog.open(catalog_url) as opened:
        yield opened
