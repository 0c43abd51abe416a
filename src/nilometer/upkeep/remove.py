"""Removes old backups, and the objects that no other backup needs.

A backup uses objects that are there already, and its manifest comes last; so nothing is removed
while one is made, and none is begun while something is removed. Both leave a note in the
destination, and look for notes of others only then: of two at the same moment at least one sees the
other.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from nilometer.errors import BackupError, InputError
from nilometer.log.location import storage_at
from nilometer.log.storage import Storage
from nilometer.upkeep.manifest import BACKUPS, OBJECTS, backup_names, known_objects, read_manifest

_NOTES: Final = "at-work"
BACKUP: Final = "backup"
REMOVAL: Final = "removal"
_OVER_AFTER: Final = {BACKUP: 86_400.0, REMOVAL: 3600.0}
"""After how many seconds the process that left a note counts as killed."""
_DOES: Final = {BACKUP: "a backup is being made", REMOVAL: "old backups are being removed"}


@dataclass(frozen=True)
class Removed:
    """What was removed."""

    names: tuple[str, ...]
    freed: int
    """Bytes."""


@contextmanager
def at_work(storage: Storage, kind: str) -> Iterator[None]:
    """Keep removals and backups apart; raises BackupError if another one is in progress."""
    note = f"{kind}-{uuid4().hex}"
    content = {"at": time.time(), "by": f"process {os.getpid()} of {socket.gethostname()}"}
    storage.write(f"{_NOTES}/{note}", [json.dumps(content).encode()])
    try:
        for name, _ in storage.files(_NOTES):
            other = name.partition("-")[0]
            if name != note and other in _DOES and REMOVAL in (kind, other):
                _refuse(storage, name, other)
        yield
    finally:
        storage.delete(f"{_NOTES}/{note}")


def _refuse(storage: Storage, name: str, kind: str) -> None:
    """Raise if another process is at work; notes of killed processes are removed."""
    try:
        content = json.loads(storage.read(f"{_NOTES}/{name}"))
        age, by = time.time() - float(content["at"]), str(content["by"])
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):
        age, by = 0.0, "somebody"
    if age > _OVER_AFTER[kind]:
        storage.delete(f"{_NOTES}/{name}")
        return
    raise BackupError(
        f"{_DOES[kind]} in {storage.location}",
        detail=f"by {by}, since {max(age, 0):.0f} s",
        hint=f"wait for it; if it was killed, delete {_NOTES}/{name} there",
    )


def remove_backups(destination: str, database: str, keep: int) -> Removed:
    """Remove the oldest backups of a database, so that this many are left.

    Backups of other databases in the same place stay.
    """
    if keep < 1:
        raise InputError("at least one backup is kept", detail=f"got {keep}")
    storage = storage_at(destination)
    with at_work(storage, REMOVAL):
        manifests = [read_manifest(storage, name) for name in backup_names(storage)]
        own = [one for one in manifests if one.database == database]
        old = {one.name for one in own[: max(0, len(own) - keep)]}
        for name in sorted(old):
            storage.delete(f"{BACKUPS}/{name}.json")
        needed = {file.object for one in manifests if one.name not in old for file in one.files}
        freed = 0
        for name, size in known_objects(storage).items():
            if name not in needed:
                storage.delete(f"{OBJECTS}/{name}")
                freed += size
    return Removed(tuple(sorted(old)), freed)
