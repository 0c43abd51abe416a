"""A console over results that a test writes: a process of its own, without Spark.

python -m tests.console_at_work FOLDER PORT MODULE:PAGE serves the logs in FOLDER/logs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import cast

import httpx
import pyarrow as pa
import uvicorn

from nilometer.database import Database
from nilometer.log.layout import TIME, LogLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.writer import LogWriter
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.server.app import make_app
from nilometer.server.config import read_config
from nilometer.server.service import Service
from nilometer.server.sessions import Sessions
from nilometer.server.settings import ServerSettings
from nilometer.server.tokens import Tokens
from nilometer.upkeep.places import CATALOG_FILE
from tests.patience import wait_for
from tests.results_server import free_port
from tests.served import StoredOnly
from tests.server_at_work import make_tokens


@dataclass(frozen=True)
class ConsoleAtWork:
    """Its address, and the tokens that open it."""

    folder: Path
    url: str
    tokens: dict[str, str]

    def results(self, query: str, schema: pa.Schema) -> LogWriter:
        """A query, and the writer of its results, which have a `_time`."""
        layout = LogLayout(schema, TIME)
        return LogWriter.open(_log_of(self.folder, query), layout, LogOptions(fsync=Fsync.NEVER))


@contextmanager
def console_at_work(folder: Path, page: str) -> Iterator[ConsoleAtWork]:
    """The console with one page added; it is stopped at the end."""
    tokens, port = make_tokens(folder), free_port()
    given = [str(folder), str(port), page]
    process = Popen([sys.executable, "-m", "tests.console_at_work", *given])
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(process, url)
        yield ConsoleAtWork(folder, url, tokens)
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(process: Popen[bytes], url: str) -> None:
    def is_ready() -> bool:
        try:
            return httpx.get(f"{url}/health", timeout=5).is_success
        except httpx.TransportError:
            return False

    wait_for(is_ready, every=0.1, alive=lambda: process.poll() is None)


def _log_of(folder: Path, query: str) -> str:
    return str(folder / "logs" / query)


def main(folder: Path, port: int, page: str) -> None:
    """Serve until told to stop."""
    config = folder / "console.toml"
    config.write_text(f'[console]\npages = ["{page}"]')
    with SensorCatalog.open(folder / CATALOG_FILE) as catalog:
        database = StoredOnly(catalog)
        database.pretend_spark_lives()
        database.log_of = lambda name: _log_of(folder, name)  # type: ignore[method-assign]
        service = Service(cast(Database, database), ServerSettings())
        service.is_ready = True
        tokens = Tokens(catalog)
        app = make_app(service, tokens, Sessions(tokens), read_config(config).pages)
        uvicorn.run(app, port=port, log_level="critical", timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
