"""Sinks for the micro-batches of a followed query."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console

from nilometer.commands.answers import Answer, header
from nilometer.commands.destination import GrowingFile, open_output
from nilometer.commands.options import Format
from nilometer.commands.progress import Progress
from nilometer.commands.row_order import RowOrder
from nilometer.commands.tables import Heading, TableView

_OTHER_LINES: Final = 5
"""Lines of a screen that are not rows: heading, rule, count, progress, and one to spare."""


class Sink(Protocol):
    """Receives the rows of a micro-batch."""

    def write(self, rows: Answer, batch: int) -> None: ...


@dataclass
class LinesToFile:
    """CSV or JSON lines in a file."""

    form: Format
    file: GrowingFile

    def write(self, rows: Answer, batch: int) -> None:
        with rows.lines(self.form) as lines, self.file.open(batch) as out:
            if out.tell() == 0:
                out.write(header(rows.columns, self.form))
            lines.copy_to(out)


@dataclass
class LinesToScreen:
    """CSV or JSON lines on the standard output."""

    form: Format
    progress: Progress
    begun: bool = False

    def write(self, rows: Answer, batch: int) -> None:
        first = b"" if self.begun else header(rows.columns, self.form)
        with rows.lines(self.form) as lines, self.progress.aside(), open_output() as out:
            out.write(first)
            lines.copy_to(out)
        self.begun = True


@dataclass
class TableToScreen:
    """Tables one below the other; at most `limit` rows of every micro-batch."""

    view: TableView
    limit: int
    progress: Progress

    def write(self, rows: Answer, batch: int) -> None:
        taken = rows.take_rows(self.limit)
        if not taken.total:
            return
        with self.progress.aside():
            self.view.show(taken.rows)
            if (more := taken.total - len(taken.rows)) > 0:
                notice = f"… and {more:,} more at the same time"
                self.view.console.print(notice, style="dim", soft_wrap=True)


@dataclass
class InOrderOfTime:
    """A sink that receives the changes of every micro-batch in order."""

    sink: Sink

    def write(self, rows: Answer, batch: int) -> None:
        self.sink.write(rows.in_order_of_time(), batch)


@dataclass
class AnswerToScreen:
    """The whole answer whenever it changes: in a terminal it replaces the previous one."""

    screen: Console
    headings: Sequence[Heading]
    order: RowOrder
    limit: int
    progress: Progress
    _copies: Counter[tuple[str | None, ...]] = field(default_factory=Counter)
    _time: str = ""

    def write(self, rows: Answer, batch: int) -> None:
        changes = rows.take_rows(sys.maxsize).rows
        if not changes:
            return
        for *row, time, diff in changes:
            self._copies[tuple(row)] += int(diff or 0)
            self._time = max(self._time, time or "")
        self._copies = Counter({row: n for row, n in self._copies.items() if n})
        with self.progress.aside():
            self._show()

    def _show(self) -> None:
        rows = self.order.sort(list(self._copies.elements()))
        shown = rows[: self._room()]
        if self.screen.is_terminal:
            self.screen.clear()
        TableView(self.screen, self.headings).show(shown)
        more = f", {len(shown):,} of them above" if len(shown) < len(rows) else ""
        summary = f"{len(rows):,} row{'' if len(rows) == 1 else 's'} at {self._time}{more}"
        self.screen.print(summary, style="dim", soft_wrap=True)
        if not self.screen.is_terminal:
            self.screen.print()

    def _room(self) -> int:
        """How many rows are shown: in a terminal, as many as keep the heading visible."""
        if not self.screen.is_terminal:
            return self.limit
        return min(self.limit, max(1, self.screen.height - _OTHER_LINES))


@dataclass
class FilesInFolder:
    """A Parquet file for every micro-batch that has rows."""

    folder: Path

    def write(self, rows: Answer, batch: int) -> None:
        if batch == 0 or rows.take_rows(1).total:
            rows.write_parquet(self.folder)
