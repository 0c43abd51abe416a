"""Where a shell runs its statements: on a server, or in a database of this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from nilometer.commands.answers import Answer
from nilometer.commands.follow_results import Followed, Screen
from nilometer.commands.statements import OneStatement


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement: a sentence, rows, or both."""

    message: str | None = None
    answer: Answer | None = None
    note: str | None = None
    """A note about the rows."""


class Place(Protocol):
    """Runs statements; all but `cancel` and `look` from one thread at a time."""

    @property
    def title(self) -> str:
        """Its description for users: the server at http://…"""

    def run(self, statement: OneStatement) -> StatementResult:
        """Run one statement; raises GoesOnError for a query that must be followed."""

    def explain(self, statement: OneStatement) -> str:
        """The plan of a query."""

    def look(self, statement: str) -> pa.Table:
        """The rows of SHOW or DESCRIBE, from any thread."""

    def cancel(self) -> None:
        """Cancel what `run` is waiting for, as far as possible."""

    def follow_select(self, statement: OneStatement, screen: Screen) -> Followed:
        """Show the results of a query over streams until it is stopped."""

    def follow_named(self, name: str, screen: Screen) -> Followed:
        """Show the results of a named query until it is stopped."""

    def close(self) -> None: ...
