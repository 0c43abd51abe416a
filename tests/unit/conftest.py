"""What several test files share: a broker that tells everything, and a site with sensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.manager_streams import ONLY, Site, sensors
from tests.mosquitto import Mosquitto, start_mosquitto

if TYPE_CHECKING:
    from nilometer.client import Client
    from tests.results_server import StoredQueries, WebServer
    from tests.running_queries import Bench


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """One that tells of every packet in its log."""
    folder = tmp_path_factory.mktemp("broker")
    with start_mosquitto(folder, settings=("log_type all",)) as running:
        yield running


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.rows = {"S": [ONLY], "T": sensors((1, "hall"), (2, "lab"), (3, "hall"))}
    return made


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Queries over fake handles; PySpark, which others do without, is loaded for these alone."""
    from nilometer.database.run_settings import RunSettings  # noqa: PLC0415
    from tests.running_queries import Bench, Clock, Starts, open_queries  # noqa: PLC0415

    starts, clock = Starts(), Clock()
    settings = RunSettings(max_running=4, look_every=3600, clock=clock, chance=lambda: 1.0)
    with open_queries(tmp_path, starts, monkeypatch, settings) as (home, queries):
        yield Bench(home, queries, starts, clock)


@pytest.fixture
def queries(tmp_path: Path) -> Iterator[StoredQueries]:
    """Results of queries in a folder, which tests write; the server is loaded for these alone."""
    from tests.results_server import StoredQueries  # noqa: PLC0415

    made = StoredQueries(tmp_path)
    yield made
    made.close()


@pytest.fixture
def server(queries: StoredQueries) -> Iterator[WebServer]:
    """A server of these results, and nothing else."""
    from tests.results_server import serving  # noqa: PLC0415

    with serving(queries) as running:
        yield running


@pytest.fixture
def client(server: WebServer) -> Iterator[Client]:
    """A client of that server."""
    from nilometer.client import Client  # noqa: PLC0415
    from tests.results_server import TOKEN  # noqa: PLC0415

    with Client(server.url, TOKEN) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_in_the_background(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests of logs look at their files: nobody packs them meanwhile."""
    if request.path.name.startswith("test_log_"):
        monkeypatch.setattr("nilometer.log.writer.in_background", lambda _: lambda: None)
