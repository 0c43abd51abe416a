"""The server of a demo: `nilometer serve` in a process of its own, which ends with the demo."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nilometer.database.home import CATALOG_FILE
from nilometer.errors import SessionError
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.server.scopes import Scope
from nilometer.server.settings import ServerSettings
from nilometer.server.tokens import Tokens

_LISTENING: Final = "listening at "
_CONSOLE: Final = "console "
_STOP_WITHIN: Final = 30.0


@dataclass(frozen=True)
class DemoServer:
    """Where it is, and what opens it."""

    url: str
    token: str
    link: str
    """Of the console; it works once."""


@contextmanager
def server_for_demo(folder: Path, config: Path | None = None) -> Iterator[DemoServer]:
    """A server over a new database in this folder, set up by a TOML file if there is one."""
    folder.mkdir(parents=True)
    with SensorCatalog.open(folder / CATALOG_FILE) as catalog:
        token = Tokens(catalog).create("demo", Scope.ADMIN)
    errors = folder / "server.err"
    options = ["--db", str(folder), "--port", _port()]
    options += [] if config is None else ["--config", str(config)]
    with errors.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "nilometer", "serve", *options],
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            start_new_session=True,  # Ctrl-C is for the demo, which stops the server in its turn
        )
    try:
        yield _greeted(process, token, errors)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()


def _greeted(process: subprocess.Popen[str], token: str, errors: Path) -> DemoServer:
    """What the server says once it listens."""
    assert process.stdout is not None
    url = ""
    for line in process.stdout:
        if line.startswith(_LISTENING):
            url = line.removeprefix(_LISTENING).strip()
        elif line.strip().startswith(_CONSOLE):
            return DemoServer(url, token, line.split()[1])
    said = errors.read_text(errors="replace").strip()
    raise SessionError("the server could not be started", detail=said[-500:] or None)


def _port() -> str:
    """The usual one if it is free, so that the address is the one in the documentation."""
    port = ServerSettings().port
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return "0"
    return str(port)
