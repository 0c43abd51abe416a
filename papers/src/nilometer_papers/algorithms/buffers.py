"""The buffers of tuples that are waiting for partners: a list, or a hash table of lists."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.counters import Counters
from nilometer_papers.algorithms.m_tuple import MTuple
from nilometer_papers.algorithms.stream_tuple import StreamTuple

Entry = TypeVar("Entry", StreamTuple, MTuple)


class Buffer(ABC, Generic[Entry]):
    """Tuples, or combinations of them, in order of arrival."""

    by_key: bool
    """Whether only entries with the requested key are found."""

    def __init__(self, counters: Counters, window: int, in_order: bool = True) -> None:
        self._counters = counters
        self._window = window
        self._in_order = in_order
        """Whether entries arrive in order of time, as the tuples of a stream do."""

    @abstractmethod
    def add(self, entry: Entry) -> None:
        """Add an entry."""

    @abstractmethod
    def take_in(self, entries: Sequence[Entry], oldest: int) -> None:
        """Add entries that are not older; remove older ones where nobody has looked recently."""

    @abstractmethod
    def look(self, key: Hashable) -> Collection[Entry]:
        """The entries that may have this key."""

    @abstractmethod
    def drop(self, key: Hashable, oldest: int) -> None:
        """Remove older entries, where entries with this key are."""

    @abstractmethod
    def sweep(self, oldest: int) -> None:
        """Remove older entries everywhere."""

    @abstractmethod
    def __iter__(self) -> Iterator[Entry]: ...

    def _remove(self, entries: deque[Entry], oldest: int) -> None:
        if self._in_order:
            self._remove_heads(entries, oldest)
            return
        remaining = [one for one in entries if one.time >= oldest]
        self._counters.time_tests += len(entries)
        if len(remaining) < len(entries):
            self._counters.removed += len(entries) - len(remaining)
            entries.clear()
            entries.extend(remaining)

    def _remove_heads(self, entries: deque[Entry], oldest: int) -> None:
        self._counters.time_tests += 1
        while entries and entries[0].time < oldest:
            entries.popleft()
            self._counters.removed += 1
            self._counters.time_tests += 1


class ListBuffer(Buffer[Entry]):
    """One list, for nested loops."""

    by_key = False

    def __init__(self, counters: Counters, window: int, in_order: bool = True) -> None:
        super().__init__(counters, window, in_order)
        self._entries: deque[Entry] = deque()

    def add(self, entry: Entry) -> None:
        self._entries.append(entry)

    def take_in(self, entries: Sequence[Entry], oldest: int) -> None:
        self._entries.extend(entries)
        self._remove_heads(self._entries, oldest)

    def look(self, key: Hashable) -> Collection[Entry]:
        return self._entries

    def drop(self, key: Hashable, oldest: int) -> None:
        self._remove(self._entries, oldest)

    def sweep(self, oldest: int) -> None:
        self._remove(self._entries, oldest)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)


class _Bucket(Generic[Entry]):
    """The entries of one bucket, and the oldest time needed at its last update."""

    __slots__ = ("entries", "updated")

    def __init__(self, updated: int) -> None:
        self.entries: deque[Entry] = deque()
        self.updated = updated


class HashBuffer(Buffer[Entry]):
    """A hash table; each key has its own bucket, or there is a fixed number of buckets.

    A bucket is rarely probed if what is needed has moved on by more than the window since the
    bucket was last updated.
    """

    def __init__(
        self, counters: Counters, window: int, in_order: bool = True, buckets: int | None = None
    ) -> None:
        super().__init__(counters, window, in_order)
        self.by_key = buckets is None
        self._count = buckets
        self._buckets: OrderedDict[Hashable, _Bucket[Entry]] = OrderedDict()
        """The least recently updated bucket comes first."""

    def add(self, entry: Entry) -> None:
        self._put(entry, EARLIEST)

    def take_in(self, entries: Sequence[Entry], oldest: int) -> None:
        self._counters.time_tests += len(entries)
        for entry in entries:
            if entry.time >= oldest:
                self._put(entry, oldest)
        self._update_rarely_probed(oldest)

    def look(self, key: Hashable) -> Collection[Entry]:
        self._counters.probes += 1
        bucket = self._buckets.get(self._place(key))
        return bucket.entries if bucket is not None else ()

    def drop(self, key: Hashable, oldest: int) -> None:
        place = self._place(key)
        bucket = self._buckets.get(place)
        if bucket is not None:
            self._update(place, bucket, oldest)

    def sweep(self, oldest: int) -> None:
        for place, bucket in list(self._buckets.items()):
            self._update(place, bucket, oldest)

    def __iter__(self) -> Iterator[Entry]:
        return (one for bucket in self._buckets.values() for one in bucket.entries)

    def _put(self, entry: Entry, oldest: int) -> None:
        place = self._place(entry.key)
        bucket = self._buckets.get(place)
        if bucket is None:
            bucket = self._buckets[place] = _Bucket(oldest)
        bucket.entries.append(entry)

    def _place(self, key: Hashable) -> Hashable:
        return key if self._count is None else hash(key) % self._count

    def _update_rarely_probed(self, oldest: int) -> None:
        """The update routine of TR-010 section 3.1.2."""
        while self._buckets:
            place, bucket = next(iter(self._buckets.items()))
            self._counters.time_tests += 1
            if bucket.updated >= oldest - self._window:
                return
            self._update(place, bucket, oldest)

    def _update(self, place: Hashable, bucket: _Bucket[Entry], oldest: int) -> None:
        self._remove(bucket.entries, oldest)
        if bucket.entries:
            bucket.updated = oldest
            self._buckets.move_to_end(place)
        else:
            del self._buckets[place]


class BufferType(Protocol):
    """How to create a buffer."""

    def __call__(self, counters: Counters, window: int, in_order: bool = True) -> Buffer[Any]: ...


def hash_table(buckets: int | None) -> BufferType:
    """Hash tables with this many buckets, or with one for each key."""
    return HashBuffer if buckets is None else partial(HashBuffer, buckets=buckets)
