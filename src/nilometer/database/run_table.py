"""The queries that run in this process, by name; each is changed by one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from nilometer.database.query_run import QueryRun
from nilometer.errors import InputError, LimitError


def closed() -> InputError:
    """The error for using a closed database."""
    return InputError("the database is closed", hint="open it again: nm.connect(spark, …)")


class RunTable:
    """Runs by name, in any case, and the slots of those that run."""

    def __init__(self, max_running: int | None) -> None:
        self._max_running = max_running
        self._runs: dict[str, QueryRun] = {}
        self._guard = threading.Lock()
        self._is_closed = False

    def __iter__(self) -> Iterator[QueryRun]:
        with self._guard:
            runs = list(self._runs.values())
        return iter(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def find(self, name: str) -> QueryRun | None:
        """The run of this name."""
        return self._runs.get(name.lower())

    @contextmanager
    def alone(self, name: str) -> Iterator[QueryRun]:
        """Lock and return the run of this name, created if there is none."""
        while True:
            run = self._found(name)
            with run.lock:
                if self.find(name) is not run:
                    continue  # it was dropped while this waited
                try:
                    yield run
                finally:
                    if run.state is None:
                        self.forget(run)
                    elif not run.is_active:
                        self.release(run)
                return

    def _found(self, name: str) -> QueryRun:
        with self._guard:
            if self._is_closed:
                raise closed()
            return self._runs.setdefault(name.lower(), QueryRun(name))

    def reserve(self, run: QueryRun) -> None:
        """Reserve the lowest free slot for a run."""
        with self._guard:
            if run.place is not None:
                return
            taken = {one.place for one in self._runs.values() if one.place is not None}
            if self._max_running is not None and len(taken) >= self._max_running:
                raise LimitError(
                    f"no more queries can run: the limit is {self._max_running}",
                    hint="stop or drop one: SHOW QUERIES lists them",
                )
            run.place = next(place for place in count() if place not in taken)

    def release(self, run: QueryRun) -> None:
        with self._guard:
            run.place = None

    def forget(self, run: QueryRun) -> None:
        """Remove a run."""
        with self._guard:
            run.place = None
            if self._runs.get(run.name.lower()) is run:
                del self._runs[run.name.lower()]

    def rename(self, run: QueryRun, to: str) -> None:
        """Rename a run, replacing one that has the name."""
        with self._guard:
            if self._runs.get(run.name.lower()) is run:
                del self._runs[run.name.lower()]
            run.name, run.replaces = to, None
            self._runs[to.lower()] = run

    def close(self) -> list[QueryRun]:
        """Refuse further changes, and return the runs."""
        with self._guard:
            self._is_closed = True
            return list(self._runs.values())
