"""What becomes of named queries: failures, restarts, limits, health."""

from __future__ import annotations

import errno
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from nilometer.database import lifecycle, new_queries
from nilometer.database.back_off import BackOff
from nilometer.database.curable import may_be_cured
from nilometer.database.query_status import QueryLimits, QueryPhase
from nilometer.database.run_settings import RunSettings
from nilometer.database.supervisor import Supervisor
from nilometer.errors import (
    CheckpointError,
    DiskFullError,
    InputError,
    LogError,
    LogFullError,
    NilometerError,
    SessionError,
)
from nilometer.log.reader import LogReader
from nilometer.log.registrations import register, registrations, release
from nilometer.sensors.catalog.stored_queries import QueryState
from tests.patience import LONG, wait_for
from tests.running_queries import (
    BUCKETS,
    SECOND,
    Bench,
    Clock,
    Starts,
    append_results,
    create,
    lost_worker,
    open_queries,
    worker_error,
)


@pytest.mark.parametrize("failures", range(1, 12))
def test_waits_double_up_to_the_most_and_chance_only_shortens_them(failures: int) -> None:
    back_off = BackOff()
    longest = min(60 * SECOND, SECOND * 2 ** (failures - 1))
    assert back_off.wait(failures, 1.0) == longest
    assert back_off.wait(failures, 0.0) == longest // 2
    assert longest // 2 < back_off.wait(failures, 0.5) < longest


@pytest.mark.parametrize(
    ("error", "is_curable"),
    [
        (SessionError("Spark could not do this", detail="Python worker failed"), True),
        (LogError("the log is already open for writing"), True),
        (LogError("the log is damaged"), False),
        (LogFullError("the log is full"), False),
        (DiskFullError("cannot write to the log"), True),
        (CheckpointError("another query"), False),
        (InputError("there is no stream S"), False),
    ],
)
def test_what_another_attempt_may_cure(error: NilometerError, is_curable: bool) -> None:
    assert may_be_cured(error) is is_curable


def test_a_query_that_fails_is_tried_again_later_each_time(bench: Bench) -> None:
    create(bench.queries, "q")
    for failures, wait in ((1, 1), (2, 2), (3, 4)):
        bench.fails("q", lost_worker())
        status = bench.queries.status("q")
        assert (status.phase, status.failures) == (QueryPhase.RESTARTING, failures)
        assert status.next_try == bench.clock.now + wait * SECOND
        assert status.error is not None
        assert "Python worker exited" in status.error
        stored = bench.home.catalog.query("q")
        assert stored is not None
        assert (stored.state, stored.error) == (QueryState.RUNNING, status.error)
        bench.clock.go_on(wait - 0.1)
        before = bench.starts.count
        bench.queries.look()
        time.sleep(0.05)
        assert bench.starts.count == before
        bench.clock.go_on(0.1)
        bench.is_tried("q")
        assert bench.phase("q") is QueryPhase.RUNNING
        assert bench.queries.status("q").failures == failures


def test_a_minute_of_good_work_makes_up_for_failures(bench: Bench) -> None:
    create(bench.queries, "q")
    bench.fails("q", lost_worker())
    bench.clock.go_on(1)
    bench.is_tried("q")
    bench.clock.go_on(70)
    bench.starts.handles["q"].report_nothing(0, bench.clock.now)
    bench.queries.look()
    assert bench.queries.status("q").failures == 1  # it has not finished a micro-batch yet
    bench.starts.handles["q"].report(0, bench.clock.now + 1)
    bench.queries.look()
    status = bench.queries.status("q")
    assert (status.failures, status.error) == (0, None)
    stored = bench.home.catalog.query("q")
    assert stored is not None
    assert stored.error is None


def test_an_attempt_that_does_not_even_start_counts_like_a_failure(bench: Bench) -> None:
    create(bench.queries, "q")
    bench.starts.errors["q"] = [lost_worker(), InputError("there is no stream A")]
    bench.fails("q", lost_worker())
    bench.clock.go_on(1)
    bench.is_tried("q")
    status = bench.queries.status("q")
    assert (status.phase, status.failures) == (QueryPhase.RESTARTING, 2)
    bench.clock.go_on(2)
    bench.is_tried("q")
    status = bench.queries.status("q")
    assert (status.phase, status.error) == (QueryPhase.FAILED, "there is no stream A")


