"""Where the micro-batches of a followed query go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame

from nilometer.commands.answers import header, made_lines, take_rows
from nilometer.commands.destination import GrowingFile, open_output
from nilometer.commands.options import Format
from nilometer.commands.progress import Progress
from nilometer.commands.tables import TableView


class Sink(Protocol):
    """Takes the rows of a micro-batch."""

    def write(self, rows: DataFrame, batch: int) -> None: ...


@dataclass
class LinesToFile:
    """CSV or JSON lines in a file."""

    form: Format
    file: GrowingFile

    def write(self, rows: DataFrame, batch: int) -> None:
        with made_lines(rows, self.form) as lines, self.file.open(batch) as out:
            if out.tell() == 0:
                out.write(header(rows.columns, self.form))
            lines.copy_to(out)


@dataclass
class LinesToScreen:
    """CSV or JSON lines on the standard output."""

    form: Format
    progress: Progress
    begun: bool = False

    def write(self, rows: DataFrame, batch: int) -> None:
        first = b"" if self.begun else header(rows.columns, self.form)
        with made_lines(rows, self.form) as lines, self.progress.aside(), open_output() as out:
            out.write(first)
            lines.copy_to(out)
        self.begun = True


@dataclass
class TableToScreen:
    """Rows below one another; of every micro-batch at most `limit`."""

    view: TableView
    limit: int
    progress: Progress

    def write(self, rows: DataFrame, batch: int) -> None:
        taken = take_rows(rows, self.limit)
        if not taken.total:
            return
        with self.progress.aside():
            self.view.show(taken.rows)
            if (more := taken.total - len(taken.rows)) > 0:
                told = f"… and {more:,} more at the same time"
                self.view.console.print(told, style="dim", soft_wrap=True)


@dataclass
class Guarded:
    """A sink that keeps its failure, which Spark would hand back as text only."""

    sink: Sink
    failure: BaseException | None = field(default=None, init=False)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        try:
            self.sink.write(rows, batch)
        except BaseException as error:
            self.failure = error
            raise RuntimeError("the rows could not be written") from None
