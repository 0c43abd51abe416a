"""Runs the text in the editor: rows, a sentence, a plan, or a query that keeps running."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TypeAlias

from nilometer.errors import NilometerError, SqlError
from nilometer.server.scopes import Asker, require_scope, scope_needed
from nilometer.server.service import Service
from nilometer.server.statement_runner import Executed
from nilometer.sql.statements import Statement, numbered_errors


@dataclass(frozen=True)
class Started:
    """A query that runs until it is stopped."""

    name: str
    text: str


@dataclass(frozen=True)
class Explained:
    """What a query would do, as EXPLAIN says."""

    text: str


Done: TypeAlias = Executed | Started | Explained


@dataclass(frozen=True)
class Ran:
    """One of the statements of a text, and its outcome."""

    number: int
    """Counted from 1."""
    count: int
    text: str
    outcome: Done | NilometerError
    """An error is the last outcome: no statement after it is run."""


async def run_statements(service: Service, text: str, asker: Asker) -> AsyncGenerator[Ran, None]:
    """Run all statements of a text, one after the other, up to the first that fails.

    What cannot be parsed, or is not allowed, is raised before anything is run.
    """
    parts = await service.split(text)
    for part in parts:
        require_scope(asker.scopes, scope_needed(await service.read(part)))
    for number, part in enumerate(parts, 1):
        try:
            with numbered_errors(number, len(parts)):
                done = await _run(service, part, asker, is_last=number == len(parts))
        except NilometerError as error:
            yield Ran(number, len(parts), part.strip(), error)
            return
        yield Ran(number, len(parts), part.strip(), done)


async def _run(service: Service, text: str, asker: Asker, *, is_last: bool) -> Done:
    """Run one statement; a SELECT over streams as a temporary query."""
    statement = await service.read(text)
    if not isinstance(statement, Statement):
        return await service.execute(text, asker)
    if statement.explain is not None:
        return Explained(await service.explain(text, asker))
    if not await service.is_continuous(text, asker):
        return await service.execute(text, asker)
    if not is_last:
        raise SqlError(
            "this query runs for as long as its streams do, so no statement can come after it",
            hint="put it last, run it by itself, or keep it: CREATE QUERY name AS …",
        )
    query = await service.queries.create(text.strip(), asker, temporary=True)
    return Started(query.name, text.strip())
