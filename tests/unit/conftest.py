"""What several test files share: a broker that tells everything, and a site with sensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.manager_streams import ONLY, Site, sensors
from tests.mosquitto import Mosquitto, start_mosquitto


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
