"""The results of all named queries, shared by all readers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

from nilometer.errors import InputError, LogError
from nilometer.local.answer_fold import AnswerFold
from nilometer.log.reader import LogReader
from nilometer.server.fair_threads import FairThreads
from nilometer.server.results.query_results import QueryResults

_THREADS: Final = 4
_MOST_WAITING: Final = 1000
"""More than the followers that one token may have."""
_MOST_ANSWERS: Final = 16
_ANSWER_BYTES: Final = 64 << 20
_ALL_ANSWERS_BYTES: Final = 256 << 20


class StoredResults:
    """Finds the results of queries by name; each exists once while in use."""

    def __init__(self, log_of: Callable[[str], str]) -> None:
        """`log_of` returns the location of a query's result log; it raises if there is none."""
        self._log_of = log_of
        self._threads = FairThreads(_THREADS, "results", _MOST_WAITING)
        self._used: WeakValueDictionary[str, QueryResults] = WeakValueDictionary()
        self._answers = KeptAnswers()
        self._lock = threading.Lock()

    def of(self, name: str) -> QueryResults:
        """The results of a query."""
        location = self._log_of(name)
        try:
            reader = LogReader.open(location)
        except LogError:
            raise InputError(
                f"query {name} has no results yet", hint=f"start it: START QUERY {name}"
            ) from None
        with self._lock:
            results = self._used.get(reader.log_id)
            if results is None:
                results = QueryResults(name, location, reader, self._threads, self._answers.of)
                self._used[reader.log_id] = results
            return results

    def close(self) -> None:
        self._threads.close()


class KeptAnswers:
    """The most recently requested answers, updated when they are requested again."""

    def __init__(
        self,
        limit: int = _MOST_ANSWERS,
        each_bytes: int = _ANSWER_BYTES,
        all_bytes: int = _ALL_ANSWERS_BYTES,
    ) -> None:
        self._limit = limit
        self._each_bytes = each_bytes
        self._all_bytes = all_bytes
        self._kept: OrderedDict[str, AnswerFold] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, reader: LogReader) -> AnswerFold:
        """The cached answer of a log, or one that starts with its first change."""
        with self._lock:
            fold = self._kept.get(reader.log_id)
            if fold is None:
                fold = self._kept[reader.log_id] = AnswerFold(reader, self._each_bytes)
            self._kept.move_to_end(reader.log_id)
            while len(self._kept) > 1 and self._is_too_much():
                self._kept.popitem(last=False)
            return fold

    def _is_too_much(self) -> bool:
        return (
            len(self._kept) > self._limit
            or sum(one.size for one in self._kept.values()) > self._all_bytes
        )
