"""Whether the catalog of a folder is whole."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from nilometer.sensors.catalog.catalog_sum import has_other_sum, sum_file
from nilometer.sensors.catalog.migrate import known_revisions
from nilometer.sensors.catalog.schema import VERSION_TABLE
from nilometer.upkeep.catalog_place import catalog_without_password
from nilometer.upkeep.kept_catalog import KeptCatalog, read_catalog, read_other_catalog
from nilometer.upkeep.problem import Problems

_SHOWN: Final = 5


def check_catalog(place: str | Path, problems: Problems) -> KeptCatalog | None:
    """What is wrong with the catalog; what it says, if that can be read."""
    if isinstance(place, str) and "://" in place:
        return _check_other(place, problems)
    return _check_file(Path(place), problems)


def _check_other(url: str, problems: Problems) -> KeptCatalog:
    """Check a catalog in PostgreSQL, which checks its own pages; an unreachable one is an error."""
    contents, revisions = read_other_catalog(url)
    _check_revisions(catalog_without_password(url), revisions, problems)
    return contents


def _check_file(file: Path, problems: Problems) -> KeptCatalog | None:
    """Check a copy of the file: SQLite would tidy up the file itself."""
    if not file.is_file():
        problems.add(file, "it is missing")
        return None
    with problems.noting(sum_file(file)):
        if has_other_sum(file):
            problems.add(file, "its checksum has changed since it was closed")
    contents = None
    with tempfile.TemporaryDirectory(prefix="nilometer-check-") as place:
        for one in (file, file.with_name(f"{file.name}-wal")):
            if one.exists():
                shutil.copyfile(one, Path(place, one.name))
        copy = Path(place, file.name)
        with problems.noting(file):
            if _has_good_pages(file, copy, problems):
                contents = read_catalog(copy)
    return contents


def _has_good_pages(file: Path, copy: Path, problems: Problems) -> bool:
    """Whether SQLite can read all of a catalog."""
    try:
        _check_pages(file, copy, problems)
    except sqlite3.Error as error:
        problems.add(file, f"it is damaged: {error}")
        return False
    return True


def _check_pages(file: Path, copy: Path, problems: Problems) -> None:
    with closing(sqlite3.connect(copy)) as opened:
        results = [str(one) for (one,) in opened.execute("PRAGMA integrity_check")]
        if results != ["ok"]:
            problems.add(file, f"it is damaged: {'; '.join(results[:_SHOWN])}")
            return
        astray = opened.execute("PRAGMA foreign_key_check").fetchall()
        if astray:
            problems.add(file, f"rows of {astray[0][0]} refer to rows that do not exist")
        revisions = [one for (one,) in opened.execute(f"SELECT version_num FROM {VERSION_TABLE}")]
        _check_revisions(file, revisions, problems)


def _check_revisions(place: Path | str, revisions: list[str], problems: Problems) -> None:
    if len(revisions) != 1 or revisions[0] not in known_revisions():
        problems.add(
            place,
            f"its schema has the version {', '.join(map(str, revisions)) or 'none'}, "
            "which this release does not know",
            "upgrade Nilometer, if a later release has used the database",
        )
