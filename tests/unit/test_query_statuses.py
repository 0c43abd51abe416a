"""Statuses are read by many while queries come and go."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import cast

import pytest

from nilometer.database.query_run import QueryHandle, RunState
from nilometer.database.query_status import QueryPhase
from nilometer.database.run_table import RunTable
from nilometer.database.stalls import Progress
from nilometer.database.statuses import QueryStatuses
from nilometer.log.position import Position
from nilometer.log.registrations import commit, forget, register
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.stored_queries import NamedQuery, QueryState
from tests.unit.test_query_stalls import ALIVE

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


class OneQuery:
    """A catalog with a query."""

    def generation(self) -> int:
        return 0

    def queries(self) -> list[NamedQuery]:
        return [NamedQuery("q", "SELECT 1", "append", QueryState.RUNNING, 0, None)]


def test_how_far_a_query_of_its_own_is_behind_is_how_far_its_slowest_reader_is(
    tmp_path: Path,
) -> None:
    runs, log = RunTable(None), tmp_path / "A"
    with runs.alone("q") as run:
        run.state = RunState(QueryPhase.RUNNING)
        run.handle = cast("QueryHandle", object())  # a streaming query of Spark
        run.progress = Progress(("A",), readers=(("A", "q"), ("A", "q-2")))
    statuses = QueryStatuses(
        cast("SensorCatalog", OneQuery()), runs, lambda n: str(tmp_path / n), lambda: [ALIVE], int
    )

    def behind() -> int | None:
        statuses.look()
        return statuses.all()[0].rows_behind

    assert behind() is None  # it has not begun to read
    for reader, row in (("q", 90), ("q-2", 70), ("another", 10)):
        register(log, reader, Position(1, 0, 0, row), {}, now=0, named=True)
    assert behind() == ALIVE.rows - 70
    commit(log, "q-2", Position(1, 0, 0, ALIVE.rows), now=0)
    assert behind() == ALIVE.rows - 90
    commit(log, "q", Position(1, 0, 0, ALIVE.rows), now=0)
    assert behind() == 0
    for reader in ("q", "q-2"):
        forget(log, reader)
    assert behind() is None


def test_one_of_a_thousand_queries_is_found_without_looking_at_the_others() -> None:
    looked: list[str] = []

    class Many(OneQuery):
        def queries(self) -> list[NamedQuery]:
            state = QueryState.STOPPED
            return [NamedQuery(f"Q{n}", "SELECT 1", "append", state, 0, None) for n in range(1000)]

    def log_of(name: str) -> str:
        looked.append(name)
        return f"/nowhere/{name}"

    catalog = cast("SensorCatalog", Many())
    statuses = QueryStatuses(catalog, RunTable(None), log_of, list, lambda: 0)
    status = statuses.find("q7")
    assert status is not None
    assert status.name == "Q7"
    assert looked == ["Q7"]
    assert status in statuses.all()
    assert statuses.find("none") is None
