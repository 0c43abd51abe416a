"""Settings that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.mosquitto import Mosquitto, start_mosquitto

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
