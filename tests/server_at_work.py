"""A real server in a process of its own, for tests that need one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.server.scopes import Scope
from nilometer.server.tokens import Tokens
from nilometer.upkeep.places import CATALOG_FILE
from tests.patience import LONG, wait_for


@dataclass
class ServerAtWork:
    """A server that runs, or was killed."""

    folder: Path
    url: str
    tokens: dict[str, str]
    """By scope: read, write, admin."""
    process: subprocess.Popen[bytes]
    output: Path
    errors: Path
    options: Sequence[str] = field(default_factory=tuple)
    session_by_link: str = ""
    """The cookie that the login link set, once it was followed."""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def login_link(self) -> str:
        """The link to the console, which works once."""
        line = next(one for one in self.output.read_text().splitlines() if "/login?code=" in one)
        return line.split()[1]

    def headers(self, scope: str = "admin") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[scope]}"}

    def sql(self, statement: str, scope: str = "admin") -> dict[str, Any]:
        """Run a statement; an error of the server fails the test, with its message."""
        answer = httpx.post(
            f"{self.url}/sql",
            json={"statement": statement},
            headers=self.headers(scope),
            timeout=LONG,
        )
        assert answer.status_code == 200, answer.text
        content: dict[str, Any] = answer.json()
        return content

    def follow_login_link(self) -> None:
        """Begin a session through the link, as a browser would."""
        self.session_by_link = httpx.get(self.login_link).cookies["nilometer_session"]

    def kill(self) -> None:
        """Kill it, as a power failure would, and Spark with it."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Ask it to stop, and return its exit code; whatever is left of it is killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(LONG)
        finally:
            if self.process.poll() is None:
                self.kill()


@contextmanager
def server_at_work(
    folder: Path, *options: str, port: int = 0, env: dict[str, str] | None = None
) -> Iterator[ServerAtWork]:
    """`nilometer serve` over a folder on a free port, ready; it is stopped at the end.

    The same folder and port (`server.port`) after a kill give the same server again.
    """
    tokens = make_tokens(folder)
    output, errors = folder / "server.out", folder / "server.err"
    command = [sys.executable, "-m", "nilometer", "serve", "--db", str(folder)]
    with output.open("wb") as out, errors.open("ab") as err:
        process = subprocess.Popen(
            [*command, "--port", str(port), *options],
            stdout=out,
            stderr=err,
            start_new_session=True,
            env={**os.environ, **(env or {})},
        )
    server = ServerAtWork(folder, "", tokens, process, output, errors, options)
    try:
        _wait_until_ready(server)
        yield server
    finally:
        server.stop()


def make_tokens(folder: Path) -> dict[str, str]:
    """A new token for each scope."""
    folder.mkdir(parents=True, exist_ok=True)
    with SensorCatalog.open(folder / CATALOG_FILE) as catalog:
        tokens = Tokens(catalog)
        started = time.time_ns()
        return {one.value: tokens.create(f"{one.value} {started}", one) for one in Scope}


def _wait_until_ready(server: ServerAtWork) -> None:
    def is_ready() -> bool:
        lines = server.output.read_text().splitlines()
        server.url = next((one.split()[-1] for one in lines if one.startswith("listening at ")), "")
        return bool(server.url) and _is_ready(server.url)

    def said() -> str:
        words = server.output.read_text() + server.errors.read_text()
        return f"the server did not become ready:\n{words}"

    wait_for(is_ready, every=0.1, said=said, alive=lambda: server.process.poll() is None)


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
