"""What is dropped while somebody looks at it is not there: 404, or left out, but no fault."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from nilometer.database import Database
from nilometer.database.stored_parts import StoragePlace
from nilometer.errors import InputError, UnknownNameError
from nilometer.server import housekeeping
from nilometer.server.housekeeping import drop_lonely, keep_house
from nilometer.server.settings import ServerSettings
from tests.served import Served, served

SELECT = {"statement": "SELECT v FROM S", "name": "gone"}


def dropped_meanwhile(server: Served) -> Callable[..., Any]:
    """Whatever is asked about the query, somebody is faster and drops it."""

    def refuse(name: str) -> Any:
        server.database.kept.clear()
        raise InputError(f"there is no query {name}")

    return refuse


@pytest.mark.parametrize(
    ("method", "path", "asked"),
    [
        ("GET", "/queries/gone/health", "query_health"),
        ("GET", "/queries/gone/results", "log_of"),
        ("GET", "/queries/gone/answer", "log_of"),
        ("POST", "/queries/gone/start", "start_query"),
        ("POST", "/queries/gone/stop", "stop_query"),
        ("DELETE", "/queries/gone", "drop_query"),
    ],
)
def test_a_query_that_is_dropped_meanwhile_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str, asked: str
) -> None:
    with served(tmp_path) as server:
        assert server.ask("POST", "/queries", json=SELECT).status_code == 201
        if asked == "log_of":
            monkeypatch.setattr(
                server.service.queries._results, "_log_of", dropped_meanwhile(server)
            )
        else:
            monkeypatch.setattr(server.database, asked, dropped_meanwhile(server))
        answer = server.ask(method, path)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (404, "NotFoundError")


def test_a_stream_that_is_dropped_meanwhile_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path) as server:
        assert server.sql("CREATE STREAM S (v INT) FROM synthetic").status_code == 200

        def drop(name: str | None = None) -> Any:
            server.sql("DROP STREAM S")
            raise UnknownNameError(f"there is no stream {name}")

        monkeypatch.setattr(server.database, "sensors", drop)
        assert server.ask("GET", "/sensors?stream=S").status_code == 404


def test_a_temporary_query_that_somebody_else_drops_keeps_no_other_from_going(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path, ServerSettings(temporary_after=0)) as server:
        for name in ("a", "b"):
            server.ask("POST", "/queries", json={**SELECT, "name": name, "temporary": True})
        drop = server.database.drop_query

        def drop_twice(name: str) -> None:
            drop(name)
            raise InputError(f"there is no query {name}")

        monkeypatch.setattr(server.database, "drop_query", drop_twice)
        assert asyncio.run(drop_lonely(server.service)) == ["a", "b"]
        assert not server.database.kept


def test_a_fault_does_not_end_the_keeping_of_the_house(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "_EVERY", 0.0)
    looks = 0

    def fail() -> None:
        nonlocal looks
        looks += 1
        raise KeyError("unforeseen")

    async def keep(server: Served) -> None:
        monkeypatch.setattr(server.tokens, "refresh", fail)
        keeping = asyncio.create_task(keep_house(server.service, server.tokens))
        while looks < 2:
            assert not keeping.done()
            await asyncio.sleep(0.01)
        keeping.cancel()

    with served(tmp_path) as server:
        asyncio.run(keep(server))


def test_declarations_leave_out_what_is_dropped_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nilometer.database.database.register_log_sources", lambda session: None)
    database = Database(cast(SparkSession, None), "auto", "1s")
    database._stored.open(StoragePlace(tmp_path))
    try:
        for name in ("A", "B"):
            database.execute(f"CREATE STREAM {name} (v INT) FROM synthetic")
        home = database._stored.parts.home
        find = home.sensors

        def vanish(name: str) -> Any:
            if name == "A":
                raise UnknownNameError("there is no stream A")
            return find(name)

        monkeypatch.setattr(home, "sensors", vanish)
        assert [one.name for one, _ in database.declarations()] == ["B"]
    finally:
        database.close()
