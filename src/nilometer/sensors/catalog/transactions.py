"""Transactions of a catalog: changes are serialized, and only its holder makes any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, Engine, select, update

from nilometer.sensors.catalog import stored_lease
from nilometer.sensors.catalog.catalog_sum import note_sum
from nilometer.sensors.catalog.engine import reported
from nilometer.sensors.catalog.schema import CHANGES, counters
from nilometer.sensors.catalog.stored_lease import LeaseHolder
from nilometer.sensors.catalog.stored_names import (
    NamedEntry,
    claim_name,
    mark_changed,
    require_name,
)
from nilometer.sql.ddl.nodes import ObjectKind


class Transactions:
    """The database that stores a catalog, and who may change it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._holder: str | None = None
        """The holder's name for the lease; None: no lease is needed."""

    def close(self) -> None:
        """Close the database; the next use opens it again."""
        self._engine.dispose()
        if self._engine.dialect.name == "sqlite":
            note_sum(Path(str(self._engine.url.database)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def file(self) -> Path | None:
        """The catalog's file on this machine; None: other machines can reach the catalog, too."""
        path = self._engine.url.database
        return Path(str(path)).resolve() if self._engine.dialect.name == "sqlite" else None

    def take_lease(self, holder: str, description: str, micros: int) -> LeaseHolder | None:
        """Take a shared catalog for this long from now; return the holder if it is another one.

        From then on, only the holder's changes are accepted here.
        """
        with self._in_turn(0) as (connection, _):
            other = stored_lease.take_lease(connection, holder, description, micros)
        if other is None:
            self._holder = holder
        return other

    def release_lease(self, holder: str) -> None:
        """Release a shared catalog."""
        with self._in_turn(0) as (connection, _):
            stored_lease.release_lease(connection, holder)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with reported(self._engine), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _changing(self, *, by: int = 1) -> Iterator[tuple[Connection, int]]:
        """As `_in_turn`, but refused if another holder has taken the catalog over."""
        with self._in_turn(by) as (connection, change):
            if self._holder is not None:
                stored_lease.require_lease(connection, self._holder)
            yield connection, change

    @contextmanager
    def _in_turn(self, by: int) -> Iterator[tuple[Connection, int]]:
        """A transaction that all others wait for, and the number of its change."""
        with reported(self._engine), self._engine.begin() as connection:
            counted = update(counters).where(counters.c.name == CHANGES)
            counted = counted.values(value=counters.c.value + by)
            yield connection, connection.execute(counted.returning(counters.c.value)).scalar_one()

    @contextmanager
    def _creating(
        self, name: str, kind: ObjectKind, if_not_exists: bool
    ) -> Iterator[tuple[Connection, int | None]]:
        with self._changing() as (connection, change):
            yield (
                connection,
                claim_name(connection, name, kind, change, if_not_exists=if_not_exists),
            )

    @contextmanager
    def _changing_name(
        self, name: str, kind: ObjectKind
    ) -> Iterator[tuple[Connection, NamedEntry]]:
        with self._changing() as (connection, change):
            entry = require_name(connection, name, kind)
            yield connection, entry
            mark_changed(connection, entry, change)


def count_changes(connection: Connection) -> int:
    """The number of changes so far."""
    statement = select(counters.c.value).where(counters.c.name == CHANGES)
    return int(connection.execute(statement).scalar_one())
