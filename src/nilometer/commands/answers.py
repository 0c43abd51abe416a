"""Answers as commands write them, whichever engine computed them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from nilometer.commands.options import Format
from nilometer.commands.statements import OneStatement
from nilometer.commands.tables import Heading
from nilometer.errors import InputError
from nilometer.operators.change_operator import DIFF, TIME


@dataclass(frozen=True)
class FirstRows:
    """The first rows of an answer as text, and how many it has."""

    rows: list[tuple[str | None, ...]]
    total: int


class Lines(Protocol):
    """The rows of an answer as lines."""

    def copy_to(self, out: BinaryIO) -> None:
        """Write all lines."""


class Answer(Protocol):
    """Rows that are available, or computed when they are requested."""

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def headings(self) -> list[Heading]:
        """The columns as a table shows them."""

    def take_rows(self, limit: int) -> FirstRows:
        """The first rows."""

    def lines(self, form: Format) -> AbstractContextManager[Lines]:
        """The rows as CSV or JSON lines, for as long as the context lasts."""

    def in_order_of_time(self) -> Answer:
        """Rows in order of time, then by all columns; for changes, retractions first."""

    def write_parquet(self, folder: Path) -> None:
        """Write all rows to files in a new folder."""


def in_shown_order(answer: Answer, statement: OneStatement) -> Answer:
    """The rows in the statement's order, else in order of time; changes always in order of time."""
    if is_changelog(answer.columns) or (statement.is_query and not statement.has_order):
        return answer.in_order_of_time()
    return answer


def header(columns: Sequence[str], form: Format) -> bytes:
    """The header line, if the format has one."""
    if form is not Format.CSV:
        return b""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(columns)
    return text.getvalue().encode()


def is_changelog(columns: Sequence[str]) -> bool:
    """Whether rows are emitted and retracted; otherwise they are only added."""
    return list(columns[-2:]) == [TIME, DIFF]


def require_names(columns: Sequence[str], form: Format) -> None:
    """Refuse two columns of one name if the format identifies values by name."""
    if form in (Format.TABLE, Format.CSV):
        return
    lowered = [name.lower() for name in columns]
    for name in columns:
        if lowered.count(name.lower()) > 1:
            raise InputError(
                f"two columns are named {name}, and {form} identifies columns by name",
                hint=f"give them aliases: SELECT A.{name} AS a_{name}, B.{name} AS b_{name}"
                if name.isidentifier()
                else f"give each an alias: {name} AS a",
            )
