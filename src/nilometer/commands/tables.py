"""Rows as a table on the screen; as a list of records where the screen is too narrow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

Rows = Sequence[tuple[str | None, ...]]

LONGEST_VALUE: Final = 200
"""How many characters of a value a table shows at most."""

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_COMMANDS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NULL: Final = "NULL"


@dataclass(frozen=True, slots=True)
class Heading:
    """A column of a table."""

    name: str
    is_number: bool = False
    is_time: bool = False
    is_change: bool = False
    """A number of copies that are added (+) or removed (-)."""


@dataclass
class TableView:
    """Shows rows in one or more steps; columns keep their width from step to step."""

    console: Console
    headings: Sequence[Heading]
    as_records: bool = False
    """Whether every row is a list of its columns, even where a table would fit."""
    _widths: list[int] = field(default_factory=list)
    _fractions: list[int] = field(default_factory=list)

    def show(self, rows: Rows) -> None:
        """Show rows; headings are shown first, and again when columns have grown."""
        values = [[row[i] for row in rows] for i in range(len(self.headings))]
        needed = [_digits(column) for column in values]
        self._fractions = [
            max(pair) for pair in zip(needed, self._fractions or needed, strict=True)
        ]
        columns = list(map(_column, self.headings, values, self._fractions))
        names = [clean(heading.name) for heading in self.headings]
        widths = [
            max([cell_len(name), *(cell_len(value or _NULL) for value in column)])
            for name, column in zip(names, columns, strict=True)
        ]
        grown = [max(pair) for pair in zip(widths, self._widths or widths, strict=True)]
        width = sum(grown) + 3 * len(grown)
        is_too_wide = self.console.is_terminal and width > self.console.width
        if self.as_records or is_too_wide:
            self._show_records(names, columns)
            return
        headed, self._widths = grown != self._widths, grown
        self._show_table(names, columns, headed, width)

    def _show_table(
        self, names: list[str], columns: list[list[str | None]], headed: bool, width: int
    ) -> None:
        table = Table(box=box.SIMPLE_HEAD, show_header=headed, pad_edge=False, show_edge=False)
        for name, heading, own in zip(names, self.headings, self._widths, strict=True):
            title = Text(name, justify="right" if heading.is_number else "left")
            table.add_column(title, justify=title.justify or "left", width=own, no_wrap=True)
        for row in zip(*columns, strict=True):
            table.add_row(*map(_cell, row))
        if not self.console.is_terminal:
            self.console.width = width
        self.console.print(table)

    def _show_records(self, names: list[str], columns: list[list[str | None]]) -> None:
        for row in zip(*columns, strict=True):
            record = Table.grid(padding=(0, 2))
            record.add_column(style="bold", no_wrap=True, max_width=self.console.width // 2)
            record.add_column(overflow="fold")
            for name, value in zip(names, row, strict=True):
                record.add_row(Text(name), _cell(value))
            self.console.print(record)
            self.console.print("─" * min(20, self.console.width), style="dim")


def count_line(shown: int, total: int, what: str = "row") -> str:
    """The line below a table.

    >>> count_line(1, 1), count_line(50, 1234)
    ('1 row', '50 of 1,234 rows: 1,184 more, which --limit 1234 shows')
    """
    every = counted(total, what)
    if shown == total:
        return every
    return f"{shown:,} of {every}: {total - shown:,} more, which --limit {total} shows"


def counted(total: int, what: str) -> str:
    """A count with its noun.

    >>> counted(1234, "row")
    '1,234 rows'
    """
    return f"{total:,} {what}{'' if total == 1 else 's'}"


def safe_text(text: str) -> str:
    """Text of several lines with terminal control characters escaped."""
    return _COMMANDS.sub(lambda match: repr(match[0])[1:-1], text)


def _column(heading: Heading, values: list[str | None], digits: int) -> list[str | None]:
    if heading.is_time:
        return _times(values, digits)
    if heading.is_change:
        return [f"{int(value):+d}" for value in values if value is not None]
    return [None if value is None else clean(value) for value in values]


def _digits(values: list[str | None]) -> int:
    """How many digits of a second these times need: none, three or six."""
    fractions = [len(value.partition(".")[2]) for value in values if value is not None]
    return next((size for size in (0, 3) if max(fractions, default=0) <= size), 6)


def _times(values: list[str | None], digits: int) -> list[str | None]:
    """Times with this many digits of a second."""
    if not digits:
        return values
    padded: list[str | None] = []
    for value in values:
        whole, _, fraction = (value or "").partition(".")
        padded.append(None if value is None else f"{whole}.{fraction.ljust(digits, '0')}")
    return padded


def clean(value: str) -> str:
    """A value with line breaks and control characters escaped, cut if it is long."""
    cut = value if len(value) <= LONGEST_VALUE else value[:LONGEST_VALUE] + "…"
    return _UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], cut)


def _cell(value: str | None) -> Text:
    return Text(_NULL, style="dim italic") if value is None else Text(value)
