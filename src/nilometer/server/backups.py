"""Backups of a served database: their destinations, and one at a time."""

from __future__ import annotations

import threading

from nilometer.database import Database
from nilometer.errors import (
    InputError,
    LimitError,
)
from nilometer.server.settings import ServerSettings
from nilometer.upkeep.backup import BackupMade, list_backups
from nilometer.upkeep.manifest import Manifest
from nilometer.upkeep.remove import Removed, remove_backups


class Backups:
    """Makes backups in the configured destinations."""

    def __init__(self, database: Database, settings: ServerSettings) -> None:
        self._database = database
        self._settings = settings
        self._backing_up = threading.Lock()

    def make(self, place: str) -> tuple[BackupMade, Removed | None]:
        """Back up the database; then delete surplus backups."""
        if not self._backing_up.acquire(blocking=False):
            raise LimitError("a backup is being made already", hint="wait until it is done")
        try:
            made, keep = self._database.back_up(place), self._settings.keep_backups
            if keep is None:
                return made, None
            return made, remove_backups(place, made.manifest.database, keep)
        finally:
            self._backing_up.release()

    def all_in(self, place: str) -> list[Manifest]:
        """The backups in such a destination."""
        return [one for one in list_backups(place) if isinstance(one, Manifest)]

    def place(self, wanted: str | None) -> str:
        """A token must not choose a write destination: only the configuration does."""
        destinations = self._settings.backups
        if not destinations:
            raise InputError(
                "this server does not know where backups go",
                hint='write backups = ["/mnt/backups"] below [server] in its configuration',
            )
        if wanted is not None and wanted not in destinations:
            raise InputError(
                f"backups may not go to {wanted}", hint=f"they may go to {', '.join(destinations)}"
            )
        return wanted or destinations[0]
