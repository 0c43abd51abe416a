"""Packs the segments of all logs that this process writes, in one thread on part of a core."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Final

_LOG: Final = logging.getLogger("nilometer.storage")
ROUND: Final = 10.0
"""How many seconds pass between two checks for work."""
_SPELL: Final = 0.005
"""Work runs for this many seconds, and then rests for"""
_REST: Final = 3
"""this many times as long."""

Work = Callable[[Callable[[], None]], bool]
"""Does work, calling its argument repeatedly; returns whether there was any work."""


class StopWorkError(Exception):
    """Raised by the function that work calls, once the work is no longer wanted."""


class Background:
    """A thread that does the work of many owners in turn, as long as there are any."""

    def __init__(self, pause: float = ROUND) -> None:
        self._pause = pause
        self.begin_anew()

    def begin_anew(self) -> None:
        """Reset in a forked process, which has neither the threads nor the work of its parent."""
        self._works: dict[int, Work] = {}
        self._changed = threading.Condition()
        self._busy: int | None = None
        self._thread: threading.Thread | None = None
        self._next = 0

    def add(self, work: Work) -> Callable[[], None]:
        """Schedule work at intervals; the returned function ends that, and waits for its end."""
        with self._changed:
            number = self._next = self._next + 1
            self._works[number] = work
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-packing", daemon=True)
                self._thread.start()
        return lambda: self._remove(number)

    def _remove(self, number: int) -> None:
        with self._changed:
            self._works.pop(number, None)
            self._changed.notify_all()
            while self._busy == number:
                self._changed.wait()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(self._pause)
                if not self._works:
                    self._thread = None
                    return
                numbers = list(self._works)
            while numbers := [one for one in numbers if self._do(one)]:
                pass

    def _do(self, number: int) -> bool:
        """Do the work of this number once; returns whether there may be more."""
        with self._changed:
            work = self._works.get(number)
            if work is None:
                return False
            self._busy = number
        try:
            return work(_Spells(lambda: number in self._works))
        except StopWorkError:
            self._works.pop(number, None)
            return False
        except Exception as error:  # it is retried in the next round
            _LOG.warning("segments of a log cannot be packed at present: %s", error)
            return False
        finally:
            with self._changed:
                self._busy = None
                self._changed.notify_all()


class _Spells:
    """Pauses work after every spell of it."""

    def __init__(self, is_wanted: Callable[[], bool]) -> None:
        self._is_wanted = is_wanted
        self._since = time.perf_counter()

    def __call__(self) -> None:
        took = time.perf_counter() - self._since
        if took < _SPELL:
            return
        if not self._is_wanted():
            raise StopWorkError
        time.sleep(_REST * min(took, 1.0))
        self._since = time.perf_counter()


_background = Background()
os.register_at_fork(after_in_child=_background.begin_anew)


def in_background(work: Work) -> Callable[[], None]:
    """Do work in the background of this process until the returned function is called."""
    return _background.add(work)