def test_who_waits_for_a_start_is_not_troubled_by_one_failure(bench: Bench) -> None:
    bench.starts.errors["q"] = [lost_worker()]
    create(bench.queries, "q")
    assert (bench.phase("q"), bench.starts.count) == (QueryPhase.RUNNING, 2)
    bench.starts.errors["r"] = [lost_worker(), lost_worker()]
    with pytest.raises(PySparkException, match="crashed"):
        create(bench.queries, "r")
    bench.starts.errors["r"] = [InputError("no"), lost_worker()]
    with pytest.raises(InputError, match="no"):
        create(bench.queries, "r")
    before, bench.starts.errors["r"] = bench.starts.count, [worker_error("CheckpointError: other")]
    with pytest.raises(PySparkException, match="other"):
        create(bench.queries, "r")
    assert bench.starts.count == before + 1
    assert [one.name for one in bench.queries.statuses()] == ["q"]


def test_what_cannot_be_cured_is_given_up_and_can_be_started_by_hand(bench: Bench) -> None:
    create(bench.queries, "q")
    bench.fails("q", worker_error("CheckpointError: another query\n  hint: give it another"))
    status = bench.queries.status("q")
    assert (status.phase, status.next_try) == (QueryPhase.FAILED, None)
    assert status.error == "another query; give it another"
    stored = bench.home.catalog.query("q")
    assert stored is not None
    assert stored.state is QueryState.FAILED
    assert bench.queries.start("Q")
    status = bench.queries.status("q")
    assert (status.phase, status.failures, status.error) == (QueryPhase.RUNNING, 0, None)


def test_rows_that_are_gone_do_not_come_back_and_its_sensors_are_let_go(bench: Bench) -> None:
    create(bench.queries, "a")
    create(bench.queries, "q", "SELECT k FROM a")
    log = bench.home.log_of("a")
    register(log, "q", LogReader.open(log).start, {"query": "q"}, now=1, named=True)
    bench.fails("q", worker_error("LogGapError: rows are gone\n  detail: 7 rows"))
    status = bench.queries.status("q")
    assert (status.phase, status.error) == (QueryPhase.FAILED, "rows are gone; 7 rows")
    assert [one.active for one in registrations(log)] == [False]


def test_a_query_that_waits_to_be_tried_again_can_be_stopped(bench: Bench) -> None:
    for name in ("q", "other"):
        create(bench.queries, name)
        bench.fails(name, lost_worker())
    assert bench.queries.stop("q")
    bench.clock.go_on(100)
    bench.queries.look()
    wait_for(lambda: bench.phase("other") is QueryPhase.RUNNING)
    assert bench.phase("q") is QueryPhase.STOPPED
    assert bench.starts.count == 3
    assert not bench.queries.stop("q")


def test_its_sensors_are_kept_while_a_query_waits_and_let_go_when_it_is_stopped(
    bench: Bench,
) -> None:
    create(bench.queries, "a")
    create(bench.queries, "q", "SELECT k FROM a")
    log = bench.home.log_of("a")
    register(log, "q", LogReader.open(log).start, {"query": "q"}, now=1, named=True)
    release(log, "q", now=2)  # as Spark's reader does when its query ends
    bench.fails("q", lost_worker())
    assert [one.active for one in registrations(log)] == [True]
    bench.queries.stop("q")
    assert [one.active for one in registrations(log)] == [False]


def test_a_query_that_was_stopped_in_spark_is_resumed_another_time(bench: Bench) -> None:
    create(bench.queries, "q")
    bench.starts.handles["q"].isActive = False
    bench.queries.look()
    assert bench.phase("q") is QueryPhase.WAITING
    assert [run.place for run in bench.queries._runs] == [None]
    assert bench.queries.resume() == ["q"]
    assert bench.phase("q") is QueryPhase.RUNNING


def test_one_that_cannot_be_resumed_does_not_keep_others_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, clock = Starts(), Clock()
    settings = RunSettings(look_every=3600, clock=clock, chance=lambda: 1.0)
    with open_queries(tmp_path, starts, monkeypatch, settings) as (_, queries):
        for name in "abcd":
            create(queries, name)
        queries.stop("d")
    starts.errors = {"a": [InputError("there is no stream S")], "b": [lost_worker()]}
    with open_queries(tmp_path, starts, monkeypatch, settings) as (home, queries):
        assert {one.phase for one in queries.statuses()[:3]} == {QueryPhase.WAITING}
        with pytest.raises(InputError, match="could not be started again: a, b\n.*no stream S"):
            queries.resume()
        phases = {one.name: one.phase for one in queries.statuses()}
        assert phases == {
            "a": QueryPhase.FAILED,
            "b": QueryPhase.RESTARTING,
            "c": QueryPhase.RUNNING,
            "d": QueryPhase.STOPPED,
        }
        clock.go_on(1)
        queries.look()
        wait_for(lambda: queries.status("b").phase is QueryPhase.RUNNING)
        assert home.catalog.queries()[0].state is QueryState.FAILED


