"""Whether a process has a database open."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nilometer.model.served_at import LOCK_FILE


@contextmanager
def held_still(folder: Path) -> Iterator[str | None]:
    """Keep others from opening a database meanwhile; yields who has it open already, if anyone.

    Nothing is written.
    """
    try:
        lock = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None  # it was never opened: it is new, or restored
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            holder = None
        except OSError:
            holder = os.read(lock, 300).decode(errors="replace").strip() or "another process"
        yield holder
    finally:
        os.close(lock)
