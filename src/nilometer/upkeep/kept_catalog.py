"""What the catalog of a folder says of logs and queries, read without changing anything."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nilometer.errors import InputError, NilometerError
from nilometer.log.dead_letters import dead_letter_log
from nilometer.sensors.catalog.stored_queries import HOSTED
from nilometer.sql.parse.query_text import names_read
from nilometer.sql.statements import read_query
from nilometer.upkeep.places import CATALOG_FILE, file_name


@dataclass(frozen=True)
class KeptQueryName:
    """A named query, as far as its files are concerned."""

    name: str
    """As its files know it: it stays when the query is renamed."""
    hosted: str | None
    """Its id in the shared engine; None: it has a checkpoint of its own."""
    is_read: bool
    """Whether other queries may read its results."""


@dataclass(frozen=True)
class KeptCatalog:
    """What has a name, and is kept in files."""

    names: tuple[tuple[int, str, str], ...]
    """Ids, names and kinds of everything."""
    streams: tuple[str, ...]
    queries: tuple[KeptQueryName, ...]
    alerts: tuple[str, ...] = ()

    @property
    def logs(self) -> list[str]:
        """The names of all logs' folders, those of dead letters, too; some may not be there."""
        named = [*self.streams, *(one.name for one in self.queries), *self.alerts]
        return [log for name in named for log in (log_folder(name), dead_folder(name))]


def log_folder(name: str) -> str:
    """The folder of a stream's, a table's or a query's log."""
    return file_name(name)


def dead_folder(name: str) -> str:
    """That of its dead letters."""
    return file_name(dead_letter_log(name))


def require_catalog(folder: Path) -> Path:
    """The file of a folder's catalog."""
    file = folder / CATALOG_FILE
    if not file.is_file():
        raise InputError(
            f"there is no catalog in {folder}",
            hint="name the folder of a database; one whose catalog is in PostgreSQL is backed up "
            "with PostgreSQL's own tools, while nobody has it open",
        )
    return file


def copy_catalog(file: Path, to: Path) -> None:
    """A copy of a catalog as it is at one instant, whoever uses it meanwhile."""
    try:
        with closing(_open(file)) as source, closing(sqlite3.connect(to)) as made:
            source.backup(made)
            made.execute("PRAGMA journal_mode = DELETE")  # one file, with nothing beside it
    except sqlite3.Error as error:
        raise _damaged(file, error) from None


def read_catalog(file: Path) -> KeptCatalog:
    """What a catalog says."""
    try:
        with closing(_open(file)) as opened:
            wanted = "SELECT id, name, kind FROM nilometer_names ORDER BY id"
            found = [(int(a), str(b), str(c)) for a, b, c in opened.execute(wanted)]
            keys = _keys(opened)
            wanted = "SELECT owner, text, options FROM nilometer_queries"
            queries = opened.execute(wanted).fetchall()
            views = _views(opened)
    except sqlite3.Error as error:
        raise _damaged(file, error) from None
    owners = {owner: name for owner, name, _ in found}
    texts = [*(text for _, text, _ in queries), *(text for (text,) in views)]
    read = {name for text in texts for name in _read_by(text, list(owners.values()))}
    return KeptCatalog(
        tuple(found),
        tuple(keys.get(one, name) for one, name, kind in found if kind in _STREAMS),
        tuple(
            KeptQueryName(
                keys.get(owner, owners[owner]),
                json.loads(options).get(HOSTED),
                owners[owner].lower() in read,
            )
            for owner, _, options in queries
        ),
        tuple(keys.get(one, name) for one, name, kind in found if kind == "ALERT"),
    )


_STREAMS = ("STREAM", "SENSOR TABLE")


def _read_by(text: str, everything: list[str]) -> set[str]:
    try:
        return names_read(read_query(text))
    except NilometerError:  # of another release: it may read anything
        return {one.lower() for one in everything}


def _keys(opened: sqlite3.Connection) -> dict[int, str]:
    """By which keys files know what has another name now; earlier catalogs have none."""
    columns = [one[1] for one in opened.execute("PRAGMA table_info(nilometer_names)")]
    if "key" not in columns:
        return {}
    wanted = "SELECT id, key FROM nilometer_names WHERE key <> folded"
    return {int(owner): str(key) for owner, key in opened.execute(wanted)}


def _views(opened: sqlite3.Connection) -> list[tuple[str]]:
    """The texts of views, which catalogs of the first releases do not have."""
    wanted = "SELECT count(*) FROM sqlite_master WHERE name = 'nilometer_views'"
    if not opened.execute(wanted).fetchone()[0]:
        return []
    return opened.execute("SELECT text FROM nilometer_views").fetchall()


def _open(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=30)


def _damaged(file: Path, error: sqlite3.Error) -> InputError:
    return InputError(
        "the catalog cannot be read",
        detail=f"{file}: {error}",
        hint="nilometer check says what is damaged; restore the folder from a backup",
    )
