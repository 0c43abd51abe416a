"""One database at a time has a catalog that several machines can reach.

A folder is held by a lock of this machine. A catalog in PostgreSQL is held by a lease: taken with
a time, renewed long before that is over, and lost if it cannot be renewed, or another has it.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from time import monotonic
from typing import Final

from nilometer.errors import CatalogError, InputError, NilometerError
from nilometer.sensors.catalog.catalog import SensorCatalog

SECONDS: Final = 60.0
"""For how long it is taken: so long the catalog may be out of reach."""
_RENEWALS: Final = 6
"""How often it is renewed in that time."""


class Lease:
    """Holds a catalog until it is closed; tells if it is lost before."""

    def __init__(
        self,
        catalog: SensorCatalog,
        holder: str,
        lost: Callable[[NilometerError], None],
        seconds: float = SECONDS,
    ) -> None:
        """`holder`: the identity of the database; raises InputError if another one has it."""
        self._catalog = catalog
        self._holder = holder
        self._told = f"process {os.getpid()} of {socket.gethostname()}"
        self._lost = lost
        self._seconds = seconds
        self._taken = monotonic()
        other = self._take()
        if other is not None:
            raise InputError(
                "the catalog is in use",
                detail=f"{other} has it",
                hint="close that one first; one that has ended without that "
                f"holds it for {seconds:g} more seconds",
            )
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let others have the catalog."""
        self._closing.set()
        self._thread.join()
        self._catalog.release_lease(self._holder)

    def _take(self) -> str | None:
        began = monotonic()
        other = self._catalog.take_lease(self._holder, self._told, int(self._seconds * 1_000_000))
        if other is None:
            self._taken = began
        return other

    def _renew(self) -> None:
        every = self._seconds / _RENEWALS
        while not self._closing.wait(every):
            try:
                other = self._take()
            except CatalogError as error:
                # One more interval, and another one might have it before we know.
                if monotonic() - self._taken > self._seconds - 2 * every:
                    self._lost(
                        InputError(
                            "the database was closed: its catalog cannot be reached",
                            detail=error.detail,
                            hint="open it again when the catalog is back: queries go on",
                        )
                    )
                    return
            else:
                if other is not None:
                    self._lost(
                        InputError(
                            "the database was closed: another one has its catalog",
                            detail=f"{other} has taken it over",
                            hint="only one at a time can have a catalog",
                        )
                    )
                    return
