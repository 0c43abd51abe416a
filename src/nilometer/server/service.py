"""What the HTTP API and the console ask of the database; they know nothing else of it.

Every method may be called from the event loop: what takes time runs in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa

from nilometer.database import Database
from nilometer.errors import NilometerError
from nilometer.sensors.manager.status import SensorStatus
from nilometer.server.scopes import Scope, allows, scope_needed
from nilometer.server.settings import ServerSettings
from nilometer.spark.failures import told_in_words
from nilometer.sql.statements import Statement, read_one

_THREADS: Final = 8
_Result = TypeVar("_Result")


class ForbiddenError(NilometerError):
    """Something that a token does not allow."""


@dataclass(frozen=True)
class Executed:
    """What a statement did: a sentence, and rows where it asks for some."""

    message: str | None
    rows: pa.Table | None
    is_cut: bool = False
    """Whether there were more rows."""


class Service:
    """A database that is served."""

    def __init__(self, database: Database, settings: ServerSettings) -> None:
        self.database = database
        self.settings = settings
        self._threads = ThreadPoolExecutor(_THREADS, "statement")

    async def execute(self, text: str, scopes: Set[Scope]) -> Executed:
        """Run one statement, if these scopes allow it."""
        statement = read_one(text)
        needed = scope_needed(statement)
        if not allows(scopes, needed):
            raise ForbiddenError(
                f"this statement needs the scope {needed}",
                hint="use a token that has it: nilometer tokens create",
            )
        if isinstance(statement, Statement):
            return await self.in_thread(lambda: self._select(text))
        return await self.in_thread(lambda: self._run(text))

    async def check(self, text: str) -> NilometerError | None:
        """What is wrong with a statement, without running it."""
        try:
            statement = read_one(text)
            if isinstance(statement, Statement):
                await self.in_thread(lambda: self.database.explain(text))
        except NilometerError as error:
            return error
        return None

    async def sensors(self) -> list[SensorStatus]:
        """The sensors that some query needs at present."""
        return await self.in_thread(self.database.sensors)

    async def in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Do something that takes time; errors of Spark are told in words."""

        def told() -> _Result:
            with told_in_words():
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._threads, told)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _select(self, text: str) -> Executed:
        most = self.settings.most_rows
        rows = self.database.sql(text).limit(most + 1).toArrow()
        return Executed(None, rows.slice(0, most), rows.num_rows > most)

    def _run(self, text: str) -> Executed:
        outcome = self.database.execute(text)
        return Executed(outcome.message, outcome.rows)
