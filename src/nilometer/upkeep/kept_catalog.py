"""What the catalog of a folder says about logs and queries, read without changing anything."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text as sql

from nilometer.errors import InputError, NilometerError
from nilometer.log.dead_letters import dead_letter_log
from nilometer.sensors.catalog.engine import open_engine, reported
from nilometer.sensors.catalog.schema import VERSION_TABLE
from nilometer.sensors.catalog.stored_queries import HOSTED
from nilometer.sql.parse.query_text import names_read
from nilometer.sql.statements import read_query
from nilometer.upkeep.places import file_name

_Select = Callable[[str], Sequence[Sequence[Any]]]
_COLUMNS: Final = (
    "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
)
_PG_COLUMNS: Final = (
    "SELECT table_name, column_name FROM information_schema.columns "
    "WHERE table_schema = current_schema()"
)


@dataclass(frozen=True)
class KeptQueryName:
    """A named query, as far as its files are concerned."""

    name: str
    """Its name in files, which stays the same when the query is renamed."""
    hosted: str | None
    """Its id in the shared engine; None: it has a checkpoint of its own."""
    is_read: bool
    """Whether other queries may read its results."""


@dataclass(frozen=True)
class KeptCatalog:
    """The catalog's entries that are stored in files."""

    names: tuple[tuple[int, str, str], ...]
    """Ids, names and kinds of all entries."""
    streams: tuple[str, ...]
    queries: tuple[KeptQueryName, ...]
    alerts: tuple[str, ...] = ()

    @property
    def logs(self) -> list[str]:
        """The names of all logs' folders, including dead letters; some may not exist."""
        names = [*self.streams, *(one.name for one in self.queries), *self.alerts]
        return [log for name in names for log in (log_folder(name), dead_folder(name))]


def log_folder(name: str) -> str:
    """The folder of the log of a stream, table or query."""
    return file_name(name)


def dead_folder(name: str) -> str:
    """The folder of its dead letters."""
    return file_name(dead_letter_log(name))


def copy_catalog(file: Path, to: Path) -> None:
    """Copy a catalog as it is at one instant, whoever uses it meanwhile."""
    try:
        with closing(_open(file)) as source, closing(sqlite3.connect(to)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # a single file, with nothing beside it
    except sqlite3.Error as error:
        raise _damaged(file, error) from None


def read_catalog(file: Path) -> KeptCatalog:
    """The contents of a catalog in a file."""
    try:
        with closing(_open(file)) as opened:
            has = set(opened.execute(_COLUMNS).fetchall())
            return _read(lambda statement: opened.execute(statement).fetchall(), has)
    except sqlite3.Error as error:
        raise _damaged(file, error) from None


def read_other_catalog(url: str) -> tuple[KeptCatalog, list[str]]:
    """The contents of a catalog in PostgreSQL, and its schema versions; nothing is changed."""
    engine = open_engine(url)
    try:
        with reported(engine), engine.connect() as opened:
            opened.execute(sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))

            def select(statement: str) -> Sequence[Sequence[Any]]:
                return opened.execute(sql(statement)).fetchall()

            versions = [str(one) for (one,) in select(f"SELECT version_num FROM {VERSION_TABLE}")]
            return _read(
                select, {(table, column) for table, column in select(_PG_COLUMNS)}
            ), versions
    finally:
        engine.dispose()


def _read(select: _Select, has: set[tuple[str, str]]) -> KeptCatalog:
    """The contents of a catalog; `has`: its tables with their columns, some of which are newer."""
    rows = select("SELECT id, name, kind FROM nilometer_names ORDER BY id")
    named = [(int(a), str(b), str(c)) for a, b, c in rows]
    keys = _keys(select) if ("nilometer_names", "key") in has else {}
    queries = select("SELECT owner, text, options FROM nilometer_queries")
    has_views = ("nilometer_views", "text") in has
    views = select("SELECT text FROM nilometer_views") if has_views else []
    owners = {owner: name for owner, name, _ in named}
    texts = [*(text for _, text, _ in queries), *(text for (text,) in views)]
    read = {name for text in texts for name in _read_by(text, list(owners.values()))}
    return KeptCatalog(
        tuple(named),
        tuple(keys.get(one, name) for one, name, kind in named if kind in _STREAMS),
        tuple(
            KeptQueryName(
                keys.get(owner, owners[owner]),
                json.loads(options).get(HOSTED),
                owners[owner].lower() in read,
            )
            for owner, _, options in queries
        ),
        tuple(keys.get(one, name) for one, name, kind in named if kind == "ALERT"),
    )


_STREAMS = ("STREAM", "SENSOR TABLE")


def _read_by(text: str, everything: list[str]) -> set[str]:
    try:
        return names_read(read_query(text))
    except NilometerError:  # from another release: it may read anything
        return {one.lower() for one in everything}


def _keys(select: _Select) -> dict[int, str]:
    """The names in files of what has been renamed since."""
    statement = "SELECT id, key FROM nilometer_names WHERE key <> folded"
    return {int(owner): str(key) for owner, key in select(statement)}


def _open(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=30)


def _damaged(file: Path, error: sqlite3.Error) -> InputError:
    return InputError(
        "the catalog cannot be read",
        detail=f"{file}: {error}",
        hint="nilometer check says what is damaged; restore the folder from a backup",
    )
