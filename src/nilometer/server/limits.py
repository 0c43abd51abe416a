"""Counts with limits: followers of results, statements that run or wait."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from nilometer.errors import LimitError, TooLargeError


class Room:
    """At most this many at a time; one more is refused, not queued.

    >>> room = Room(1, "statements run or wait")
    >>> with room.one():
    ...     room.taken
    1
    """

    def __init__(self, limit: int, what: str) -> None:
        self.limit = limit
        self._what = what
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """How many there are now."""
        return self._taken

    @contextmanager
    def one(self) -> Iterator[None]:
        """Take one place."""
        with self._lock:
            if self._taken >= self.limit:
                raise LimitError(
                    f"{self._taken} {self._what} already", hint="try again in a few seconds"
                )
            self._taken += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken -= 1


class Shares:
    """Like a room for each asker separately: none can take another's places."""

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def one(self, who: str) -> Iterator[None]:
        """Take one of an asker's places."""
        with self._lock:
            if self._taken[who] >= self._limit:
                raise LimitError(
                    f"{self._limit} {self._what} already",
                    detail=f"that is the maximum for {who}",
                    hint="wait for them, or end some",
                )
            self._taken[who] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[who] -= 1
                if not self._taken[who]:
                    del self._taken[who]


class Weights:
    """The total weight of each asker."""

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    def change(self, who: str, by: int) -> None:
        """Increase or decrease an asker's weight."""
        with self._lock:
            if by > 0 and self._taken[who] + by > self._limit:
                raise TooLargeError(
                    f"more than {self._limit} {self._what}",
                    detail=f"that is the maximum for {who}",
                    hint="read answers to their end, or close them",
                )
            self._taken[who] += by
            if not self._taken[who]:
                del self._taken[who]


class Followers:
    """Followers of results: limited in total and for each token, counted for each query."""

    def __init__(self, limit: int, max_each: int, clock: Callable[[], float] = monotonic) -> None:
        self._room = Room(limit, "connections follow results")
        self._shares = Shares(max_each, "connections of one token follow results")
        self._clock = clock
        self._of: Counter[str] = Counter()
        self._alone_since: dict[str, float] = {}
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """The number of followers of all queries."""
        return self._room.taken

    @contextmanager
    def one(self, query: str, who: str) -> Iterator[None]:
        """Follow a query's results; LimitError if there are too many followers."""
        name = query.lower()
        with self._shares.one(who), self._room.one():
            with self._lock:
                self._of[name] += 1
            try:
                yield
            finally:
                with self._lock:
                    self._of[name] -= 1
                    if not self._of[name]:
                        del self._of[name]
                        self._alone_since[name] = self._clock()

    def seen(self, query: str) -> None:
        """Note interest in a query other than following: its time starts again."""
        with self._lock:
            self._alone_since[query.lower()] = self._clock()

    def count(self, query: str) -> int:
        """The number of followers of a query."""
        return self._of[query.lower()]

    def lonely(self, queries: set[str], after: float) -> set[str]:
        """The queries among these that nobody has followed for this many seconds."""
        now = self._clock()
        with self._lock:
            folded = {name.lower() for name in queries}
            for gone in self._alone_since.keys() - folded:
                del self._alone_since[gone]
            lonely = set()
            for name in queries:
                if not self._of[name.lower()]:
                    since = self._alone_since.setdefault(name.lower(), now)
                    if now - since >= after:
                        lonely.add(name)
            return lonely
