"""Settings that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from nilometer.sensors.catalog.catalog import SensorCatalog
from tests.examples import pytest_collection_modifyitems  # noqa: F401  a hook
from tests.limits import pytest_configure, pytest_runtest_protocol  # noqa: F401  hooks
from tests.mosquitto import Mosquitto, start_mosquitto
from tests.postgres import Postgres, start_postgres

collect_ignore = ["smoke"]  # scripts/spark_versions.sh runs it against an installed package

settings.register_profile(
    "nilometer",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("nilometer")


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker of the test's own that keeps nothing and lets everybody in."""
    with start_mosquitto(tmp_path / "mosquitto") as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests that need one."""
    with start_postgres() as server:
        yield server


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a catalog of the test's own can be made, in either database."""
    if request.param == "SQLite":
        return str(tmp_path / "catalog.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[SensorCatalog]:
    """An empty catalog, in either database."""
    with SensorCatalog.open(catalog_url) as opened:
        yield opened
