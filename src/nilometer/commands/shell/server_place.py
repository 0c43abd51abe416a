"""A server as the place of a shell."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from nilometer.client import Client
from nilometer.commands.arrow_answer import ArrowAnswer
from nilometer.commands.follow_on_server import follow_named, follow_select
from nilometer.commands.follow_results import Followed, Screen
from nilometer.commands.run_on_server import notice_of_cut
from nilometer.commands.server_access import Server
from nilometer.commands.shell.place import StatementResult
from nilometer.commands.statements import OneStatement


@dataclass
class ServerPlace:
    """Runs statements on a server."""

    server: Server
    _client: Client = field(init=False)

    def __post_init__(self) -> None:
        self._client = self.server.open()

    @property
    def title(self) -> str:
        return f"the server at {self.server.url}"

    def run(self, statement: OneStatement) -> StatementResult:
        rows = self._client.execute(statement.sql, parameters=statement.parameters)
        if not rows.table.num_columns:
            return StatementResult(rows.message)
        return StatementResult(rows.message, ArrowAnswer(rows.table), notice_of_cut(rows))

    def explain(self, statement: OneStatement) -> str:
        return self._client.explain(statement.sql, parameters=statement.parameters)

    def look(self, statement: str) -> pa.Table:
        return self._client.execute(statement).table

    def cancel(self) -> None:
        given_up, self._client = self._client, self.server.open()
        given_up.close()

    def follow_select(self, statement: OneStatement, screen: Screen) -> Followed:
        return follow_select(self.server, self._client, statement, screen)

    def follow_named(self, name: str, screen: Screen) -> Followed:
        return follow_named(self.server, self._client, name, screen)

    def close(self) -> None:
        self._client.close()
