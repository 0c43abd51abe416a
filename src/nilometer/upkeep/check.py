"""`nilometer check`: whether a database, or a backup, is whole. Nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nilometer.errors import BackupError, InputError, NilometerError
from nilometer.log.location import inside, storage_at
from nilometer.log.published import read_layout
from nilometer.log.recovery import LogState
from nilometer.log.storage import Storage
from nilometer.log.waiting_rows import waiting_in
from nilometer.upkeep.catalog_place import catalog_elsewhere
from nilometer.upkeep.check_catalog import check_catalog
from nilometer.upkeep.check_log import check_log
from nilometer.upkeep.check_state import check_checkpoint, check_engine
from nilometer.upkeep.format import read_format
from nilometer.upkeep.identity import IDENTITY_FILE, PLACE_FILE, read_identity, read_place
from nilometer.upkeep.in_use import held_still
from nilometer.upkeep.kept_buckets import BUCKETS_FILE, read_buckets
from nilometer.upkeep.kept_catalog import KeptCatalog, log_folder
from nilometer.upkeep.logs_place import logs_of, without_password
from nilometer.upkeep.manifest import BACKUPS, BackupFile, backup_names, read_manifest
from nilometer.upkeep.places import (
    CATALOG_FILE,
    CHECKPOINTS,
    ENGINE,
    WRITE_AHEAD,
    file_name,
    is_database,
)
from nilometer.upkeep.problem import Problem, Problems
from nilometer.upkeep.restore import blocks_of

_PUT_ASIDE: Final = "put the folder aside if the rows may be needed, or delete it"
_OTHER: Final = "make a new backup; restore only others: nilometer backup --list"


@dataclass(frozen=True)
class Checked:
    """What was checked, and what is wrong with it."""

    what: str
    problems: tuple[Problem, ...]


def check(place: str, logs: str | None = None, catalog: str | None = None) -> Checked:
    """Check a database folder, or a destination of backups."""
    if "://" not in place:
        folder = Path(place).expanduser().absolute()
        if is_database(folder):
            return check_database(folder, logs, catalog)
    storage = storage_at(place)
    if not storage.files(BACKUPS):
        raise InputError(
            f"there is no database and no backup in {place}",
            hint="name the folder of a database, or the destination of backups",
        )
    return check_backups(storage)


def check_database(folder: Path, logs: str | None = None, catalog: str | None = None) -> Checked:
    """Check all of a database that no process has open; if its logs or its catalog are elsewhere,
    the folder knows where, but not the passwords."""
    problems = Problems()
    with held_still(folder) as holder:
        if holder is not None:
            raise InputError(
                f"the database {folder} is in use",
                detail=f"{holder} has it open",
                hint="close it there; or back it up, restore the backup elsewhere, and check that",
            )
        with problems.noting(folder):
            read_format(folder)
        with problems.noting(folder / BUCKETS_FILE):
            read_buckets(folder)
        _check_identity(folder, problems)
        place = catalog or catalog_elsewhere(folder) or folder / CATALOG_FILE
        contents = check_catalog(place, problems)
        where = logs or logs_of(folder)
        ends = _check_logs(where, contents, problems)
        _check_write_aheads(folder / WRITE_AHEAD, where, contents, problems)
        if contents is not None:
            _check_queries(folder, contents, ends, problems)
    return Checked(f"the database {folder}", tuple(problems))


def _check_identity(folder: Path, problems: Problems) -> None:
    with problems.noting(folder / PLACE_FILE, "delete it: it will be rewritten"):
        has_place = bool(read_place(folder))
        if (has_place or (folder / IDENTITY_FILE).exists()) and not read_identity(folder):
            problems.add(
                folder / IDENTITY_FILE,
                "it is missing or damaged",
                "open the database: it gets a new name, which brokers do not know yet",
            )


def _check_logs(
    logs: str, catalog: KeptCatalog | None, problems: Problems
) -> dict[str, LogState | None]:
    """Check every log that exists, and those that should exist."""
    there = _logs_there(logs, catalog)
    ends = {name: check_log(inside(logs, name), problems) for name in sorted(there)}
    for stream in () if catalog is None else catalog.streams:
        if log_folder(stream) not in there:
            place = inside(without_password(logs), log_folder(stream))
            problems.add(place, f"the log of {stream} is missing")
    return ends


def _check_write_aheads(
    folder: Path, logs: str, catalog: KeptCatalog | None, problems: Problems
) -> None:
    """Check what waits for an object store, and that its logs are there."""
    for place in sorted(one for one in folder.glob("*") if one.is_dir()):
        check_log(place, problems)
        with problems.noting(place):
            rows, log = waiting_in(place)
            is_known = catalog is None or place.name in catalog.logs
            layout = read_layout(storage_at(inside(logs, place.name))) if is_known else None
            if rows and (layout is None or layout[1] != log):
                problems.add(place, f"{rows} rows wait for a log that is not there", _PUT_ASIDE)


def _logs_there(logs: str, catalog: KeptCatalog | None) -> set[str]:
    """The logs that the catalog names; without one, all that a folder holds."""
    if "://" in logs:
        names = () if catalog is None else catalog.logs
        return {one for one in names if not storage_at(inside(logs, one)).is_empty()}
    folder = Path(logs)
    there = {one.name for one in folder.iterdir() if one.is_dir()} if folder.is_dir() else set()
    return there if catalog is None else there & set(catalog.logs)


def _check_queries(
    folder: Path, catalog: KeptCatalog, ends: dict[str, LogState | None], problems: Problems
) -> None:
    hosted = {one.hosted: ends.get(log_folder(one.name)) for one in catalog.queries if one.hosted}
    check_engine(folder / ENGINE, hosted, problems)
    for one in catalog.queries:
        if one.hosted is None:
            results = ends.get(log_folder(one.name))
            check_checkpoint(folder / CHECKPOINTS / file_name(one.name), results, problems)


def check_backups(storage: Storage) -> Checked:
    """Every file of every backup, against its checksum."""
    problems, seen = Problems(), set[tuple[str, int, int]]()
    for name in backup_names(storage):
        try:
            manifest = read_manifest(storage, name)
        except NilometerError as error:
            problems.add(f"{storage.location}, backup {name}", f"{error.message}", _OTHER)
            continue
        bad = [one for one in manifest.files if not _is_good(storage, one, seen)]
        if bad:
            shown = ", ".join(one.path for one in bad[:3])
            more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
            problems.add(
                f"{storage.location}, backup {name}",
                f"these files are damaged or missing: {shown}{more}",
                _OTHER,
            )
    return Checked(f"the backups in {storage.location}", tuple(problems))


def _is_good(storage: Storage, file: BackupFile, seen: set[tuple[str, int, int]]) -> bool:
    """Whether a file of a backup is what was stored; what several have in common is read once."""
    key = (file.object, file.start, file.size)
    if key in seen:
        return True
    try:
        for _ in blocks_of(storage, file):
            pass
    except (BackupError, OSError):
        return False
    seen.add(key)
    return True
