"""Closes databases that are still open when the process ends."""

from __future__ import annotations

import threading
from typing import Protocol
from weakref import WeakSet


class Closes(Protocol):
    """Something that can be closed; closing it twice is harmless."""

    def close(self) -> None: ...


_open: WeakSet[Closes] = WeakSet()


def close_at_exit(database: Closes) -> None:
    """Close a database when the process ends, unless it is closed already."""
    if not _registered:
        # `atexit` is too late: the threads needed to disconnect the sensors are gone by then.
        threading._register_atexit(_close_all)  # type: ignore[attr-defined]
        _registered.append(True)
    _open.add(database)


_registered: list[bool] = []


def _close_all() -> None:
    for database in list(_open):
        database.close()
