"""`nilometer move-logs`: moves the logs of a database elsewhere, such as to an object store.

They are copied one after the other. Only once all are copied does the folder of the database name
the new place; until then it uses the old one, whatever happens, and the old logs are left where
they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nilometer.errors import InputError, InUseError
from nilometer.log.clock import now_micros
from nilometer.log.copy_log import copy_log
from nilometer.log.dead_letters import dead_letter_log
from nilometer.log.location import inside, storage_at
from nilometer.log.open_ahead import open_ahead
from nilometer.log.options import LogOptions
from nilometer.log.published import read_layout
from nilometer.log.stored_json import json_bytes, read_json
from nilometer.log.writer import LogWriter
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sql.ddl.nodes import ObjectKind
from nilometer.upkeep.catalog_place import settle_catalog
from nilometer.upkeep.format import read_format
from nilometer.upkeep.identity import read_identity
from nilometer.upkeep.in_use import held_still
from nilometer.upkeep.logs_place import logs_of, remember_logs, without_password
from nilometer.upkeep.places import WRITE_AHEAD, file_name

_MOVING: Final = "moving.json"
_WITH_LOGS: Final = (ObjectKind.STREAM, ObjectKind.SENSOR_TABLE, ObjectKind.QUERY, ObjectKind.ALERT)


@dataclass(frozen=True)
class LogsMoved:
    """What a move did."""

    before: str
    logs: int
    size: int
    """Bytes of segments."""


def move_logs(
    folder: Path,
    to: str,
    *,
    catalog: str | None = None,
    tell: Callable[[str, int], None] = lambda _, __: None,
) -> LogsMoved:
    """Copy the logs of a database that no process has open, and make it use the copies."""
    folder = folder.expanduser().absolute()
    read_format(folder)
    target = to if "://" in to else str(Path(to).expanduser().absolute())
    with held_still(folder) as holder:
        if holder is not None:
            raise InUseError(
                f"the database {folder} is open",
                detail=f"{holder} has it",
                hint="stop it first; its queries go on afterwards where they were",
            )
        names, before = _logs(folder, catalog), logs_of(folder)
        _require_place(folder, before, target)
        marker = storage_at(target)
        marker.make()
        marker.write(_MOVING, [json_bytes({"database": read_identity(folder)})])
        sizes = {}
        for name in names:
            _ship_waiting(folder / WRITE_AHEAD / name, inside(before, name))
            size = copy_log(inside(before, name), inside(target, name))
            if size is not None:
                sizes[name] = size
                tell(name, size)
        remember_logs(folder, target)
        marker.delete(_MOVING)
    return LogsMoved(before, len(sizes), sum(sizes.values()))


def _ship_waiting(ahead: Path, location: str) -> None:
    """Bring what waits for an object store to the log, so that a copy has it."""
    stored = read_layout(storage_at(location))
    if stored is None or read_layout(storage_at(ahead)) is None:
        return
    with LogWriter.open(location, stored[0]) as log:
        open_ahead(ahead, log, location, LogOptions(), now_micros)  # none stays open


def _require_place(folder: Path, before: str, target: str) -> None:
    """Require a place that is empty, or where a move of this database was interrupted."""
    if without_password(target).rstrip("/") == before.rstrip("/"):
        raise InputError("the logs are there already", detail=before)
    storage = storage_at(target)
    begun = read_json(storage, _MOVING)
    if begun is not None and begun["database"] == read_identity(folder):
        return
    if begun is not None or not storage.is_empty():
        raise InputError(
            f"{without_password(target)} is not empty",
            hint="choose an empty location, or a new folder in it",
        )


def _logs(folder: Path, catalog: str | None) -> list[str]:
    """The folder names of all logs that may exist."""
    place = settle_catalog(folder, catalog)
    if isinstance(place, Path) and not place.is_file():
        raise InputError(
            f"there is no catalog in {folder}",
            hint="name the folder of a database; with --catalog if that is in PostgreSQL",
        )
    with SensorCatalog.open(place) as opened:
        keys = [opened.key(one.name) for one in opened.names() if one.kind in _WITH_LOGS]
    return [file_name(log) for key in keys for log in (key, dead_letter_log(key))]
