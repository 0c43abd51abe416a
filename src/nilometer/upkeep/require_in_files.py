"""Checks that all of a database is in files: only then is `nilometer backup` complete."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nilometer.errors import BackupError, InputError
from nilometer.upkeep.catalog_place import catalog_elsewhere
from nilometer.upkeep.logs_place import logs_of
from nilometer.upkeep.places import CATALOG_FILE

_CATALOG: Final = "pg_dump the catalog"
_LOGS: Final = "copy the objects of the logs, or move them into files (nilometer move-logs)"
_FOLDER: Final = "copy the folder"


def require_in_files(folder: Path) -> None:
    """Refuse a backup of a database whose catalog or logs are elsewhere; say what to do instead.

    The catalog, logs and state must be of one instant, which other systems would have to ensure.
    """
    catalog, logs = catalog_elsewhere(folder), logs_of(folder)
    elsewhere, steps = [], []
    if catalog is not None:
        elsewhere.append(f"its catalog is in {catalog}")
        steps.append(_CATALOG)
    if "://" in logs:
        elsewhere.append(f"its logs are in {logs}")
        steps.append(_LOGS)
    if elsewhere:
        raise BackupError(
            "only a database that is entirely in files can be backed up",
            detail="; ".join(elsewhere),
            hint=f"stop it, and while nobody has it open: {'; '.join([*steps, _FOLDER])} "
            "(docs/operations.md, Catalogs and logs elsewhere)",
        )


def require_catalog(folder: Path) -> Path:
    """The file of a folder's catalog."""
    file = folder / CATALOG_FILE
    if not file.is_file():
        raise InputError(f"there is no catalog in {folder}", hint="name the folder of a database")
    return file
