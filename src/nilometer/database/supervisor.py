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
"""How much of the time the looking may take: with a thousand queries it takes long."""
_AT_ONCE: Final = 4
_END_WITHIN: Final = 30


class Supervisor:
    """Calls a function again and again, and does what takes long in threads of its own."""

    def __init__(self, look: Callable[[], None], every: float = EVERY) -> None:
        self._look = look
        self._every = every
        self._ended = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._workers = ThreadPoolExecutor(_AT_ONCE, "query restart")

    def start(self) -> None:
        """Begin to look, unless that was begun before."""
        with self._starting:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._run, name="queries", daemon=True)
                self._thread.start()

    def soon(self, work: Callable[[], None]) -> None:
        """Do something beside the looking; nothing is done once this is stopped."""
        with suppress(RuntimeError):  # stopped
            self._workers.submit(work)

    def stop(self) -> None:
        """Look no more; what is being done is done before this returns."""
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
            with suppress(Exception):  # a look that fails must not end all further ones
                self._look()
            pause = max(self._every, (time.thread_time() - began) / _SHARE)
