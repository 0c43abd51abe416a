"""Records which query a bucket is working on, to identify one that kills its process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

_NAME: Final = ".at-work"
_DEATHS: Final = ".deaths.json"
_LENGTH: Final = 64
MOST_DEATHS: Final = 3
"""How many processes in a row may die working on a query before it is stopped."""


class AtWork:
    """A small file that outlives the process; it costs one system call per query."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._has_deaths = (folder / _DEATHS).exists()
        self._file = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def begin(self, query: str) -> None:
        """Record that work on a query begins."""
        os.pwrite(self._file, query.encode().ljust(_LENGTH), 0)

    def end(self) -> None:
        """Record that no query is being worked on."""
        os.pwrite(self._file, b" " * _LENGTH, 0)

    def all_is_well(self) -> None:
        """Record that all queries were worked on, and the process is alive."""
        if self._has_deaths:
            self._has_deaths = False
            (self._folder / _DEATHS).unlink(missing_ok=True)

    def died(self) -> str | None:
        """The query that processes have died of too often, if the last one did."""
        query = os.pread(self._file, _LENGTH, 0).decode(errors="replace").strip()
        if not query:
            return None
        self.end()
        path = self._folder / _DEATHS
        try:
            deaths: dict[str, int] = json.loads(path.read_bytes())
        except (FileNotFoundError, ValueError):
            deaths = {}
        count = deaths.get(query, 0) + 1
        recorded = {query: count} if count < MOST_DEATHS else {}
        path.write_text(json.dumps(recorded))
        self._has_deaths = True
        return query if count >= MOST_DEATHS else None
