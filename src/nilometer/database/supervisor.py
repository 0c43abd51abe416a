"""The thread that looks after named queries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

EVERY: Final = 0.5
_SHARE: Final = 0.1
"""The share of time that the checks may take: with a thousand queries they are slow."""
_AT_ONCE: Final = 4
_END_WITHIN: Final = 30


class Supervisor:
    """Calls a function repeatedly, and runs long tasks in threads of their own."""

    def __init__(self, look: Callable[[], None], every: float = EVERY) -> None:
        self._look = look
        self._every = every
        self._ended = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._workers = ThreadPoolExecutor(_AT_ONCE, "query restart")

    def start(self) -> None:
        """Start the checks, unless they run already."""
        with self._starting:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._run, name="queries", daemon=True)
                self._thread.start()

    def soon(self, work: Callable[[], None]) -> None:
        """Run a task beside the checks; ignored once this is stopped."""
        with suppress(RuntimeError):  # stopped
            self._workers.submit(work)

    def stop(self) -> None:
        """Stop the checks, and wait for tasks that are running."""
        self._ended.set()
        with self._starting:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_END_WITHIN)
        self._workers.shutdown(cancel_futures=True)

    def _run(self) -> None:
        pause = self._every
        while not self._ended.wait(pause):
            began = time.thread_time()
            with suppress(Exception):  # a check that fails must not end the later ones
                self._look()
            pause = max(self._every, (time.thread_time() - began) / _SHARE)