def test_a_query_without_a_place_waits_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_queries(tmp_path, Starts(), monkeypatch) as (_, queries):
        create(queries, "a")
        create(queries, "b")
    fewer = RunSettings(max_running=1, look_every=3600)
    with open_queries(tmp_path, Starts(), monkeypatch, fewer) as (home, queries):
        with pytest.raises(InputError, match="no more queries can run: the limit is 1"):
            queries.resume()
        phases = sorted(one.phase for one in queries.statuses())
        assert phases == [QueryPhase.RUNNING, QueryPhase.WAITING]
        assert {one.state for one in home.catalog.queries()} == {QueryState.RUNNING}


def test_a_look_that_fails_is_not_the_last() -> None:
    looks: list[int] = []

    def look() -> None:
        looks.append(len(looks))
        raise LogError("this time not")

    supervisor = Supervisor(look, every=0.001)
    supervisor.start()
    wait_for(lambda: len(looks) > 2)
    supervisor.stop()


def test_looking_takes_a_small_part_of_the_time() -> None:
    looks: list[float] = []

    def look() -> None:
        looks.append(time.monotonic())
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    supervisor = Supervisor(look, every=0.001)
    supervisor.start()
    wait_for(lambda: len(looks) > 3)
    supervisor.stop()
    assert min(b - a for a, b in pairwise(looks)) > 0.4


def test_what_is_being_done_is_done_before_the_supervisor_has_stopped() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(LONG)
        done.set()

    supervisor = Supervisor(lambda: None)
    supervisor.soon(work)
    assert begun.wait(LONG)
    threading.Timer(0.05, may_end.set).start()
    supervisor.stop()
    assert done.is_set()
    supervisor.soon(may_end.clear)
    assert may_end.is_set()


