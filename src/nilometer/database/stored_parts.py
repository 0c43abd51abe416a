"""The parts of an open database: made once, when they are needed, until they are closed or lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from nilometer.database.at_exit import close_at_exit
from nilometer.database.home import Home
from nilometer.database.past import Past
from nilometer.database.run_table import closed
from nilometer.database.running import RunningQueries
from nilometer.errors import NilometerError, in_one_line

_LOG: Final = logging.getLogger("nilometer.database")


class StoragePlace(NamedTuple):
    """Where a database stores everything; None: in a temporary folder, or in the folder."""

    folder: Path | None = None
    catalog: str | None = None
    logs: str | None = None


class OpenParts(NamedTuple):
    """The parts of an open database."""

    home: Home
    queries: RunningQueries
    past: Past


Losing: TypeAlias = Callable[[NilometerError], None]
"""Called if the catalog is lost to another process, or is out of reach."""


class StoredParts:
    """The parts of a database over its life; thread-safe."""

    def __init__(self, make: Callable[[StoragePlace, Losing], OpenParts]) -> None:
        self.lost: NilometerError | None = None
        """Why the database closed itself, if it did."""
        self._make = make
        self._opened: OpenParts | None = None
        self._is_closed = False
        self._changing = threading.RLock()

    def open(self, place: StoragePlace) -> OpenParts:
        """Store everything in this place from now on."""
        opened = self._opened = self._make(place, self._lose)
        close_at_exit(self)
        if self.lost is not None:  # lost already, while it was being opened
            self.close()
            raise self.lost
        opened.queries.drop_temporary()
        return opened

    @property
    def parts(self) -> OpenParts:
        """The parts, opened in a temporary folder if nothing is open; raises if closed."""
        with self._changing:
            return self.parts_if_open or self.open(StoragePlace())

    @property
    def parts_if_open(self) -> OpenParts | None:
        """The parts, if anything is stored yet; raises if the database is closed.

        A closed database must not silently resume in a temporary folder.
        """
        if self.lost is not None:
            raise self.lost
        if self._is_closed:
            raise closed()
        return self._opened

    @property
    def parts_left(self) -> OpenParts | None:
        """The parts, if anything is stored yet and the database is not closed."""
        return self._opened

    def close(self) -> None:
        """Stop named queries, store what sensors have sent, and disconnect them."""
        with self._changing:
            opened, self._opened = self._opened, None
            self._is_closed = self._is_closed or opened is not None
        if opened is not None:
            opened.past.close()
            opened.queries.close()
            opened.home.close()

    def _lose(self, why: NilometerError) -> None:
        _LOG.error("%s", in_one_line(why))
        self.lost = why
        threading.Thread(target=self.close, name="close").start()
