"""Where the statements of a shell are run: at a server, or in a database of this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from nilometer.commands.answers import Answer
from nilometer.commands.follow_results import Followed, Screen
from nilometer.commands.statements import OneStatement


@dataclass(frozen=True)
class Done:
    """What a statement did: a sentence, rows, or both."""

    message: str | None = None
    answer: Answer | None = None
    note: str | None = None
    """What else is to be known of the rows."""


class Place(Protocol):
    """Runs statements; all but `cancel` and `look` from one thread at a time."""

    @property
    def title(self) -> str:
        """What it is, for people: the server at http://…"""

    def run(self, statement: OneStatement) -> Done:
        """Run one statement; GoesOnError if it is a query that is to be followed."""

    def explain(self, statement: OneStatement) -> str:
        """What a query would do."""

    def look(self, statement: str) -> pa.Table:
        """The rows of SHOW or DESCRIBE, from any thread."""

    def cancel(self) -> None:
        """End what `run` is waiting for, as far as that can be done."""

    def follow_select(self, statement: OneStatement, screen: Screen) -> Followed:
        """Show what comes of a query over streams until it is stopped."""

    def follow_named(self, name: str, screen: Screen) -> Followed:
        """Show what comes of a named query until it is stopped."""

    def close(self) -> None: ...
