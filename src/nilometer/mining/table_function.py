"""The interface of table functions: their arguments, their results, and their workers.

``PERIODS(Meter [RANGE 7 DAYS], by => sensor, value => P, every => 1 DAY)`` in FROM has an input, a
stream or a query that is appended to; columns of it (by, value); options, which are constants; and
some functions have static tables of knowledge: ``CLASSIFY(S, …, knowledge => (SELECT …))``.

There are three kinds of functions.

RowFunction     has a result for each row by itself, and keeps nothing.
FollowFunction  follows the rows of each key in order of time, with results for some of them.
AnswerFunction  has an answer for the rows of each key in a window, at regular intervals.

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
    """Invalid arguments of a table function; `argument` is the one at fault."""

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
    """The types that a column argument may have."""

    NUMBER = "a number"
    NUMBERS = "an array of numbers"
    PLAIN = "a text, a number, a time or a boolean"
    ANY = "anything that can be compared"


class OptionKind(StrEnum):
    """The kind of an option."""

    INTEGER = "a whole number"
    NUMBER = "a number"
    DURATION = "a length of time"
    TEXT = "a text"
    NUMBERS = "a list of numbers"


class WindowUse(StrEnum):
    """Whether a window may follow the input, inside the parentheses."""

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
    """A constant. Functions receive durations in microseconds."""

    name: str
    kind: OptionKind
    about: str
    default: Any = None
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableArgument:
    """A static table, given as a query in parentheses with these columns, by position.

    The last column may stand for any number of columns.
    """

    name: str
    columns: tuple[ColumnArgument, ...]
    about: str
    required: bool = True


@dataclass(frozen=True)
class ResultColumn:
    """A column of a function's results."""

    name: str
    kind: pa.DataType


def result_rows(
    columns: Sequence[ResultColumn], rows: Sequence[Mapping[str, object]]
) -> pa.RecordBatch:
    """Rows, given by column name, as columns; other names are ignored."""
    arrays = [pa.array([row[one.name] for row in rows], one.kind) for one in columns]
    return pa.RecordBatch.from_arrays(arrays, [one.name for one in columns])


@dataclass(frozen=True)
class CheckedCall:
    """A call whose arguments have been checked: plain data that can be pickled."""

    types: Mapping[str, pa.DataType]
    """The types of the column arguments that were given, by name."""
    options: Mapping[str, Any]
    """All options by name, with defaults filled in; None if there is neither."""
    window: int | None = None
    """The length of the window after the input, in microseconds."""
    tables: Mapping[str, tuple[pa.DataType, ...]] = field(default_factory=dict)
    """The types of the columns of the tables that were given, by name."""


Columns: TypeAlias = Mapping[str, pa.Array]
"""The column arguments that were given, by name, all of equal length."""
Tables: TypeAlias = Mapping[str, pa.RecordBatch]
"""The rows of static tables, by name: columns c0, c1, …, in a deterministic order."""
Saved: TypeAlias = dict[str, Any]
"""A saved state: numpy arrays (of any number type, not object) and values that fit JSON."""
Numbers: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RowResults:
    """Results for rows: ascending row numbers, and the function's columns."""

    rows: Int64s
    columns: tuple[pa.Array, ...]


class RowWorker(Protocol):
    """Computes results for rows, each by itself."""

    def look(self, columns: Columns) -> RowResults:
        """The results of rows. An unusable row has none, or NULLs; it is not an error."""


class Follower(Protocol):
    """Follows the rows of one key. The same rows give the same results in any batches."""

    def follow(self, times: Int64s, columns: Columns) -> RowResults:
        """The results of the next rows, in order of time and not earlier than previous ones."""

    def dead_after(self) -> int | None:
        """The time after which its state is no longer needed (FOREVER: never; None: already)."""

    def save(self) -> Saved:
        """What `load` needs; bounded, however long the stream has been."""


class Miner(Protocol):
    """Has an answer for the rows of one key: those in a window, or all since the first.

    The answer depends only on these rows, not on the batches in which they were added.
    """

    def add(self, times: Int64s, columns: Columns) -> None:
        """Add the next rows, in order of time and not earlier than previous ones."""

    def forget(self, before: int) -> None:
        """Remove the rows strictly before a time. Called only if there is a window."""

    def answer(self) -> pa.RecordBatch:
        """The current answer: distinct rows of the function's columns, in a deterministic order."""

    def save(self) -> Saved:
        """What `load` needs; without a window, bounded however long the stream has been."""


class TableFunction(Protocol):
    """The description that all three kinds of functions have in common."""

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

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        """The function's own columns for a call; a MiningError if the arguments do not fit."""


class RowFunction(TableFunction, Protocol):
    """Has a result for each row by itself."""

    def row_worker(self, call: CheckedCall, tables: Tables) -> RowWorker:
        """The worker; created once for all rows of a process, so this may be slow."""


class FollowFunction(TableFunction, Protocol):
    """Has results for some rows of each key, in order of time."""

    def follower(self, call: CheckedCall, tables: Tables, saved: Saved | None) -> Follower:
        """The follower of one key, new or from its saved state."""


class AnswerFunction(TableFunction, Protocol):
    """Has an answer for the rows of each key."""

    def miner(self, call: CheckedCall, tables: Tables, saved: Saved | None) -> Miner:
        """The miner of one key, new or from its saved state."""
