"""Statuses are read by many while queries come and go."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from itertools import count
from typing import cast

import pytest

from nilometer.database.run_table import RunTable
from nilometer.database.statuses import QueryStatuses
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.stored_queries import NamedQuery, QueryState

LOOKERS = 4
LOOKS = 500


class Restless:
    """A catalog in which the queries are others whenever somebody looks."""

    def __init__(self) -> None:
        self._changes = count()

    def generation(self) -> int:
        return next(self._changes)

    def queries(self) -> list[NamedQuery]:
        first = next(self._changes)
        return [
            NamedQuery(f"run_{number % 50}", "SELECT 1", "append", QueryState.RUNNING, 0, None)
            for number in range(first, first + 20)
        ]


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_queries_may_come_and_go_while_others_look() -> None:
    catalog = cast("SensorCatalog", Restless())
    statuses = QueryStatuses(
        catalog, RunTable(None), lambda name: f"/nowhere/{name}", list, lambda: 0
    )
    failures: list[Exception] = []

    def look() -> None:
        try:
            for _ in range(LOOKS):
                assert len(statuses.all()) == 20
        except Exception as error:  # what the thread would keep to itself
            failures.append(error)

    lookers = [threading.Thread(target=look) for _ in range(LOOKERS)]
    for one in lookers:
        one.start()
    for one in lookers:
        one.join()
    assert not failures
