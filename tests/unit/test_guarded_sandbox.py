"""Questions about the past end in time and within their memory, whatever they say."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import psutil
import pyarrow as pa
import pytest

from nilometer.errors import (
    ClosedError,
    LogError,
    NilometerError,
    SqlError,
    TimeLimitError,
    TooLargeError,
)
from nilometer.past.guarded import GuardedSandbox
from nilometer.past.sandbox import AnswerLimits
from tests.patience import LONG, wait_for

T = pa.table({"k": [1, 2], "s": ["x", "y"]})


def levels(first: str, step: str, count: int, last: str) -> str:
    parts = [f"a0 AS ({first})"]
    parts += [f"a{n} AS ({step.replace('BEFORE', f'a{n - 1}')})" for n in range(1, count)]
    return f"WITH {', '.join(parts)} SELECT {last} FROM a{count - 1}"


CLIQUE = " AND ".join(f"x{i}.k + x{j}.k = x{j}.k" for i in range(30) for j in range(i))
HUNGRY = {
    "a text that grows eightfold at each of 14 levels": levels(
        "SELECT s FROM t", "SELECT s||s||s||s||s||s||s||s AS s FROM BEFORE", 14, "length(s)"
    ),
    "a list that does": levels(
        "SELECT [k, k] AS l FROM t", "SELECT l||l||l||l||l||l||l||l AS l FROM BEFORE", 14, "len(l)"
    ),
    "orders of 30 joins": f"SELECT COUNT(*) FROM {', '.join(f't x{i}' for i in range(30))} "
    f"WHERE {CLIQUE}",
    "distances of long texts": "SELECT levenshtein(s, s || 'y') FROM "
    "(SELECT string_agg('x', '') AS s FROM range(300000))",
    "a pattern over a long text": "SELECT length(regexp_replace(s, '(x)', '\\1\\1\\1\\1', 'g')) "
    "FROM (SELECT string_agg('x', '') AS s FROM range(30000000))",
    "rows without end": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) "
    "SELECT COUNT(*) FROM r",
}
"""Most of these DuckDB does not end when it is told to."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[GuardedSandbox]:
    made = GuardedSandbox(256 << 20)
    yield made
    made.close()


@pytest.mark.parametrize("sql", HUNGRY.values(), ids=HUNGRY)
def test_every_question_ends(
    sandbox: GuardedSandbox, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as hurried:
        hurried.setattr("nilometer.past.guarded._CHECKING", 2.0)
        with pytest.raises(NilometerError, match=r"took longer than|memory limit|too large"):  # noqa: PT012
            sandbox.require_safe(sql, ["t"])
            sandbox.bind(sql, {"t": T})
            sandbox.run(sql, {"t": T}, AnswerLimits(10, 1 << 20, 1.0))
    assert sandbox.value("1 + 1") == 2
    for one in sandbox._all:
        assert psutil.Process(one._process.pid).memory_info().rss < 1 << 31


def test_what_is_ended_leaves_nothing_running(sandbox: GuardedSandbox) -> None:
    assert sandbox.value("1") == 1
    before = {one._process.pid for one in sandbox._all}
    with pytest.raises((TimeLimitError, TooLargeError)):
        sandbox.run(HUNGRY["distances of long texts"], {}, AnswerLimits(seconds=0.2))
    after = {one._process.pid for one in sandbox._all}
    assert len(before - after) == 1
    assert not psutil.pid_exists(next(iter(before - after)))


def test_a_question_is_cancelled_from_another_thread(sandbox: GuardedSandbox) -> None:
    given = list[object]()

    def cancelling(end: object) -> None:
        given.append(end)
        threading.Timer(0.2, end).start()  # type: ignore[arg-type]

    with pytest.raises(SqlError, match="cancelled"):
        sandbox.run(HUNGRY["distances of long texts"], {}, None, cancelling)
    given[0]()  # type: ignore[operator]  # too late: it ends nobody else's
    assert sandbox.run("SELECT 1 AS x", {}).to_pylist() == [{"x": 1}]


def test_its_process_knows_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NILOMETER_SECRET_PLANT", "hidden")
    made = GuardedSandbox(64 << 20)
    try:
        (process,) = made._all
        child = psutil.Process(process._process.pid)
        assert "hidden" not in str(child.environ())
        assert child.cwd() == "/"
        assert not child.net_connections()
    finally:
        made.close()
    wait_for(lambda: not psutil.pid_exists(process._process.pid))
    with pytest.raises(ClosedError):
        made.value("1")


def test_rows_are_read_as_they_are_wanted(sandbox: GuardedSandbox) -> None:
    read = list[int]()

    def batches() -> Iterator[pa.RecordBatch]:
        for n in range(1000):
            read.append(n)
            yield pa.record_batch({"k": [n] * 5000})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64()}), batches())
    answer = sandbox.run("SELECT k FROM u", {"u": reader}, AnswerLimits(rows=3))
    assert answer.to_pylist() == [{"k": 0}] * 3
    reader = pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64()}), batches())
    answer = sandbox.run("SELECT COUNT(*) AS n, SUM(k) AS s FROM u", {"u": reader})
    assert answer.to_pylist() == [{"n": 5_000_000, "s": 5000 * 499_500}]


def test_what_goes_wrong_while_rows_are_read_is_reported(sandbox: GuardedSandbox) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"k": [1]})
        raise LogError("the segment is damaged")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64()}), batches())
    with pytest.raises(LogError, match="the segment is damaged"):
        sandbox.run("SELECT COUNT(*) FROM u", {"u": reader})
    assert sandbox.value("2") == 2


def test_a_process_that_is_killed_is_replaced(sandbox: GuardedSandbox) -> None:
    for one in list(sandbox._all):
        os.kill(one._process.pid, 9)
        one._process.wait(LONG)
    sandbox.require_safe("SELECT 1", ())
    assert sandbox.value("3") == 3


def test_many_ask_at_once(sandbox: GuardedSandbox) -> None:
    answers = list[int]()

    def ask(n: int) -> None:
        for _ in range(20):
            answers.append(sandbox.run(f"SELECT {n} + k AS x FROM t", {"t": T})["x"][0].as_py())

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(LONG)
    assert sorted(answers) == sorted([n + 1 for n in range(8)] * 20)
    assert len(sandbox._all) <= 4


def test_a_question_that_runs_when_it_is_closed_ends_with_an_error() -> None:
    made = GuardedSandbox(64 << 20)
    threading.Timer(0.3, made.close).start()
    with pytest.raises(ClosedError):
        made.run(HUNGRY["distances of long texts"], {})


def test_it_says_of_queries_what_duckdb_says(sandbox: GuardedSandbox) -> None:
    assert sandbox.is_by_row("SELECT abs(n) FROM t WHERE n > 1")
    assert sandbox.is_by_row("SELECT sum(n) FROM t", ["sum"])
    for other in ("sum(n)", "random()", "now()", "localtimestamp", "row_number() OVER ()"):
        assert not sandbox.is_by_row(f"SELECT {other} FROM t"), other
    empty = {"t": pa.table({"n": pa.array([], pa.int64())})}
    assert sandbox.types("SELECT n, sum(n), n / 2 FROM t GROUP BY n", empty) == [
        "BIGINT",
        "HUGEINT",
        "DOUBLE",
    ]
