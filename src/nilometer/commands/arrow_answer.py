"""Answers computed by this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.types as pat

from nilometer.commands.answers import FirstRows, is_changelog
from nilometer.commands.destination import writing_errors
from nilometer.commands.lines import TakeRows, lines_of, rows_of_texts
from nilometer.commands.options import Format
from nilometer.commands.tables import LONGEST_VALUE, Heading
from nilometer.local.complete_rows import in_order_of_time

_ROWS_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True)
class ArrowAnswer:
    """Rows in an Arrow table."""

    table: pa.Table

    @property
    def columns(self) -> Sequence[str]:
        names: list[str] = self.table.column_names
        return names

    @property
    def headings(self) -> list[Heading]:
        changes = is_changelog(self.columns)
        return [
            Heading(
                one.name,
                is_number=_is_number(one.type),
                is_time=pat.is_timestamp(one.type) and one.type.tz is not None,
                is_change=changes and place == len(self.columns) - 1,
            )
            for place, one in enumerate(self.table.schema)
        ]

    def take_rows(self, limit: int) -> FirstRows:
        taker = TakeRows(limit, LONGEST_VALUE + 1)
        rows: list[tuple[str | None, ...]] = []
        for batch in self.table.slice(0, limit).to_batches():
            rows += rows_of_texts(taker.cut(batch).columns)
        return FirstRows(rows, len(self.table))

    @contextmanager
    def lines(self, form: Format) -> Iterator[ArrowLines]:
        names = tuple(self.columns) if form is Format.JSONL else None
        yield ArrowLines(self.table, names)

    def in_order_of_time(self) -> ArrowAnswer:
        return ArrowAnswer(in_order_of_time(self.table))

    def write_parquet(self, folder: Path) -> None:
        """Write a file that appears once it is complete; the folder may already exist."""
        import pyarrow.parquet as pq  # noqa: PLC0415  takes its time

        name = f"part-{uuid4().hex}.parquet"
        with writing_errors(folder):
            folder.mkdir(exist_ok=True)
            pq.write_table(self.table, folder / f".{name}")
            (folder / f".{name}").rename(folder / name)


@dataclass(frozen=True)
class ArrowLines:
    """Rows of a table as CSV, or as JSON with fields of these names."""

    table: pa.Table
    names: tuple[str, ...] | None

    def copy_to(self, out: BinaryIO) -> None:
        for batch in self.table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            out.write(lines_of(batch, self.names))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))
