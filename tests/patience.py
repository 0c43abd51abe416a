"""How long tests wait: seconds of an otherwise idle machine.

On a busy machine everything takes longer, so a second counts for less there: its length divided
by the number of runnable processes per core.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final

LONG: Final = 900.0
"""The timeout for calls that wait by themselves, in wall-clock seconds: they end long before."""

_USUAL: Final = 0.12
"""How many seconds half a million additions take."""


class Patience:
    """Counts idle-machine seconds since its creation; it ends after a number of them."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._seen = time.monotonic()

    @property
    def ended(self) -> bool:
        now = time.monotonic()
        self._left -= (now - self._seen) / slowness()
        self._seen = now
        return self._left < 0


@cache
def pace() -> float:
    """How much slower Python is on this processor than where limits were set; at least 1.

    The shortest of three measurements counts.
    """
    times = []
    for _ in range(3):
        began, total = time.process_time(), 0
        for number in range(500_000):
            total += number
        times.append(time.process_time() - began)
    return max(1.0, min(times) / _USUAL)


def slowness() -> float:
    """How many processes share a core, averaged over the last minute; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_for(
    condition: Callable[[], Any],
    seconds: float = 60.0,
    *,
    every: float = 0.02,
    said: Callable[[], object] = lambda: "it did not happen",
    alive: Callable[[], bool] = lambda: True,
) -> Any:
    """The value of a condition once it is true; fails the test with `said` if it never is.

    It gives up at once when the process that should bring it about is no longer `alive`. Polling
    takes at most a third of a core.
    """
    patience = Patience(seconds)
    while True:
        began = time.monotonic()
        if result := condition():
            return result
        took = time.monotonic() - began
        assert not patience.ended, f"{said()}, still {result!r}"
        assert alive(), said()
        time.sleep(max(every, 2 * took))


async def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """The same for what happens in this thread."""
    patience = Patience(seconds)
    while not (result := condition()):
        assert not patience.ended, f"it did not happen, still {result!r}"
        await asyncio.sleep(0.01)
