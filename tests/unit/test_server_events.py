"""What the log of a server tells of statements, tokens, logins, queries, sensors and deliveries."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from nilometer.database.back_off import BackOff
from nilometer.database.query_events import tell_dead_letters, tell_failed, tell_well
from nilometer.database.query_run import RunState
from nilometer.database.query_status import QueryPhase
from nilometer.errors import InputError, TimeLimitError
from nilometer.model.events import event_of, fields_of, spared_by
from nilometer.server.scopes import Asker, Scope
from nilometer.server.statement_log import StatementLog, without_values
from nilometer.sql.statements import read_one
from tests.served import Served, served

ANN = Asker("ann", frozenset({Scope.READ}))


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as server:
        yield server


@pytest.fixture
def captured(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "nilometer")
    return caplog


def events(captured: pytest.LogCaptureFixture, name: str) -> list[logging.LogRecord]:
    return [one for one in captured.records if event_of(one) == name]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT  v\nFROM A -- hunter2\nWHERE s='hunter2'", "SELECT v FROM A WHERE s='…'"),
        ('SELECT "hunter2" /* hunter2 */ , 2', "SELECT '…' , 2"),
        ("SELECT r'\\', 'hunter2'", "SELECT '…', '…'"),
        ("SELECT 'it''s hunter2', 'hunter2'", "SELECT '…', '…'"),
        ("SELECT 'it\\'s hunter2', 'hunter2'", "SELECT '…', '…'"),
        ("WITH (password 'hunter2", "WITH (password"),
        ("/* hunter2", ""),
        ("SELECT x'6869' , 'hunter2'", "SELECT '…' , '…'"),
    ],
)
def test_values_and_comments_of_statements_are_not_logged(text: str, shown: str) -> None:
    assert without_values(text) == shown


def test_a_long_statement_is_cut() -> None:
    assert len(without_values("SELECT " + "v, " * 50_000)) == 201


def test_a_slow_statement_is_logged(captured: pytest.LogCaptureFixture) -> None:
    with StatementLog(0.0).watch("SELECT v FROM A WHERE s = 'hunter2'", ANN):
        pass
    with StatementLog(1000.0).watch("SELECT v", ANN):
        pass
    [one] = events(captured, "slow_statement")
    assert fields_of(one)["statement"] == "SELECT v FROM A WHERE s = '…'"
    assert one.levelno == logging.WARNING


def test_refused_statements_are_logged_by_how_bad_they_are(
    captured: pytest.LogCaptureFixture,
) -> None:
    log = StatementLog(1000.0)
    for error in (InputError("cannot read 'hunter2' of the server's"), TimeLimitError("too long")):
        with pytest.raises(type(error)), log.watch("SELECT 1", ANN):
            raise error
    records = events(captured, "statement_refused")
    assert [one.levelno for one in records] == [logging.INFO, logging.WARNING]
    assert fields_of(records[0])["reason"] == "cannot read '…' of the server's"
    assert all(spared_by(one) == "ann" for one in records)


def test_declarations_are_logged_and_rows_are_not(captured: pytest.LogCaptureFixture) -> None:
    log = StatementLog(1000.0)
    log.ran(read_one("CREATE TABLE T (v INT)"), ANN, "table T created")
    log.ran(read_one("INSERT INTO T VALUES (1)"), ANN, "1 row inserted")
    assert [fields_of(one)["outcome"] for one in events(captured, "statement_run")] == [
        "table T created"
    ]


def test_statements_over_http_are_logged(plant: Served, captured: pytest.LogCaptureFixture) -> None:
    assert plant.sql("CREATE TABLE T (v INT)").status_code == 200
    assert plant.sql("CREATE TABLE T (v INT) WITH 'hunter2'").status_code == 400
    assert plant.sql("CREATE STREAM A (v INT) FROM tcp", "read").status_code == 403
    assert len(events(captured, "statement_run")) == 1
    levels = [one.levelno for one in events(captured, "statement_refused")]
    assert levels == [logging.INFO, logging.WARNING]
    assert "hunter2" not in captured.text


def test_tokens_that_are_refused_are_logged_without_the_token(
    plant: Served, captured: pytest.LogCaptureFixture
) -> None:
    wrong = "nm_" + "x" * 43
    assert plant.ask("GET", "/queries", wrong).status_code == 401
    assert plant.ask("GET", "/queries", None).status_code == 401
    records = events(captured, "access_refused")
    assert [fields_of(one)["path"] for one in records] == ["/queries", "/queries"]
    assert all(spared_by(one) == fields_of(one)["client"] == "127.0.0.1" for one in records)
    assert "xxx" not in captured.text


def test_failures_of_queries_are_logged(captured: pytest.LogCaptureFixture) -> None:
    state = RunState(QueryPhase.RUNNING).failed("no room", 0, BackOff(), 1.0)
    tell_failed("q", state, 0)
    tell_failed("q", state.given_up("a limit"), 0)
    tell_well("q", 2)
    tell_dead_letters("q", 0)
    tell_dead_letters("q", 3)
    assert [(event_of(one), one.levelno) for one in captured.records] == [
        ("query_restarts", logging.WARNING),
        ("query_failed", logging.ERROR),
        ("query_recovered", logging.INFO),
        ("query_dead_letters", logging.WARNING),
    ]
    assert fields_of(captured.records[0]) == {
        "query": "q", "reason": "no room", "failures": 1, "seconds": 1.0
    }  # fmt: skip
