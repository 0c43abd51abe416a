"""The rows that a live answer keeps: the current ones, or the newest. Knows no threads."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from nilometer.client.arrow_messages import Batch
from nilometer.client.rows import Answer, Page, Rows, instant_of
from nilometer.errors import LogError

TIME: Final = "_time"
DIFF: Final = "_diff"
_NAN: Final = object()


class KeptRows(Protocol):
    """Rows that are kept up to date by the batches of a query."""

    def take(self, batch: Batch) -> bool:
        """Take in a batch; returns whether the rows have changed."""

    def forget(self) -> None:
        """Discard all batches so far; those that follow replace them."""

    def rows(self) -> Rows:
        """The current rows."""


class NewestRows:
    """The newest rows of results in append mode.

    >>> kept = NewestRows(Page(pa.table({"n": [1, 2]})), newest=2)
    >>> kept.take(Batch(pa.record_batch({"n": [3]}), {}))
    True
    >>> list(kept.rows())
    [{'n': 2}, {'n': 3}]
    """

    def __init__(self, page: Page, newest: int) -> None:
        self._newest = newest
        self._table = page.table.slice(max(0, len(page) - newest))

    def take(self, batch: Batch) -> bool:
        if not len(batch.rows):
            return False
        more = pa.Table.from_batches([batch.rows])
        both = pa.concat_tables([self._table, more])
        # Copied, since a slice would keep everything that ever came.
        self._table = both.slice(max(0, len(both) - self._newest)).combine_chunks()
        return True

    def forget(self) -> None:
        self._table = self._table.schema.empty_table()

    def rows(self) -> Rows:
        return Rows(self._table)


class CurrentAnswer:
    """The answer of a changelog at the last instant that no change can affect any more.

    Changes from the watermark on may have arrived already, since buckets are out of step: they
    wait aside, so the answer is always that of one instant.
    """

    def __init__(self, answer: Answer) -> None:
        """Begin with an answer, and continue with the changes after its offset.

        A truncated answer is shown until all changes have arrived, from the first one on.
        """
        self._schema: pa.Schema = answer.table.schema
        self._held: dict[Hashable, tuple[dict[str, Any], int]] = {}
        self._ahead: list[pa.RecordBatch] = []
        self._watermark: int | None = None
        self._before: Answer | None = answer
        """The rows shown until the first changes are final."""
        if not answer.is_cut:
            self._add(answer, [1] * len(answer))

    @property
    def instant(self) -> datetime | None:
        """The instant of the answer; None as long as nothing is certain."""
        if self._before is not None:
            return self._before.instant
        return None if self._watermark is None else instant_of(str(self._watermark - 1))

    def take(self, batch: Batch) -> bool:
        if len(batch.rows):
            self._ahead.append(batch.rows)
        text = batch.metadata.get("watermark")
        # Before the end of what is stored, rows of this watermark may be still to come.
        if text is None or batch.metadata.get("at_end") == "false":
            return False
        watermark = int(text)
        if watermark == self._watermark and not len(batch.rows):
            return False
        self._settle(watermark)
        self._watermark, self._before = watermark, None
        return True

    def forget(self) -> None:
        self._before = self.rows()
        self._held, self._ahead, self._watermark = {}, [], None

    def rows(self) -> Answer:
        if self._before is not None:
            return self._before
        rows = [row for row, copies in self._held.values() for _ in range(copies)]
        return Answer(pa.Table.from_pylist(rows, self._schema), instant=self.instant)

    def _settle(self, watermark: int) -> None:
        """Apply the changes before an instant."""
        waiting, self._ahead = self._ahead, []
        touched: set[Hashable] = set()
        for rows in waiting:
            times = rows.column(TIME)
            is_final = pc.less(times, pa.scalar(watermark, times.type))
            final, later = rows.filter(is_final), rows.filter(pc.invert(is_final))
            if len(later):
                self._ahead.append(later)
            plain = final.select(self._schema.names)
            touched |= self._add(plain.to_pylist(), final.column(DIFF).to_pylist())
        if any(self._held[key][1] < 0 for key in touched & self._held.keys()):
            raise LogError(
                "the changelog retracts a row that it never emitted",
                detail="part of it is missing or duplicated",
            )

    def _add(self, rows: Iterable[dict[str, Any]], diffs: list[int]) -> set[Hashable]:
        """Update the counts of rows; returns the keys of those rows."""
        touched: set[Hashable] = set()
        for row, diff in zip(rows, diffs, strict=True):
            key = _key(tuple(row.values()))
            touched.add(key)
            known, copies = self._held.get(key, (row, 0))
            if copies + diff:
                self._held[key] = known, copies + diff
            else:
                self._held.pop(key, None)
        return touched


def _key(value: Any) -> Hashable:
    """A key that is equal for values that SQL considers the same.

    >>> _key([float("nan"), {"a": -0.0}]) == _key([float("nan"), {"a": 0.0}])
    True
    """
    match value:
        case float():
            return value if value == value else _NAN  # noqa: PLR0124  only NaN differs from itself
        case list() | tuple():
            return tuple(map(_key, value))
        case dict():
            return tuple((name, _key(one)) for name, one in value.items())
        case _:
            key: Hashable = value
            return key
