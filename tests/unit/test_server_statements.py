"""Statements over HTTP: their parameters, and several of them in one request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.served import Served, served


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as server:
        yield server


def post(
    server: Served, statement: str, scope: str = "admin", **parameters: Any
) -> tuple[int, dict[str, Any]]:
    body = {"statement": statement, "parameters": parameters}
    answer = server.ask("POST", "/sql", scope, json=body)
    content: dict[str, Any] = answer.json()
    return answer.status_code, content


def test_values_are_bound(server: Served) -> None:
    assert post(server, "CREATE TABLE T (k INT, d DATE, b BINARY)")[0] == 200
    status, _ = post(
        server,
        "INSERT INTO T VALUES (:k, :d, :b)",
        k=3,
        d={"type": "DATE", "value": "2026-01-31"},
        b={"type": "BINARY", "value": "00ff"},
    )
    assert status == 200
    rows = server.catalog.table("T")
    assert rows is not None
    assert [str(one) for one in rows.to_pylist()[0].values()] == [
        "3",
        "2026-01-31",
        "b'\\x00\\xff'",
    ]


@pytest.mark.parametrize(
    ("statement", "parameters", "message"),
    [
        ("SELECT :k FROM T", {}, "parameter :k has no value"),
        ("SELECT k FROM T", {"k": 1}, "the statement has no parameter :k"),
        ("SELECT :k FROM T", {"k": [1]}, "a parameter is not a value"),
        (
            "SELECT :k FROM T",
            {"k": {"type": "DATE", "value": "x"}},
            "a parameter is not a valid DATE",
        ),
        (" ; ", {}, "expected a statement, got none"),
        ("SELECT 1; SELECT 2", {}, "only the last statement can be a query"),
    ],
)
def test_what_is_refused(
    server: Served, statement: str, parameters: dict[str, Any], message: str
) -> None:
    status, content = post(server, statement, **parameters)
    assert (status, content["error"]["message"]) == (400, message)


def test_several_statements_run_up_to_the_first_that_fails(server: Served) -> None:
    both = "CREATE TABLE T (k INT); INSERT INTO T VALUES (:k), (:k);"
    assert post(server, both, k=7)[1]["message"] == "inserted 2 rows into T"
    status, content = post(server, "DELETE FROM T;\nDELETE FROM Nothing; DROP TABLE T")
    assert status == 400
    error = content["error"]
    assert error["position"]["line"] == 2
    assert error["detail"].endswith("statement 2 of 3; those before it were run")
    rows = server.catalog.table("T")
    assert rows is not None
    assert rows.num_rows == 0


def test_all_scopes_are_asked_for_before_anything_is_run(server: Served) -> None:
    text = "CREATE TABLE T (k INT); CREATE STREAM S (v INT) FROM synthetic"
    assert post(server, text, "write")[0] == 403
    assert server.catalog.find("T") is None
    assert post(server, "CREATE VIEW V AS SELECT 1", "read")[0] == 403
    checked = server.ask("POST", "/check", json={"statement": text}).json()
    assert checked == {"error": None}
