"""Names in the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, Engine

from nilometer.log.clock import now_micros
from nilometer.sensors.catalog.engine import open_engine, reported
from nilometer.sensors.catalog.migrate import migrate
from nilometer.sensors.catalog.stored_names import (
    NamedEntry,
    all_names,
    drop_name,
    find_name,
    require_name,
)
from nilometer.sensors.catalog.transactions import Transactions, count_changes
from nilometer.sql.ddl.nodes import ObjectKind


class NamedCatalog(Transactions):
    """Everything that has a name; `SensorCatalog` knows what it is."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine)
        self._clock = clock
        self._keys: dict[str, str] | None = None
        self._key_changes = 0

    @classmethod
    def open(cls, url: str | Path, *, clock: Callable[[], int] = now_micros) -> Self:
        """The catalog in a SQLite file (a path), or at a URL; created or upgraded if needed."""
        engine = open_engine(url)
        try:
            with reported(engine):
                migrate(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, clock)

    # Names

    def names(self) -> list[NamedEntry]:
        """Everything that has a name, by name."""
        with self._reading() as connection:
            return all_names(connection)

    def find(self, name: str) -> NamedEntry | None:
        """The entry with this name, or None."""
        with self._reading() as connection:
            return find_name(connection, name)

    def require(self, name: str, *kinds: ObjectKind) -> NamedEntry:
        """The entry with this name, if it is of one of these kinds; raises otherwise."""
        with self._reading() as connection:
            return require_name(connection, name, *kinds)

    def generation(self, name: str | None = None) -> int:
        """A number that increases with every change of what has this name, or of anything.

        0: nothing has this name.
        """
        with self._reading() as connection:
            if name is not None:
                entry = find_name(connection, name)
                return entry.generation if entry else 0
            return count_changes(connection)

    def key(self, name: str) -> str:
        """The key by which files identify this name, in any case; the name itself if unknown."""
        keys, change = self._keys, self._key_changes
        if keys is None:
            keys = {one.name.lower(): one.key for one in self.names()}
            if change == self._key_changes:
                self._keys = keys
        return keys.get(name.lower(), name.lower())

    def _forget_keys(self) -> None:
        self._key_changes += 1
        self._keys = None

    @contextmanager
    def _creating(
        self, name: str, kind: ObjectKind, if_not_exists: bool
    ) -> Iterator[tuple[Connection, int | None]]:
        with super()._creating(name, kind, if_not_exists) as creation:
            yield creation
        self._forget_keys()

    def drop(self, kind: ObjectKind, name: str, *, if_exists: bool = False) -> bool:
        """Drop a stream, table or query and its rows; False if it is missing and may be."""
        with self._changing() as (connection, _):
            if if_exists and find_name(connection, name) is None:
                return False
            entry = require_name(connection, name, kind)
            drop_name(connection, entry)
        self._forget_keys()
        return True
