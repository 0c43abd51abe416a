"""Named queries that many threads make, look at and drop at once."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nilometer.database.query_run import QueryRun, RunState
from nilometer.database.query_status import QueryPhase
from nilometer.database.run_table import RunTable
from nilometer.errors import (
    InputError,
    LimitError,
    NameTakenError,
    NilometerError,
)
from nilometer.sensors.catalog.stored_queries import QueryState
from tests.patience import LONG
from tests.running_queries import (
    Bench,
    Starts,
    create,
    lost_worker,
    open_queries,
)


def test_no_more_queries_run_than_may(bench: Bench) -> None:
    for name in "abcd":
        create(bench.queries, name)
    with pytest.raises(LimitError, match="no more queries can run: the limit is 4") as refused:
        create(bench.queries, "e")
    assert "SHOW QUERIES" in str(refused.value)
    assert bench.home.catalog.query("e") is None
    bench.queries.stop("b")
    create(bench.queries, "e")
    with pytest.raises(LimitError):
        bench.queries.start("b")
    bench.fails("c", lost_worker())  # it is tried again, so its place is not free
    with pytest.raises(LimitError):
        bench.queries.start("b")
    with pytest.raises(LimitError):
        create(bench.queries, "b")
    bench.queries.drop("c")
    with pytest.raises(NameTakenError):
        create(bench.queries, "b")
    create(bench.queries, "f")
    bench.queries.drop("f")
    assert bench.queries.start("b")
    assert sorted(run.place or 0 for run in bench.queries._runs) == [0, 1, 2, 3]


def test_the_same_name_from_many_threads_is_made_once(bench: Bench) -> None:
    def make(_: int) -> str:
        try:
            create(bench.queries, "q")
        except NameTakenError:
            return "taken"
        return "made"

    with ThreadPoolExecutor(8) as threads:
        outcomes = sorted(threads.map(make, range(8)))
    assert outcomes == ["made", *["taken"] * 7]
    assert bench.starts.count == 1


def test_many_threads_may_do_everything_at_once(bench: Bench) -> None:
    """They make, stop, start and drop the same few names; all refusals are kind."""

    def live(number: int) -> None:
        name = f"q{number % 3}"
        for _ in range(4):
            for step in (
                lambda: create(bench.queries, name),
                lambda: bench.queries.stop(name),
                lambda: bench.queries.start(name),
                lambda: bench.queries.drop(name),
            ):
                try:
                    step()
                except NilometerError as error:
                    assert re.search("there is|already exists", error.message)  # noqa: PT017

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(live, range(6)))
    assert all(one.name in {"q0", "q1", "q2"} for one in bench.queries.statuses())
    for one in bench.queries.statuses():
        bench.queries.drop(one.name)
    assert list(bench.queries._runs) == []


def test_who_waits_for_a_run_that_is_dropped_gets_a_new_one() -> None:
    runs = RunTable(None)
    waits = threading.Event()

    def other() -> QueryRun:
        waits.set()
        with runs.alone("Q") as run:
            run.state = RunState(QueryPhase.RUNNING)
            return run

    with ThreadPoolExecutor(1) as threads:
        with runs.alone("q") as first:
            waiting = threads.submit(other)
            assert waits.wait(LONG)
            time.sleep(0.05)  # until it waits for the lock; if it does not yet, nothing is tested
            runs.forget(first)
        assert waiting.result(LONG) is not first
    assert list(runs) == [waiting.result()]


def test_looking_waits_for_nobody(bench: Bench) -> None:
    create(bench.queries, "q")
    create(bench.queries, "r")
    bench.starts.handles["r"].fail(lost_worker())
    holds, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with bench.queries._runs.alone("q"):
            holds.set()
            may_end.wait(LONG)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert holds.wait(LONG)
        bench.queries.look()
        assert bench.phase("q") is QueryPhase.RUNNING
        assert bench.phase("r") is QueryPhase.RESTARTING
        assert thread.is_alive()
    finally:
        may_end.set()
        thread.join()


def test_temporary_queries_are_gone_when_the_database_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_queries(tmp_path, Starts(), monkeypatch) as (home, queries):
        create(queries, "kept")
        create(queries, "run_1", temporary=True)
        create(queries, "run_2", temporary=True)
        create(queries, "reader", "SELECT k FROM Run_2")
        log = Path(home.log_of("run_1"))
        assert [one.is_temporary for one in queries.statuses()] == [False, False, True, True]
    assert log.exists()
    with open_queries(tmp_path, Starts(), monkeypatch) as (home, queries):
        queries.drop_temporary()
        assert [one.name for one in queries.statuses()] == ["kept", "reader", "run_2"]
    assert not log.exists()


def test_nothing_is_begun_once_it_is_closed(bench: Bench) -> None:
    create(bench.queries, "q")
    bench.queries.close()
    assert bench.starts.handles["q"].was_stopped
    for step in (bench.queries.start, bench.queries.stop, bench.queries.drop):
        with pytest.raises(InputError, match="the database is closed"):
            step("q")
    stored = bench.home.catalog.query("q")
    assert stored is not None
    assert stored.state is QueryState.RUNNING
