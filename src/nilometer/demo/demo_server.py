"""The server of a demo: `nilometer serve` in a separate process, which ends with the demo."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nilometer.errors import SessionError

_LISTENING: Final = "listening at "
_CONSOLE: Final = "console "
_TOKEN: Final = "token "
_STOP_WITHIN: Final = 30.0
_USUAL_PORT: Final = 8642
_QUICK_TO_START: Final = "-XX:TieredStopAtLevel=1"
"""Java compiles less: a server that lives for minutes is then ready much earlier."""


@dataclass(frozen=True)
class DemoServer:
    """Its address, and the link that opens it."""

    url: str
    token: str
    link: str
    """The link of the console; it works once."""


class StartingServer:
    """A server that takes some seconds to start: other things can start meanwhile."""

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self._process = process
        self._errors = errors

    def wait(self) -> DemoServer:
        """Wait until the server listens, and return its address."""
        assert self._process.stdout is not None
        url = link = ""
        for line in self._process.stdout:
            text = line.strip()
            if text.startswith(_LISTENING):
                url = text.removeprefix(_LISTENING)
            elif text.startswith(_CONSOLE):
                link = text.split()[1]
            elif text.startswith(_TOKEN):
                return DemoServer(url, text.split()[1], link)
        output = self._errors.read_text(errors="replace").strip()
        raise SessionError("the server could not be started", detail=output[-500:] or None)


@contextmanager
def server_for_demo(folder: Path, config: Path | None = None) -> Iterator[StartingServer]:
    """A server over a new database in this folder, configured by a TOML file if there is one."""
    folder.mkdir(parents=True)
    errors = folder / "server.err"
    options = ["--db", str(folder), "--port", _port()]
    options += [] if config is None else ["--config", str(config)]
    java = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {_QUICK_TO_START}".strip()
    with errors.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "nilometer", "serve", *options],
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            env={**os.environ, "JDK_JAVA_OPTIONS": java},
            start_new_session=True,  # Ctrl-C is for the demo, which then stops the server
        )
    try:
        yield StartingServer(process, errors)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()


def _port() -> str:
    """The usual port if it is free, so that the address matches the documentation."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", _USUAL_PORT))
        except OSError:
            return "0"
    return str(_USUAL_PORT)
