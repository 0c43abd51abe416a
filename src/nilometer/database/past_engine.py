"""What answers a one-off query: DuckDB here, or Spark's tasks in parts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from nilometer.database.limits import shown_size
from nilometer.errors import LimitError, TimeLimitError
from nilometer.past.ask import ask
from nilometer.past.guarded import GuardedSandbox
from nilometer.past.in_parts import PartedQuestion, ask_in_parts
from nilometer.past.part_forms import NotInPartsError
from nilometer.past.part_trees import PARTS
from nilometer.past.question import PastQuestion
from nilometer.past.sandbox import AnswerLimits, Cancelling, Rows, took_too_long
from nilometer.past.stored import LogTable, StoredTable
from nilometer.spark.past_parts import PartsOfLog, ask_parts, has_tasks

IN_PROCESS_BYTES: Final = 1 << 30
"""A query that reads more bytes than this is answered by Spark."""
_HANDED_ALONG: Final = 64 << 20
"""The most bytes of the tables beside the large one, as every task gets all of them."""
_MOST: Final = 2
"""How many queries Spark answers at a time."""
_WAITING: Final = 60.0


@dataclass(frozen=True)
class ChosenEngine:
    """What answers a query, and why."""

    parted: PartedQuestion | None
    """The query in parts for Spark's tasks; None: DuckDB answers here."""
    why: str


@dataclass(frozen=True)
class PastEngine:
    """Answers one-off queries; thread-safe."""

    sandbox: GuardedSandbox
    spark: SparkSession | None
    in_process_bytes: int
    _room: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(_MOST)
    )

    def choose(
        self,
        question: PastQuestion,
        tables: Mapping[str, StoredTable],
        most_rows: int | None = None,
        *,
        is_exact: bool = False,
    ) -> ChosenEngine:
        """Choose what answers a query, given how many rows are wanted.

        How much it reads is determined exactly only if that matters or is asked for.
        """
        max_bytes = self.in_process_bytes
        enough = 0 if is_exact else max_bytes
        sizes = {n: tables[use.table].bytes(use, enough) for n, use in question.tables.items()}
        read = f"about {shown_size(sum(sizes.values()))} are read"
        if sum(sizes.values()) <= max_bytes:
            return ChosenEngine(
                None, f"{read}; Spark answers queries that read more than {shown_size(max_bytes)}"
            )
        more = f"{read}, more than {shown_size(max_bytes)}"
        try:
            return ChosenEngine(self._parted(question, tables, sizes, most_rows), more)
        except NotInPartsError as reason:
            return ChosenEngine(None, f"{more}; but Spark cannot answer it in parts: {reason}")

    def _parted(
        self,
        question: PastQuestion,
        tables: Mapping[str, StoredTable],
        sizes: Mapping[str, int],
        most_rows: int | None,
    ) -> PartedQuestion:
        large = max(sizes, key=lambda name: sizes[name])
        if sum(sizes.values()) - sizes[large] > _HANDED_ALONG:
            raise NotInPartsError("it reads several large tables")
        if not has_tasks(self.spark):
            raise NotInPartsError("there is no Spark session here whose jobs can be cancelled")
        table = tables[question.tables[large].table]
        if not isinstance(table, LogTable) or table.reader.layout.changes:
            raise NotInPartsError(f"{large} is a changing answer")
        names = {name: use.table for name, use in question.tables.items()}
        empty = {name: tables[one].schema.empty_table() for name, one in names.items()}
        return ask_in_parts(self.sandbox, question, large, empty, most_rows)

    def ask(
        self,
        question: PastQuestion,
        tables: Mapping[str, StoredTable],
        limits: AnswerLimits,
        cancelling: Cancelling | None = None,
    ) -> pa.Table:
        """The answer, or its first rows."""
        began = time.monotonic()
        parted = self.choose(question, tables, limits.rows).parted
        if parted is None:
            return ask(self.sandbox, question, tables, limits, cancelling)

        def left() -> AnswerLimits:
            if limits.seconds is None:
                return limits
            return replace(limits, seconds=max(0.0, limits.seconds + began - time.monotonic()))

        each = None if cancelling is None else _cancelling_all(cancelling)
        try:
            with self._has_room(left().seconds):
                parts = self._ask_parts(question, parted, tables, left(), each)
                rows = {name: _rows(question, tables, name) for name in parted.whole_tables}
                return self.sandbox.run(parted.whole, {**rows, PARTS: parts}, left(), each)
        except TimeLimitError:
            raise took_too_long(limits.seconds) from None

    @contextmanager
    def _has_room(self, seconds: float | None) -> Iterator[None]:
        if not self._room.acquire(timeout=_WAITING if seconds is None else seconds):
            raise LimitError(f"{_MOST} large queries are already running", hint="try again later")
        try:
            yield
        finally:
            self._room.release()

    def _ask_parts(
        self,
        question: PastQuestion,
        parted: PartedQuestion,
        tables: Mapping[str, StoredTable],
        limits: AnswerLimits,
        cancelling: Cancelling | None,
    ) -> pa.Table:
        use = question.tables[parted.large]
        table = tables[use.table]
        assert isinstance(table, LogTable)
        assert self.spark is not None
        asked = PartsOfLog(
            table.location,
            table.reader.layout,
            table.reader.log_id,
            parted.large,
            use,
            parted.part,
            {name: _whole(_rows(question, tables, name)) for name in parted.part_tables},
        )
        spans = table.spans(use)
        return ask_parts(self.spark, asked, spans, parted.schema, limits.seconds, cancelling)


def _cancelling_all(cancelling: Cancelling) -> Cancelling:
    """Let a cancellation end the current step and those that would follow."""
    is_cancelled, ends = threading.Event(), list[Callable[[], None]]()

    def cancel() -> None:
        is_cancelled.set()
        for end in list(ends):
            end()

    def step(end: Callable[[], None]) -> None:
        ends.append(end)
        if is_cancelled.is_set():
            end()

    cancelling(cancel)
    return step


def _rows(question: PastQuestion, tables: Mapping[str, StoredTable], name: str) -> Rows:
    use = question.tables[name]
    return tables[use.table].read(use)


def _whole(rows: Rows) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else rows.read_all()
