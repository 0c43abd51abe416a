"""The process in which queries over stored data run: `python -m nilometer.past.worker`.

It takes requests on its standard input, and ends with it. Its parent may end it at any time.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Final

import pyarrow as pa

from nilometer.errors import InputError, NilometerError
from nilometer.past.frames import (
    Words,
    batches_of,
    error_words,
    read_table,
    receive,
    send,
    table_bytes,
)
from nilometer.past.sandbox import AnswerLimits, Rows, Sandbox, too_much_memory

_BESIDE: Final = 1 << 30
"""Bytes for what DuckDB does not count, such as tables that it is given, or texts it builds."""


class Worker:
    """Answers one request after the other."""

    def __init__(self, source: BinaryIO, to: BinaryIO) -> None:
        self._source = source
        self._to = to
        self._asked: queue.Queue[tuple[Words, bytes]] = queue.Queue()
        self._asking = threading.Lock()

    def run(self) -> None:
        """Work until the input ends."""
        threading.Thread(target=self._listen, daemon=True).start()
        words, _ = self._asked.get()
        try:
            sandbox = Sandbox(words["memory"], words["macros"])
        except NilometerError as error:
            self._refuse(error)
            return
        sandbox.run("SELECT 1", {})  # one-time allocations do not count
        _bound_memory(words["memory"])
        send(self._to, {"is": "ready"})
        while True:
            words, body = self._asked.get()
            try:
                self._answer(sandbox, words, body)
            except NilometerError as error:
                self._refuse(error)
            except MemoryError:
                self._refuse(too_much_memory())

    def _listen(self) -> None:
        """Receive requests even during a query, and exit once the other side is gone."""
        with suppress(EOFError, OSError):
            while True:
                self._asked.put(receive(self._source))
        os._exit(0)

    def _answer(self, sandbox: Sandbox, words: Words, body: bytes) -> None:
        match words["do"]:
            case "require_safe":
                sandbox.require_safe(words["sql"], words["tables"])
                send(self._to, {"is": "done"})
            case "value":
                statement = f"SELECT {words['sql']}"
                sandbox.require_safe(statement, ())
                send(self._to, {"is": "done"}, table_bytes(sandbox.run(statement, {})))
            case "bind":
                sandbox.bind(words["sql"], dict(self._tables(words)))
                send(self._to, {"is": "done"})
            case "is_by_row":
                by_row = sandbox.is_by_row(words["sql"], words["aggregates"])
                send(self._to, {"is": "done"}, b"yes" if by_row else b"")
            case "types":
                types = sandbox.types(words["sql"], dict(self._tables(words)))
                send(self._to, {"is": "done"}, json.dumps(types).encode())
            case "run":
                limits = AnswerLimits(*words["limits"])
                rows = sandbox.run(words["sql"], dict(self._tables(words)), limits)
                send(self._to, {"is": "done"}, table_bytes(rows))

    def _tables(self, words: Words) -> Iterator[tuple[str, Any]]:
        """The tables of a request: those sent as a whole follow it."""
        for name, is_whole in words["tables"].items():
            rows: Rows = read_table(self._asked.get()[1])
            if not is_whole:
                rows = pa.RecordBatchReader.from_batches(rows.schema, self._batches(name))
            yield name, rows

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        while True:
            with self._asking:
                send(self._to, {"is": "next", "table": name})
                words, body = self._asked.get()
            match words["is"]:
                case "more":
                    yield from batches_of(body)
                case "failed":
                    raise InputError("the rows of a table could not be read")
                case _:
                    return

    def _refuse(self, error: NilometerError) -> None:
        send(self._to, {"is": "error", **error_words(error)})


def _bound_memory(memory: int) -> None:
    """Let the system bound the memory that DuckDB does not count."""
    with suppress(OSError, ValueError), open("/proc/self/statm", encoding="ascii") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + memory + _BESIDE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    """Answer the process that started this one."""
    to = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing else may write there
    Worker(sys.stdin.buffer, to).run()


if __name__ == "__main__":
    main()
