"""The database that holds a catalog: a SQLite file, or PostgreSQL."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from sqlite3 import OperationalError
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from nilometer.errors import CatalogError
from nilometer.extras import require_extras
from nilometer.sensors.catalog.catalog_sum import forget_sum

BEGIN: Final = "begin"
"""The connection option that says how its transactions begin; only SQLite uses it."""
_PATIENCE: Final = 30
_POSTGRES: Final = "postgresql+psycopg"
_POSTGRES_SETTINGS: Final = {
    "application_name": "nilometer",
    "connect_timeout": _PATIENCE,
    "tcp_user_timeout": 1000 * _PATIENCE,
}
"""Settings that the URL may override."""
FROZEN_SECONDS: Final = 30
"""PostgreSQL rolls back a transaction whose process has been idle for this long: everybody else
would wait for it, including a server that takes over."""
_EXAMPLES: Final = "give the path of a file, or postgresql://user:password@host/database"


def open_engine(url: str | Path) -> Engine:
    """The engine for a path (SQLite) or a URL; only the file's folder is created yet."""
    parsed = _read_url(url)
    match parsed.get_backend_name():
        case "sqlite":
            return _open_sqlite(parsed)
        case "postgresql" | "postgres":
            return _open_postgres(parsed)
    raise CatalogError(
        "a catalog is kept in SQLite or PostgreSQL",
        detail=f"got {shown(parsed)}",
        hint=_EXAMPLES,
    )


def shown(url: URL) -> str:
    """A URL without its password."""
    return url.render_as_string(hide_password=True)


@contextmanager
def reported(engine: Engine) -> Iterator[None]:
    """Convert database errors to readable ones: unreachable, locked, full, or not a database."""
    try:
        yield
    except (DBAPIError, NoConnectionFree) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        reason = str(cause).strip().split("\n")[0]
        raise CatalogError(
            "the catalog cannot be used",
            detail=f"{shown(engine.url)}: {reason}",
            hint="see that its database can be reached, and that it is a catalog",
        ) from error


def _read_url(url: str | Path) -> URL:
    if isinstance(url, Path) or "://" not in url:
        return URL.create("sqlite", database=str(url))
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        # The text may contain a password, so it is not repeated.
        raise CatalogError("this is not the URL of a database", hint=_EXAMPLES) from None


def _open_sqlite(url: URL) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise CatalogError("a catalog needs a file or a server", hint=_EXAMPLES)
    file = Path(str(url.database))
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))  # it may contain secrets of sensors
    except OSError as error:
        raise CatalogError(
            "the catalog file cannot be opened or created", detail=str(error)
        ) from error
    engine = create_engine(url, connect_args={"timeout": _PATIENCE})
    event.listen(engine, "connect", lambda *_: forget_sum(file))
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare_sqlite(connection: SqliteConnection, _: object) -> None:
    # Python's own BEGIN would come too late, and not at all before CREATE TABLE.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE * 1000}")
    connection.execute("PRAGMA foreign_keys = ON")
    _write_ahead(connection)


def _write_ahead(connection: SqliteConnection) -> None:
    """Enable write-ahead logging, so that readers and a writer do not wait for each other."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except OperationalError as error:
            # SQLite does not wait for this by itself: another process may be creating the same
            # file.
            is_busy = error.sqlite_errorname.startswith("SQLITE_BUSY")
            if not is_busy or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(BEGIN, "BEGIN"))


def _open_postgres(url: URL) -> Engine:
    require_extras("a catalog in PostgreSQL", "postgres")
    engine = create_engine(
        url.set(drivername=_POSTGRES),
        pool_pre_ping=True,
        connect_args={**_POSTGRES_SETTINGS, **url.query},
    )
    event.listen(engine, "connect", _prepare_postgres)
    return engine


def _prepare_postgres(connection: Any, _: object) -> None:
    connection.execute(f"SET idle_in_transaction_session_timeout = {1000 * FROZEN_SECONDS}")
    connection.commit()
