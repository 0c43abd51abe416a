"""A folder of files as a database in this process: each file is a table, or a stream."""

from __future__ import annotations

from pathlib import Path

from nilometer.errors import InputError
from nilometer.local.embedded import EmbeddedDatabase
from nilometer.local.find_files import kind_of


def open_folder(folder: Path, time: str | None = None) -> EmbeddedDatabase:
    """A database in which each file of a folder is named after the file, up to the first dot.

    time  files with this column are streams, which take their times from it; others are tables.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}")
    files = [one for one in sorted(folder.iterdir()) if _is_readable(one)]
    if not files:
        raise InputError(
            f"there are no files in {folder} that can be read",
            hint="their names end with .parquet, .csv, .json, .jsonl or .ndjson",
        )
    db = EmbeddedDatabase()
    has_stream = [_add(db, file, time) for file in files]
    if time is not None and not any(has_stream):
        raise InputError(f"no file in {folder} has a column {time}")
    return db


def _add(db: EmbeddedDatabase, file: Path, time: str | None) -> bool:
    """Register a file under its name; returns whether it is a stream."""
    name = file.name.partition(".")[0]
    db.create_table(name, file)
    columns = [one.lower() for one in db.relations[name].columns]
    if time is None or time.lower() not in columns:
        return False
    db.drop(name)
    db.create_stream(name, file, time=time)
    return True


def _is_readable(file: Path) -> bool:
    is_hidden = file.name.startswith(("_", "."))
    return file.is_file() and not is_hidden and kind_of(file.name) is not None
