"""How long tests wait: seconds of a machine that has nothing else to do.

On a busy machine everything takes longer, so a second counts for less there: for its length
divided by how many runnable processes there are for each core.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any, Final

LONG: Final = 900.0
"""What is given to calls that wait by themselves, in seconds of the wall: they end long before."""


class Patience:
    """Counts quiet seconds from its making; it ends after so many."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._seen = time.monotonic()

    @property
    def ended(self) -> bool:
        now = time.monotonic()
        self._left -= (now - self._seen) / slowness()
        self._seen = now
        return self._left < 0


def slowness() -> float:
    """How many processes share a core, on the average of the last minute; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_for(
    condition: Callable[[], Any],
    seconds: float = 60.0,
    *,
    every: float = 0.02,
    said: Callable[[], object] = lambda: "it did not happen",
    alive: Callable[[], bool] = lambda: True,
) -> Any:
    """What the condition gives once it is true; what is `said` fails the test if it never is.

    It is given up at once when whatever should bring it about is not `alive` any more. Who looks
    takes at most a third of a core from it.
    """
    patience = Patience(seconds)
    while True:
        began = time.monotonic()
        if found := condition():
            return found
        took = time.monotonic() - began
        assert not patience.ended, f"{said()}, still {found!r}"
        assert alive(), said()
        time.sleep(max(every, 2 * took))


async def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """The same for what happens in this thread."""
    patience = Patience(seconds)
    while not (found := condition()):
        assert not patience.ended, f"it did not happen, still {found!r}"
        await asyncio.sleep(0.01)
