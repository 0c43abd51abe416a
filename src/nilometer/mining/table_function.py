"""What a table function is: what it takes, what it gives, and who does the work.

``PERIODS(Meter [RANGE 7 DAYS], by => sensor, value => P, every => 1 DAY)`` in FROM has an input, a
stream or a query that is appended to; columns of it (by, value); options, which are constants; and
some functions have static tables of knowledge: ``CLASSIFY(S, …, knowledge => (SELECT …))``.

There are three kinds of functions.

RowFunction     says something of each row by itself, and keeps nothing.
FollowFunction  follows the rows of each key in order of time, and says something of some of them.
AnswerFunction  has an answer to the rows of each key in a window, every so often.

Results of the first two are appended; they have the columns and the time of their row, followed by
columns of their own. An answer changes: it has the columns of the key, and columns of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nilometer.errors import NilometerError
from nilometer.kernels.arrays import Int64s


class MiningError(NilometerError):
    """Arguments that a table function cannot work with; `argument` is the one to blame."""

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        argument: str | None = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.argument = argument


class Takes(StrEnum):
    """Which types a column argument may have."""

    NUMBER = "a number"
    NUMBERS = "an array of numbers"
    PLAIN = "a text, a number, a time or a boolean"
    ANY = "anything that can be compared"


class Constant(StrEnum):
    """What an option is."""

    INTEGER = "a whole number"
    NUMBER = "a number"
    DURATION = "a length of time"
    TEXT = "a text"
    NUMBERS = "a list of numbers"


class WindowUse(StrEnum):
    """Whether a window may stand behind the input, inside the brackets."""

    NONE = "none"
    ALLOWED = "allowed"
    NEEDED = "needed"


@dataclass(frozen=True)
class ColumnArgument:
    """A column, or an expression over the columns, of an input or of a table of knowledge."""

    name: str
    takes: Takes
    about: str
    required: bool = True


@dataclass(frozen=True)
class OptionArgument:
    """A constant. Durations are given to functions in microseconds."""

    name: str
    kind: Constant
    about: str
    default: Any = None
    required: bool = False
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableArgument:
    """A static table, given as a query in brackets whose columns are these, by their places.

    The last column may stand for any number of columns.
    """

    name: str
    columns: tuple[ColumnArgument, ...]
    about: str
    required: bool = True


@dataclass(frozen=True)
class ResultColumn:
    """A column that a function gives."""

    name: str
    kind: pa.DataType


def result_rows(
    columns: Sequence[ResultColumn], rows: Sequence[Mapping[str, object]]
) -> pa.RecordBatch:
    """Rows, given by the names of columns, as columns; what has another name is left out."""
    arrays = [pa.array([row[one.name] for row in rows], one.kind) for one in columns]
    return pa.RecordBatch.from_arrays(arrays, [one.name for one in columns])


@dataclass(frozen=True)
class Call:
    """A call whose arguments have been checked: plain data that can be pickled."""

    types: Mapping[str, pa.DataType]
    """Of the column arguments that were given, by name."""
    options: Mapping[str, Any]
    """All options by name, defaults filled in; None where there is neither."""
    window: int | None = None
    """The length of the window behind the input, in microseconds."""
    tables: Mapping[str, tuple[pa.DataType, ...]] = field(default_factory=dict)
    """The types of the columns of the tables that were given, by name."""


Columns: TypeAlias = Mapping[str, pa.Array]
"""The column arguments that were given, by name, all of one length."""
Tables: TypeAlias = Mapping[str, pa.RecordBatch]
"""The rows of static tables, by name: columns c0, c1, …, in an order that is always the same."""
Saved: TypeAlias = dict[str, Any]
"""The state of something: numpy arrays (any number type, not object) and values fit for JSON."""
Numbers: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """Results of rows: for each the number of its row, ascending, and the function's columns."""

    rows: Int64s
    columns: tuple[pa.Array, ...]


class RowWorker(Protocol):
    """Says something of rows, each by itself."""

    def look(self, columns: Columns) -> Found:
        """The results of some rows. A row that cannot be used has none, or NULLs; no error."""


class Follower(Protocol):
    """Follows the rows of one key. The same rows give the same results however they are cut."""

    def follow(self, times: Int64s, columns: Columns) -> Found:
        """The results of the next rows, in order of time and none earlier than any before."""

    def dead_after(self) -> int | None:
        """After which time its state is worth nothing (FOREVER never; None: now, already)."""

    def save(self) -> Saved:
        """What `load` needs; bounded, however long the stream has been."""


class Miner(Protocol):
    """Has an answer to the rows of one key: those in a window, or all since the first.

    The answer depends on these rows alone, not on how they were cut when they were added.
    """

    def add(self, times: Int64s, columns: Columns) -> None:
        """Take the next rows in, in order of time and none earlier than any before."""

    def forget(self, before: int) -> None:
        """The rows strictly before a time leave the window. Called only if there is a window."""

    def answer(self) -> pa.RecordBatch:
        """The answer now: rows of the function's columns, in a definite order, none twice."""

    def save(self) -> Saved:
        """What `load` needs; without a window bounded, however long the stream has been."""


class TableFunction(Protocol):
    """What all three kinds of functions say of themselves."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def columns(self) -> Sequence[ColumnArgument]: ...
    @property
    def options(self) -> Sequence[OptionArgument]: ...
    @property
    def tables(self) -> Sequence[TableArgument]: ...
    @property
    def window(self) -> WindowUse: ...
    @property
    def needs(self) -> Sequence[str]:
        """The packages of the extra `mining` that it imports when it is used."""

    def results(self, call: Call) -> tuple[ResultColumn, ...]:
        """The columns of its own, of such a call; a MiningError if the arguments do not fit."""


class RowFunction(TableFunction, Protocol):
    """Says something of each row by itself."""

    def row_worker(self, call: Call, tables: Tables) -> RowWorker:
        """What does the work; called once for all rows of a process, so it may take its time."""


class FollowFunction(TableFunction, Protocol):
    """Says something of some rows of each key, in order of time."""

    def follower(self, call: Call, tables: Tables, saved: Saved | None) -> Follower:
        """What follows one key, from the beginning or from where it was saved."""


class AnswerFunction(TableFunction, Protocol):
    """Has an answer to the rows of each key."""

    def miner(self, call: Call, tables: Tables, saved: Saved | None) -> Miner:
        """What mines one key, from the beginning or from where it was saved."""
