"""A sandbox in processes that can be ended at any time.

DuckDB answers in a process of its own, which has no files, secrets or sockets. The process ends
when its time is over, even where DuckDB cannot be interrupted, and its memory is bounded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, TypeAlias, cast

import pyarrow as pa

from nilometer.errors import ClosedError, InputError, LimitError, NilometerError, SqlError
from nilometer.extras import require_extras
from nilometer.past.frames import Words, read_error, read_table, receive, send, table_bytes
from nilometer.past.sandbox import (
    AnswerLimits,
    Cancelling,
    Rows,
    Sandbox,
    too_much_memory,
    took_too_long,
)

_MOST: Final = 4
"""How many queries are answered at once."""
_CHECKING: Final = 20.0
"""Seconds allowed for a request that runs no query."""
_WAITING: Final = 60.0
_GRACE: Final = 1.0
"""Seconds in which a query that has taken too long may report that itself."""
_STARTING: Final = 120.0
_KEPT: Final = frozenset({"HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "LD_LIBRARY_PATH"})


class GuardedSandbox:
    """Answers queries, for any number of threads."""

    def __init__(self, memory: int, macros: Mapping[str, str] | None = None) -> None:
        """`memory` is what each process may use, in bytes.

        Statements may also call the macros: parameters and bodies, by name.
        """
        require_extras("SELECT over what is stored", "history")
        self._settings: Words = {"memory": memory, "macros": dict(macros or {})}
        self._room = threading.BoundedSemaphore(_MOST)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._is_closed = False
        weakref.finalize(self, _end_all, self._all)
        with self._process(_STARTING):
            pass  # reports now whether this version of DuckDB can be guarded

    def require_safe(self, sql: str, tables: Collection[str]) -> None:
        """Refuse anything but one query over these tables that uses only harmless functions."""
        self._ask("require_safe", sql, tables=list(tables))

    def value(self, sql: str) -> Any:
        """The value of an expression without columns; None if it cannot be determined."""
        try:
            table = self._ask("value", sql)
            return read_table(table).column(0)[0].as_py()
        except (SqlError, InputError, ValueError, OverflowError):
            return None

    def bind(self, sql: str, tables: Mapping[str, pa.Table]) -> None:
        """Refuse a query that cannot be run over tables like these."""
        self._ask("bind", sql, rows=tables)

    def is_by_row(self, sql: str, aggregates: Collection[str] = ()) -> bool:
        """Whether a query computes row by row, apart from these aggregates."""
        return bool(self._ask("is_by_row", sql, aggregates=list(aggregates)))

    def types(self, sql: str, tables: Mapping[str, pa.Table]) -> list[str]:
        """DuckDB's names for the types of an answer's columns."""
        names: list[str] = json.loads(self._ask("types", sql, rows=tables))
        return names

    def run(
        self,
        sql: str,
        tables: Mapping[str, Rows],
        limits: AnswerLimits | None = None,
        cancelling: Cancelling | None = None,
    ) -> pa.Table:
        """The first rows of the answer to a query that `require_safe` has accepted.

        `cancelling` is given a callable that ends the query early.
        """
        limits = limits or AnswerLimits()
        with self._process(limits.seconds) as one:
            one.is_usable = False  # from here on, to cancel is to end it
            if cancelling is not None:
                cancelling(one.cancel)
            bounds = [limits.rows, limits.bytes, limits.seconds]
            return read_table(one.ask({"do": "run", "sql": sql, "limits": bounds}, tables))

    def _ask(
        self, what: str, sql: str, *, rows: Mapping[str, Rows] | None = None, **more: Any
    ) -> bytes:
        """Make a request that runs no query, or next to nothing."""
        with self._process(_CHECKING) as one:
            return one.ask({"do": what, "sql": sql, **more}, rows)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._idle.clear()
        _end_all(self._all)

    @contextmanager
    def _process(self, seconds: float | None) -> Iterator[_Process]:
        """A process that nobody else uses meanwhile; it is ended if it takes too long."""
        if not self._room.acquire(timeout=_WAITING):
            raise LimitError(
                f"{_MOST} queries are already running", hint="try again in a few seconds"
            )
        try:
            one = self._take()
            try:
                with one.within(seconds):
                    yield one
            finally:
                self._put_back(one)
        finally:
            self._room.release()

    def _take(self) -> _Process:
        with self._lock:
            if self._is_closed:
                raise ClosedError("the database is closed")
            while self._idle:
                one = self._idle.pop()
                if one.is_alive:
                    return one
                self._all.discard(one)
                one.end()
            one = _Process(self._settings)
            self._all.add(one)
            return one

    def _put_back(self, one: _Process) -> None:
        with self._lock:
            if one.is_usable and not self._is_closed:
                self._idle.append(one)
                return
            self._all.discard(one)
        one.end()


AnySandbox: TypeAlias = Sandbox | GuardedSandbox


class _Process:
    """One process, which answers one request at a time."""

    def __init__(self, settings: Words) -> None:
        self._settings: Words | None = settings
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nilometer.past.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            cwd="/",
            start_new_session=True,
        )
        self.is_usable = False
        """Whether it waits for a request."""
        self._is_late = self._is_cancelled = self._is_ended = False

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, words: Words, tables: Mapping[str, Rows] | None = None) -> bytes:
        """Its answer; raises the error with which it refuses."""
        self.is_usable = False
        try:
            answer = self._converse(words, tables)
        except (EOFError, OSError, ValueError):
            raise self._why_gone() from None
        if isinstance(answer, NilometerError):
            # A process out of memory may never get it back: another answers the next request.
            self.is_usable = answer.message != too_much_memory().message
            raise answer
        self.is_usable = True
        return answer

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """End the process if it takes longer than this and a short grace period."""
        self._begin()
        self._seconds, self._is_late, self._is_cancelled = seconds, False, False
        timer = None if seconds is None else threading.Timer(seconds + _GRACE, self._be_late)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    def cancel(self) -> None:
        """Cancel the query that is being answered."""
        if not self.is_usable:
            self._is_cancelled = True
            self._process.kill()

    def end(self) -> None:
        self._is_ended = True
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError, ValueError):
                cast("IO[bytes]", pipe).close()
        self._process.wait()

    def _be_late(self) -> None:
        self._is_late = True
        self._process.kill()

    def _begin(self) -> None:
        """Send the process its settings, once."""
        if self._settings is None:
            return
        settings, self._settings = self._settings, None
        self._seconds = _STARTING
        timer = threading.Timer(_STARTING, self._be_late)
        timer.daemon = True
        timer.start()
        try:
            self.ask(settings)
        finally:
            timer.cancel()

    def _converse(self, words: Words, tables: Mapping[str, Rows] | None) -> bytes | NilometerError:
        to, source = cast("Any", self._process.stdin), cast("Any", self._process.stdout)
        if tables is not None:
            whole = {name: isinstance(rows, pa.Table) for name, rows in tables.items()}
            words = {**words, "tables": whole}
        send(to, words)
        for rows in (tables or {}).values():
            is_whole = isinstance(rows, pa.Table)
            send(to, {}, table_bytes(rows if is_whole else rows.schema.empty_table()))
        failed: Exception | None = None
        while True:
            head, body = receive(source)
            match head["is"]:
                case "next":
                    failed = self._send_more(to, (tables or {})[head["table"]]) or failed
                case "error" if failed is not None:
                    self.is_usable = True
                    raise failed
                case "error":
                    return read_error(head)
                case _:
                    return body

    def _send_more(self, to: Any, rows: Rows) -> Exception | None:
        """Send the next rows of a table; returns the error that reading them raised, if any."""
        try:
            batch = rows.read_next_batch()
        except StopIteration:
            send(to, {"is": "end"})
            return None
        except Exception as error:  # it is raised where the query was asked
            send(to, {"is": "failed"})
            return error
        send(to, {"is": "more"}, table_bytes(pa.Table.from_batches([batch])))
        return None

    def _why_gone(self) -> NilometerError:
        if self._is_late:
            return took_too_long(self._seconds)
        if self._is_cancelled:
            return SqlError("the query was cancelled")
        if self._is_ended:
            return ClosedError("the database is closed")
        return too_much_memory()


def _end_all(processes: set[_Process]) -> None:
    for one in list(processes):
        one.end()


def _environment() -> dict[str, str]:
    """The environment of a process: no secrets."""
    variables = {name: value for name, value in os.environ.items() if name in _KEPT}
    # Arrow's other memory pools reserve more addresses at once than a process may have.
    variables["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    return {**variables, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
