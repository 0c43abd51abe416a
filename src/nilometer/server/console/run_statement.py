"""Runs what stands in the editor: rows, a sentence, a plan, or a query that goes on."""

from __future__ import annotations

from dataclasses import dataclass

from nilometer.server.scopes import Asker
from nilometer.server.service import Executed, Service
from nilometer.sql.statements import Statement


@dataclass(frozen=True)
class Started:
    """A query that runs until it is stopped."""

    name: str
    text: str


@dataclass(frozen=True)
class Explained:
    """What a query would do."""

    text: str


async def run_statement(
    service: Service, text: str, asker: Asker
) -> Executed | Started | Explained:
    """Run one statement; a SELECT over streams as a temporary query."""
    statement = await service.read(text)
    if not isinstance(statement, Statement):
        return await service.execute(text, asker)
    if statement.explain is not None:
        return Explained(await service.explain(text, asker))
    if await service.is_continuous(text, asker):
        made = await service.create_query(text, asker, temporary=True)
        return Started(made.name, text)
    return await service.execute(text, asker)