def test_a_disk_without_room_is_no_limit_and_is_reported(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(bench.queries, "q", limits=lambda usual: QueryLimits(results=1000))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(lifecycle, "hold_readers", full)
        bench.fails("q", worker_error("DiskFullError: cannot write to the log\n  detail: no space"))
    status = bench.queries.status("q")
    assert status.phase is QueryPhase.RESTARTING
    assert "cannot write to the log; no space" in str(status.error)
    bench.clock.go_on(1)
    bench.is_tried("q")
    assert bench.phase("q") is QueryPhase.RUNNING


def test_results_that_reach_their_limit_stop_their_query_alone(bench: Bench) -> None:
    create(bench.queries, "q", limits=lambda _: QueryLimits(results=1 << 20))
    create(bench.queries, "r")
    assert bench.starts.handles["q"].destination.options.disk == 1 << 20
    bench.fails("q", worker_error("LogFullError: the log is full\n  detail: of 1 byte"))
    status = bench.queries.status("q")
    assert status.phase is QueryPhase.FAILED
    assert status.error == (
        "query q was stopped: its results have reached 1 MB; ALTER QUERY q SET (results = '2 MB') "
        "and START QUERY q resume it where it was; DROP QUERY q deletes it"
    )
    assert bench.phase("r") is QueryPhase.RUNNING
    bench.queries.alter("q", lambda before: QueryLimits(results=2 << 20))
    assert bench.phase("q") is QueryPhase.FAILED
    bench.queries.start("q")
    assert bench.starts.handles["q"].destination.options.disk == 2 << 20


def test_state_that_reaches_its_limit_stops_its_query_alone(bench: Bench) -> None:
    create(bench.queries, "q", limits=lambda _: QueryLimits(state=1000))
    create(bench.queries, "r")
    for name in "qr":
        bench.starts.handles[name].report(0, bench.clock.now, state=1000)
    bench.queries.look()
    assert bench.phase("q") is QueryPhase.RUNNING
    bench.clock.go_on(1)
    for name in "qr":
        bench.starts.handles[name].report(1, bench.clock.now, state=1001)
    bench.queries.look()
    assert bench.starts.handles["q"].was_stopped
    status = bench.queries.status("q")
    assert (status.phase, status.state_bytes) == (QueryPhase.FAILED, 1001)
    assert "its state has reached 1000 bytes" in str(status.error)
    assert bench.phase("r") is QueryPhase.RUNNING


def test_a_query_that_runs_is_started_again_with_its_new_limits(bench: Bench) -> None:
    create(bench.queries, "q", limits=lambda _: QueryLimits(state=5, history=7))
    first = bench.starts.handles["q"]
    assert first.destination.options.history == 7
    bench.queries.alter("q", lambda before: QueryLimits(before.results, 9, 11))
    assert first.was_stopped
    assert bench.starts.handles["q"].destination.options.history == 11
    status = bench.queries.status("q")
    assert (status.phase, status.limits) == (QueryPhase.RUNNING, QueryLimits(None, 9, 11))


def test_every_micro_batch_is_a_sample_once(bench: Bench) -> None:
    create(bench.queries, "q")
    handle, begin = bench.starts.handles["q"], bench.clock.now
    handle.report(0, begin, rows=5)
    bench.queries.look()
    bench.queries.look()
    handle.report_nothing(1, begin + SECOND)
    bench.queries.look()
    append_results(bench.home, "q", 60, watermark=begin)
    bench.clock.go_on(3)
    for batch, second in ((1, 1.5), (2, 2), (3, 3)):
        handle.report(batch, begin + int(second * SECOND), rows=batch * 10, state=batch)
    bench.queries.look()
    samples = bench.queries.health("q")
    assert [(one.time - begin) / SECOND for one in samples] == [0, 1.5, 2, 3]
    assert [round(one.input_rows_per_second) for one in samples] == [10, 7, 40, 30]
    assert [one.output_rows_per_second for one in samples] == [0, 20, 20, 20]
    assert [one.state_bytes for one in samples] == [0, 1, 2, 3]
    assert [one.watermark_lag for one in samples] == [SECOND, *[3 * SECOND] * 3]
    assert [(one.late_rows, one.batch_millis, one.budget_millis) for one in samples[:1]] == [
        (3, 120, 500)
    ]
    status = bench.queries.status("q")
    assert (status.result_rows, status.watermark, status.state_bytes) == (60, begin, 3)
    bench.clock.go_on(600)
    handle.report(4, bench.clock.now)
    bench.queries.look()
    assert [(one.time - begin) / SECOND for one in bench.queries.health("q")] == [3, 603]


def test_a_query_that_does_not_run_says_what_its_log_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_queries(tmp_path, Starts(), monkeypatch) as (home, queries):
        create(queries, "q")
        append_results(home, "q", 7, watermark=99)
    with open_queries(tmp_path, Starts(), monkeypatch) as (home, queries):
        for phase in (QueryPhase.WAITING, QueryPhase.STOPPED):
            status = queries.status("q")
            assert (status.phase, status.result_rows, status.watermark) == (phase, 7, 99)
            assert status.result_bytes > 0
            queries.stop("q")


def test_what_is_usual_holds_where_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = RunSettings(limits=QueryLimits(results=5, history=6), look_every=3600)
    with open_queries(tmp_path, Starts(), monkeypatch, settings) as (_, queries):
        create(queries, "a")
        create(queries, "b", limits=lambda usual: QueryLimits(usual.results, 7))
        monkeypatch.setattr(new_queries, "emits_changes", lambda _: True)
        create(queries, "c")
        assert [one.limits for one in queries.statuses()] == [
            QueryLimits(results=5, history=6),
            QueryLimits(results=5, state=7),
            QueryLimits(results=5, history=6),
        ]


def test_changes_have_a_history(bench: Bench) -> None:
    bench.home.catalog.create_query("q", "SELECT COUNT(*) FROM A", "changelog")
    bench.queries.alter("q", lambda before: QueryLimits(history=5))
    assert bench.queries.status("q").limits == QueryLimits(history=5)


def test_a_query_keeps_the_buckets_that_it_began_with(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever number of cores the machine has when it is started again."""
    create(bench.queries, "q")
    assert planned_buckets(bench, "q") == BUCKETS
    monkeypatch.setattr("tests.running_queries.BUCKETS", BUCKETS + 3)
    assert planned_buckets(bench, "q") == BUCKETS
    bench.queries.alter("q", lambda limits: replace(limits, results=1 << 30))
    assert planned_buckets(bench, "q") == BUCKETS
    create(bench.queries, "r")
    assert planned_buckets(bench, "r") == BUCKETS + 3


def planned_buckets(bench: Bench, name: str) -> int:
    bench.queries.stop(name)
    bench.queries.start(name)
    return int(bench.starts.plans[name].buckets)


def test_failures_are_known_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, clock = Starts(), Clock()
    settings = RunSettings(look_every=3600, clock=clock, chance=lambda: 1.0)
    with open_queries(tmp_path, starts, monkeypatch, settings) as (home, queries):
        bench = Bench(home, queries, starts, clock)
        create(queries, "q")
        bench.fails("q", lost_worker())
        clock.go_on(1)
        bench.is_tried("q")
        bench.fails("q", lost_worker())
        before = queries.status("q")
    with open_queries(tmp_path, starts, monkeypatch, settings) as (_, queries):
        waiting = queries.status("q")
        assert (waiting.error, waiting.failures) == (before.error, 2)
        queries.resume()
        status = queries.status("q")
        assert (status.phase, status.error, status.failures) == (
            QueryPhase.RUNNING,
            before.error,
            2,
        )
        clock.go_on(70)
        starts.handles["q"].report(0, clock.now)
        queries.look()
        assert (queries.status("q").error, queries.status("q").failures) == (None, 0)
    with open_queries(tmp_path, starts, monkeypatch, settings) as (_, queries):
        assert queries.status("q").failures == 0
