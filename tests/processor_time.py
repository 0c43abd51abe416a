"""Measures the processor time of each test: its own, and that of processes it has started.

On two busy cores seconds say little about what a test costs. A fixture that several tests share
counts for the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import psutil
import pytest

REPORTED: Final = "processor_seconds"
"""Under which name reports carry it, also to the process that hands out tests."""


class Meter:
    """The processor time that this process and its descendants have taken since the last look."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._before = 0.0

    def take(self) -> float:
        total = sum(self._seconds())
        taken, self._before = total - self._before, total
        return max(0.0, taken)

    def _seconds(self) -> Iterator[float]:
        for process in (self._process, *self._process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                yield sum(process.cpu_times()[:4])  # with the children that have ended


_METER: Final = pytest.StashKey[Meter]()


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_METER] = Meter()


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_METER].take()  # imports are no test's


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    report = yield
    setattr(report, REPORTED, item.config.stash[_METER].take())
    return report
