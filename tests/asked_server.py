"""A server without Spark that commands call over a real connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import Result
from typer.testing import CliRunner

from nilometer.cli import app
from nilometer.errors import NilometerError
from nilometer.log.layout import LogLayout
from nilometer.log.writer import LogWriter
from nilometer.sensors.catalog.outcome import Outcome
from nilometer.server.results.stored_results import StoredResults
from nilometer.sql.ddl.nodes import DatabaseStatement, Show, ShowKind
from tests.results_server import QUICK, WebServer
from tests.served import Served, served

MADE = (
    "CREATE TABLE T (k INT, s STRING)",
    "INSERT INTO T VALUES (1, 'a'), (2, NULL)",
    "CREATE SENSOR TABLE Rooms (id INT, Reading STREAM(v INT) FROM synthetic)",
)


class Asked:
    """A server for commands to call."""

    def __init__(self, server: Served, url: str, folder: Path) -> None:
        self.server, self.url, self.folder = server, url, folder
        server.service.queries._results = StoredResults(self.log_of)
        self._execute = server.database.execute
        server.database.execute = self._answer  # type: ignore[method-assign]

    def _answer(self, statement: str | DatabaseStatement, **more: Any) -> Outcome:
        if isinstance(statement, Show) and statement.what is ShowKind.QUERIES:
            entries = self.server.database.kept.values()
            rows = [
                {"name": one.name, "state": "running", "error": None, "query": one.text}
                for one in entries
            ]
            schema = pa.schema(dict.fromkeys(("name", "state", "error", "query"), pa.string()))
            return Outcome("queries", pa.Table.from_pylist(rows, schema))
        return self._execute(statement, **more)

    def log_of(self, name: str) -> str:
        return str(self.folder / "logs" / name.lower())

    def run(self, *arguments: str, scope: str = "admin", command: str = "sql") -> Result:
        """The output of a command; its error is raised."""
        token = {"NILOMETER_TOKEN": self.server.secrets.get(scope, scope)}
        words = [*command.split(), *arguments, "--server", self.url]
        done = CliRunner(env=token).invoke(app, words)
        if isinstance(done.exception, NilometerError):
            raise done.exception
        assert done.exception is None, done.exception
        return done

    def sql(self, *arguments: str, scope: str = "admin") -> str:
        return self.run(*arguments, scope=scope).stdout

    def query(self, name: str, schema: pa.Schema) -> LogWriter:
        """A stored query, and the writer of its results."""
        self.server.ask("POST", "/queries", json={"statement": "SELECT n FROM S", "name": name})
        layout = LogLayout(schema, "_time", changes="_diff" in schema.names)
        return LogWriter.open(self.log_of(name), layout, QUICK)


@contextmanager
def asked_server(folder: Path) -> Iterator[Asked]:
    """A server with a table and a sensor table."""
    with served(folder) as server:
        for statement in MADE:
            assert server.sql(statement).status_code == 200
        web = WebServer(lambda: server.app)
        web.start()
        yield Asked(server, web.url, folder)
        web.cut()
