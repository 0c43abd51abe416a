"""A test that takes too long ends its process, so that what it broke does not affect the next.

The tests after it run in a new process, with a Spark session of their own: see `tests/__main__.py`.
Limits are in seconds of an idle machine; a test that needs more says `@pytest.mark.limit(600)`.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Iterator
from typing import Final

import psutil
import pytest

from tests.patience import Patience

LIMIT: Final = 120.0
EXIT_CODE: Final = 70


class Watch:
    """Watches the running test from a thread of its own."""

    def __init__(self) -> None:
        self._errors = os.dup(2)  # now: during a test, pytest captures what is written there
        self._running: tuple[str, Patience] | None = None
        threading.Thread(target=self._look, name="limits", daemon=True).start()

    def begin(self, test: str, seconds: float) -> None:
        self._running = test, Patience(seconds)

    def end(self) -> None:
        self._running = None

    def _look(self) -> None:
        while True:
            time.sleep(0.2)
            running = self._running
            if running is not None and running[1].ended and self._running is running:
                end_process(f"{running[0]} took too long", self._errors)


def end_process(why: str, errors: int) -> None:
    """End this process and everything it has started, and report where its threads were."""
    os.write(errors, f"\n{why}; its threads:\n".encode())
    faulthandler.dump_traceback(file=errors)
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    os._exit(EXIT_CODE)


_WATCH: Final = pytest.StashKey[Watch]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "limit(seconds): how long a test may take; else 120")
    config.stash[_WATCH] = Watch()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    watch = item.config.stash[_WATCH]
    mark = item.get_closest_marker("limit")
    watch.begin(item.nodeid, float(mark.args[0]) if mark else LIMIT)
    try:
        return (yield)
    finally:
        watch.end()
