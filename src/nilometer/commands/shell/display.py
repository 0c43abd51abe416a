"""How a shell shows the results of statements: as a table, as records, as CSV or JSON lines."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

from rich.console import Console
from rich.text import Text

from nilometer.commands.answers import Answer, header, is_changelog, require_names
from nilometer.commands.destination import ForTerminal, writing_errors
from nilometer.commands.options import Format
from nilometer.commands.shell.paging import Paged
from nilometer.commands.shell.place import StatementResult
from nilometer.commands.tables import TableView, counted, safe_text
from nilometer.errors import InputError

_LIMIT: Final = 1000
"""How many rows of an answer a table shows."""


def new_console(file: TextIO | None = None, *, stderr: bool = False) -> Console:
    """A console that writes texts unchanged."""
    return Console(file=file, stderr=stderr, highlight=False, markup=False, emoji=False)


@dataclass
class Display:
    """Settings for how answers look, and where they are written."""

    console: Console = field(default_factory=new_console)
    form: Format = Format.TABLE
    is_expanded: bool = False
    limit: int = _LIMIT
    is_paged: bool = False
    """Whether long answers go through a pager."""
    path: Path | None = None
    _file: TextIO | None = None
    _screen: Console = field(init=False)

    def __post_init__(self) -> None:
        self._screen = self.console

    def write_to(self, path: Path | None) -> None:
        """Write answers to a file from now on; None: to the screen again."""
        opened = None
        if path is not None:
            with writing_errors(path):
                opened = path.expanduser().open("w", encoding="utf-8")
        self.close()
        self._file, self.path = opened, path
        self.console = self._screen if opened is None else new_console(opened)

    def close(self) -> None:
        """Close the file of answers."""
        if self._file is not None and self.path is not None:
            with writing_errors(self.path):
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
        self._file = None

    def show(self, done: StatementResult) -> None:
        """Show the result of a statement."""
        if done.answer is None:
            self.say(done.message or "done")
            return
        if self.form is Format.TABLE:
            self._show_table(done.answer)
        else:
            self._write_lines(done.answer)

    def say(self, text: str) -> None:
        """Show a sentence or a plan unchanged."""
        with self._file_errors():
            self.console.print(Text(safe_text(text)), soft_wrap=True)

    def view(self, answer: Answer, console: Console | None = None) -> TableView:
        """The view that draws rows, as tables or as records."""
        return TableView(console or self.console, answer.headings, self.is_expanded)

    def _show_table(self, answer: Answer) -> None:
        taken = answer.take_rows(self.limit)
        what = "change" if is_changelog(answer.columns) else "row"
        summary = counted(taken.total, what)
        if (more := taken.total - len(taken.rows)) > 0:
            summary = (
                f"{len(taken.rows):,} of {summary}; \\limit {taken.total} shows the other {more:,}"
            )

        def draw(console: Console) -> None:
            self.view(answer, console).show(taken.rows)
            console.print(summary, style="dim", soft_wrap=True)

        with self._file_errors():
            Paged(self.console, self.is_paged and self._file is None).show(draw)

    def _write_lines(self, answer: Answer) -> None:
        require_names(answer.columns, self.form)
        out = self._bytes()
        with self._file_errors(), answer.lines(self.form) as lines:
            out.write(header(answer.columns, self.form))
            lines.copy_to(out)
            out.flush()

    def _bytes(self) -> BinaryIO:
        if self._file is not None:
            self._file.flush()
            return self._file.buffer
        sys.stdout.flush()
        out = sys.stdout.buffer
        return cast(BinaryIO, ForTerminal(out)) if sys.stdout.isatty() else out

    def _file_errors(self) -> AbstractContextManager[None]:
        """Convert errors while writing the file of answers to our own."""
        return nullcontext() if self.path is None else writing_errors(self.path)


def read_form(text: str) -> Format:
    """The format with a name; Parquet is only for commands that end."""
    names = [one.value for one in Format if one is not Format.PARQUET]
    if text not in names:
        raise InputError(f"unknown format {text}", hint=f"choose one of {', '.join(names)}")
    return Format(text)
