"""Whatever a question about the past says, DuckDB is asked about given tables only.

The judge is DuckDB's own view of the text that it would be given. All ways by which questions come
are tried: POST /sql, PostgreSQL's protocol, panels of dashboards, conditions of alerts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, suppress
from types import SimpleNamespace
from typing import Any, Final, cast

import pyarrow as pa
import pytest
from sqlglot import exp

from nilometer.alerts.condition import Condition
from nilometer.alerts.definition import AlertDefinition
from nilometer.database.past import parse_past
from nilometer.errors import NilometerError
from nilometer.past.ask import ask, prepare_question
from nilometer.past.guarded import AnySandbox, GuardedSandbox
from nilometer.past.sandbox import AnswerLimits, Sandbox
from nilometer.past.stored import FixedTable, StoredTable
from nilometer.server.dashboards.panel_source import PanelSource
from nilometer.server.limits import Shares
from nilometer.server.pg.statements import read_commands
from nilometer.server.scopes import SERVER
from nilometer.server.service import Service
from nilometer.server.settings import ServerSettings
from tests.hostile_statements import hostile_condition, hostile_question, require_harmless
from tests.queries import RELATIONS, SCHEMA

CASES = 200
EMPTY = SCHEMA.empty_table()
TABLES: dict[str, StoredTable] = {name: FixedTable(EMPTY) for name in RELATIONS}


class Listening(GuardedSandbox):
    """Judges all that is asked."""

    def __init__(self) -> None:
        super().__init__(256 << 20)
        self.judged = 0

    def bind(self, sql: str, tables: Mapping[str, pa.Table]) -> None:
        self.judge(sql, tables)
        super().bind(sql, tables)

    def run(self, sql: str, tables: Mapping[str, Any], *more: Any) -> pa.Table:
        self.judge(sql, tables)
        return super().run(sql, tables, *more)

    def judge(self, sql: str, tables: Collection[str]) -> None:
        require_harmless(sql, tables)
        self.judged += 1


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Listening]:
    made = Listening()
    yield made
    made.close()


def ask_tree(sandbox: AnySandbox, tree: exp.Query, sql: str) -> None:
    question = prepare_question(sandbox, tree, sql, TABLES)
    ask(sandbox, question, TABLES, AnswerLimits(10, 1 << 20, 5.0))


def by_sql(sandbox: AnySandbox, chance: random.Random) -> None:
    sql = hostile_question(chance)
    ask_tree(sandbox, parse_past(sql, {}), sql)


def by_pg(sandbox: AnySandbox, chance: random.Random) -> None:
    sql = hostile_question(chance)
    for one in read_commands(sql):
        if one.tree is not None:
            ask_tree(sandbox, one.tree, one.text)


def by_panel(sandbox: AnySandbox, chance: random.Random) -> None:
    """The SELECT of a panel, and names of its columns that are as bad."""
    sql = hostile_question(chance)
    select = None if chance.random() < 0.3 else parse_past(sql, {})
    column = chance.choice((sql, sql.replace('"', '""'), f'k" {sql}'))
    source = PanelSource("R0", pa.schema([(column, pa.int64()), *SCHEMA]), None, select)
    service = Service.__new__(Service)
    service.settings = ServerSettings()
    service._shares = Shares(1, "statements")
    service._threads = cast(Any, AtOnce())
    service._database = cast(Any, SimpleNamespace(past=StoredHere(sandbox)))
    chosen = source.column(column).sql
    question = source.ask(service, f"SELECT {chosen} FROM {source.rows()}", SERVER)
    with pytest.raises(StopIteration):
        question.send(None)


class AtOnce:
    """Threads that are none."""

    async def select(self, work: Callable[[], Any]) -> Any:
        return work()


class StoredHere:
    """The tables of this test, as a database has them."""

    def __init__(self, sandbox: AnySandbox) -> None:
        self._sandbox = sandbox

    def select_tree(self, tree: exp.Query, sql: str, **_: Any) -> None:
        ask_tree(self._sandbox, tree, sql)


def by_alert(sandbox: AnySandbox, chance: random.Random) -> None:
    given = AlertDefinition("a", "R0", hostile_condition(chance))
    Condition(sandbox, given, SCHEMA)


WAYS = {"sql": by_sql, "pg": by_pg, "panel": by_panel, "alert": by_alert}


def run(
    sandbox: AnySandbox,
    way: Callable[[AnySandbox, random.Random], None],
    cases: int,
    seed: int,
) -> None:
    chance = random.Random(seed)
    for _ in range(cases):
        with suppress(NilometerError):
            way(sandbox, chance)


@pytest.mark.parametrize("way", WAYS)
def test_nothing_but_given_tables_is_asked_about(sandbox: Listening, way: str) -> None:
    before = sandbox.judged
    run(sandbox, WAYS[way], CASES, seed=1)
    assert sandbox.judged > before + CASES // 50


class Judging(Sandbox):
    """Judges what would be asked, and asks nothing: so a million take an hour or two."""

    def bind(self, sql: str, tables: Mapping[str, pa.Table]) -> None:
        require_harmless(sql, tables)

    def run(self, sql: str, tables: Mapping[str, Any], *more: Any) -> pa.Table:
        return EMPTY


MILLION: Final = {"sql": 12, "pg": 8}
"""Parts of 50 000 statements, each a test of its own: together they are a million."""


@pytest.mark.soak
@pytest.mark.limit(3600)
@pytest.mark.parametrize(
    ("way", "part"), [(way, part) for way, parts in MILLION.items() for part in range(parts)]
)
def test_nothing_but_given_tables_is_asked_about_in_a_million(way: str, part: int) -> None:
    with closing(Judging(256 << 20)) as judging:
        run(judging, WAYS[way], 50_000, seed=random.randrange(1 << 30))


@pytest.mark.soak
@pytest.mark.limit(3600)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_but_given_tables_is_read_in_ten_thousand(sandbox: Listening, way: str) -> None:
    """As in the test of every day: what passes is asked for, in a process that may be ended."""
    run(sandbox, WAYS[way], 10_000, seed=random.randrange(1 << 30))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT getenv('HOME')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT 1 UNION SELECT \"getenv\" ('HOME')",
        "COPY (SELECT 1) TO '/tmp/x'",
        "SELECT * FROM elsewhere",
        "WITH sqlite_master AS (SELECT * FROM sqlite_master) SELECT * FROM sqlite_master",
    ],
)
def test_the_judge_sees_what_must_not_be(sql: str) -> None:
    with pytest.raises(AssertionError):
        require_harmless(sql, ["R0"])


def test_the_judge_takes_no_name_of_with_for_a_call() -> None:
    require_harmless('WITH "getenv"("HOME") AS (SELECT k FROM R0) SELECT k FROM "getenv"', ["R0"])
