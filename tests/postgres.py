"""A private PostgreSQL for tests: one server for the whole run, and a database for each test."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import pytest

_USER: Final = "postgres"
_DEBIAN: Final = Path("/usr/lib/postgresql")
_SETTINGS: Final = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "50",
}


@dataclass(frozen=True)
class Postgres:
    """A running server that is reached only through a socket in its folder."""

    programs: Path
    folder: Path
    _numbers: count[int] = field(default_factory=count, repr=False)

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"test{next(self._numbers)}"
        _run(self.programs / "createdb", "-h", str(self.folder), "-U", _USER, name)
        return f"postgresql://{_USER}@/{name}?host={self.folder}"

    def program(self, name: str, *arguments: str, given: str = "") -> str:
        """Run one of PostgreSQL's programs on a text, as its user; returns its output."""
        command = _as_user([str(self.programs / name), *arguments])
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, cwd="/", check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def start_postgres() -> Iterator[Postgres]:
    """A server that is gone afterwards; skips the test if PostgreSQL is missing."""
    programs = _programs()
    # Not in pytest's folder: root's is closed to the user that the server must run as.
    folder = Path(tempfile.mkdtemp(prefix="nilometer-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, _USER, _USER)
    with _removed_at_the_end(programs, folder):
        data = str(folder / "data")
        trust = ["--auth=trust", f"--username={_USER}", "--no-sync", "--encoding=UTF8"]
        _run(programs / "initdb", "-D", data, *trust, "--locale=C.UTF-8")
        settings = " ".join(f"-c {name}={value!r}" for name, value in _SETTINGS.items())
        options = f"-k {folder} {settings}"
        log = str(folder / "log")
        _run(programs / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")
        yield Postgres(programs, folder)


@contextmanager
def _removed_at_the_end(programs: Path, folder: Path) -> Iterator[None]:
    """Stop the server and remove its folder, even if this process is killed.

    A shell waits for the end of a pipe, which comes in any case.
    """
    stop = 'read -r _; "$1" -D "$2/data" -m immediate stop; rm -rf "$2"'
    command = ["sh", "-c", stop, "sh", str(programs / "pg_ctl"), str(folder)]
    with subprocess.Popen(
        _as_user(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    ):
        yield


def _programs() -> Path:
    """The folder of the server's programs, the newest one if there are several."""
    installed = sorted(_DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if not installed and on_path is None:
        pytest.skip(
            "PostgreSQL's server is not installed (initdb): apt-get install postgresql, "
            "or make setup as root"
        )
    if os.geteuid() == 0 and not _may_change_user():
        pytest.skip(f"PostgreSQL refuses to run as root, and there is no user {_USER} or runuser")
    return installed[-1].parent if installed else Path(str(on_path)).parent


def _may_change_user() -> bool:
    known = any(one.pw_name == _USER for one in pwd.getpwall())
    return known and shutil.which("runuser") is not None


def _run(program: Path, *arguments: str) -> None:
    command = _as_user([str(program), *arguments])
    # The server inherits open files: a pipe would never end for us.
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(
            command, stdout=said, stderr=said, stdin=subprocess.DEVNULL, cwd="/", check=False
        )
        if done.returncode:
            said.seek(0)
            raise RuntimeError(f"{command} failed:\n{said.read().decode(errors='replace')}")


def _as_user(command: list[str]) -> list[str]:
    """The command, run as another user if we are root: PostgreSQL refuses to run as root."""
    return ["runuser", "-u", _USER, "--", *command] if os.geteuid() == 0 else command
