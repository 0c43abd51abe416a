"""Where the server of a database folder listens, as recorded in a file in that folder.

Whoever finds the folder in use learns from it which server to ask. The file is trusted only if the
server that wrote it still holds the folder, and if nobody else can have written it.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from socket import gethostname
from typing import Final
from urllib.parse import urlsplit

LOCK_FILE: Final = "lock"
SERVER_FILE: Final = "server.json"
_LONGEST: Final = 2000
_OTHERS_WRITE: Final = 0o022
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that mean "listen on all", and those by which such a server is reached from here."""


@dataclass(frozen=True)
class ServedAt:
    """A server that has a database open."""

    address: str
    """Such as http://127.0.0.1:8642."""
    pid: int
    host: str


@contextmanager
def announced_at(folder: Path, address: str) -> Iterator[None]:
    """Within this context, record in a database folder the address at which it is served."""
    file, aside = folder / SERVER_FILE, folder / f"{SERVER_FILE}.new"
    with suppress(OSError):  # with a full disk, the server works all the same
        aside.unlink(missing_ok=True)
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8") as out:
            json.dump(asdict(ServedAt(_reached_at(address), os.getpid(), gethostname())), out)
            out.flush()
            os.fsync(out.fileno())
        aside.replace(file)
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def holder_of(folder: Path) -> str | None:
    """Who has a database folder open, in words; None if nobody has.

    This neither waits nor changes anything.
    """
    try:
        lock = os.open(folder / LOCK_FILE, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.read(lock, 300).decode(errors="replace").strip() or "another process"
    finally:
        os.close(lock)
    return None


def written_holder() -> str:
    """What a process writes into the lock of a folder that it takes."""
    return _holder(os.getpid(), gethostname())


def find_server(folder: Path) -> ServedAt | None:
    """The server that has a folder open; None if there is none, or none that can be trusted."""
    holder = holder_of(folder)
    server = None if holder is None else _read(folder / SERVER_FILE)
    if server is None or holder != _holder(server.pid, server.host):
        return None
    return server


def _holder(pid: int, host: str) -> str:
    return f"process {pid} of {host}"


def _read(file: Path) -> ServedAt | None:
    """The content of a file that only this user or root can have written: a token may go there."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_mode & _OTHERS_WRITE:
                return None
            if status.st_uid not in (os.geteuid(), 0):
                return None
            fields = json.loads(opened.read(_LONGEST))
        address, pid, host = fields["address"], fields["pid"], fields["host"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not (isinstance(address, str) and isinstance(pid, int) and isinstance(host, str)):
        return None
    return ServedAt(address, pid, host) if _is_address(address) else None


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and address.isprintable()
    except ValueError:
        return False


def _reached_at(address: str) -> str:
    """The address by which this machine reaches a server that listens on all its addresses.

    >>> _reached_at("https://0.0.0.0:8642"), _reached_at("http://[::]:1")
    ('https://127.0.0.1:8642', 'http://[::1]:1')
    """
    parts = urlsplit(address)
    host = _EVERYWHERE.get(parts.hostname or "", parts.hostname or "")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{parts.port}"
