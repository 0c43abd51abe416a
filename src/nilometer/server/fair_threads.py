"""Threads that serve askers in turn: whoever asks for much waits, not the others."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from nilometer.errors import ClosedError, LimitError

_Result = TypeVar("_Result")
_asking: ContextVar[str] = ContextVar("who asks", default="")


def works_for(who: str) -> None:
    """Count what the current task asks for from now on for this token."""
    _asking.set(who)


class FairThreads:
    """A pool of threads. Work of one asker never takes all of them, nor precedes all others'."""

    def __init__(self, threads: int, name: str, most_waiting: int) -> None:
        self._most_running: Final = max(1, threads - 1)
        self._most_waiting: Final = most_waiting
        self._pool = ThreadPoolExecutor(threads, name)
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], None]]]] = {}
        """By asker; the one whose turn is next is first."""
        self._running: Counter[str] = Counter()

    def submit(self, work: Callable[[], _Result]) -> Future[_Result]:
        """Queue work; LimitError if too much work of the same asker is waiting."""
        who, done = _asking.get(), Future[_Result]()

        def run() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                result = work()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(result)

        with self._lock:
            waiting = self._waiting.setdefault(who, deque())
            if who and len(waiting) >= self._most_waiting:
                raise LimitError(
                    f"{len(waiting)} requests of one token wait already",
                    detail=f"that is the maximum for {who}",
                    hint="try again in a few seconds",
                )
            waiting.append((done, run))
        self._pool.submit(self._work)
        return done

    def close(self) -> None:
        """Accept no more work; waiting work is not done, and its waiters are notified."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            left = [done for waiting in self._waiting.values() for done, _ in waiting]
            self._waiting.clear()
        for done in left:
            if done.set_running_or_notify_cancel():
                done.set_exception(ClosedError("the server is stopping"))

    def _work(self) -> None:
        """Do the work that may run now; other work runs when room is made for it."""
        while (item := self._next()) is not None:
            who, run = item
            try:
                run()
            finally:
                with self._lock:
                    self._running[who] -= 1

    def _next(self) -> tuple[str, Callable[[], None]] | None:
        with self._lock:
            for who in list(self._waiting):
                if not self._waiting[who]:
                    del self._waiting[who]
                elif not who or self._running[who] < self._most_running:
                    waiting = self._waiting.pop(who)
                    _, run = waiting.popleft()
                    self._waiting[who] = waiting  # next time the others come first
                    self._running[who] += 1
                    return who, run
            return None
