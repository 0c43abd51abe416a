"""A served CREATE QUERY is parsed once and planned once, whichever engine runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.database import compiler
from nilometer.errors import SqlError
from nilometer.server.scopes import SERVER
from nilometer.server.service import Service
from nilometer.server.settings import ServerSettings
from nilometer.spark import host_query
from nilometer.sql.parse.dialect import NilometerParser

STREAM = "CREATE STREAM A (k INT, v INT) FROM http"


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[nm.Database]:
    with nm.connect(spark, path=tmp_path / "plant") as opened:
        opened.execute(STREAM)
        yield opened


@pytest.fixture
def calls(db: nm.Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was called since the stream was created."""
    names: list[str] = []

    def count(owner: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def counted(*given: Any, **named: Any) -> Any:
            names.append(name)
            return real(*given, **named)

        monkeypatch.setattr(owner, name, counted)

    count(NilometerParser, "parse")
    count(compiler, "compile_statement")
    count(host_query, "make_plan")
    return names


def create(db: nm.Database, statement: str) -> None:
    """POST /sql."""
    service = Service(db, ServerSettings())
    try:
        asyncio.run(service.execute(statement, SERVER))
    finally:
        service.close()


@pytest.mark.parametrize(
    ("options", "value", "engine", "tries"),
    [
        ("", "v", "shared", 1),
        ("WITH (engine = 'own') ", "v", "own", 0),
        ("WITH (buckets = 3) ", "v", "own", 0),
        ("", "soundex(CAST(v AS STRING))", "own", 1),  # the shared engine refuses it
    ],
)
def test_a_query_is_parsed_and_planned_once(
    db: nm.Database, calls: list[str], options: str, value: str, engine: str, tries: int
) -> None:
    create(db, f"CREATE QUERY q {options}AS SELECT k, {value} AS w FROM A")
    assert calls == ["parse", "compile_statement", *["make_plan"] * tries]
    assert db.query_status("q").engine == engine


def test_a_query_that_is_posted_is_parsed_and_planned_once(
    db: nm.Database, calls: list[str]
) -> None:
    service = Service(db, ServerSettings())
    try:
        asyncio.run(service.queries.create("SELECT k FROM A", SERVER, name="q"))
    finally:
        service.close()
    assert calls == ["parse", "compile_statement", "make_plan"]


def test_an_error_in_its_query_is_placed_in_the_statement_and_planned_once(
    db: nm.Database, calls: list[str]
) -> None:
    with pytest.raises(SqlError) as raised:
        create(db, "-- warm\nCREATE QUERY q AS\n  SELECT none FROM A")
    assert raised.value.place is not None
    assert (raised.value.place.line, raised.value.place.column) == (3, 10)
    assert calls == ["parse", "compile_statement"]
