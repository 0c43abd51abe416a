"""Forces a log to the disk at intervals, concurrently with appends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress


class IntervalSync:
    """A thread that calls a function at an interval in microseconds until it is closed."""

    def __init__(self, sync: Callable[[], None], every: int) -> None:
        self._sync = sync
        self._every = every / 1_000_000
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-sync", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._every):
            with suppress(Exception):  # the writer remembers it, and its next append raises it
                self._sync()
