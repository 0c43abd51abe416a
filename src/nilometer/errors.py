"""Every error that a user can meet: what went wrong, what was found, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, Self

_WIDTH: Final = 96
_CONTEXT: Final = 40


class NilometerError(Exception):
    """A refusal in one lower-case sentence, with what was found (detail) and what to do (hint)."""

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        self.message = message
        self.detail = detail
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"  detail: {self.detail}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.detail, self.hint)


def in_one_line(error: BaseException) -> str:
    """An error's message on one line, for a cell of a table."""
    if isinstance(error, NilometerError):
        return "; ".join(part for part in (error.message, error.detail, error.hint) if part)
    return " ".join(f"{type(error).__name__}: {error}".split())


def _rebuild(
    kind: type[NilometerError], message: str, detail: str | None, hint: str | None
) -> NilometerError:
    return kind(message, detail=detail, hint=hint)


class SlowQueryError(NilometerError):
    """A query that delays others that run beside it."""


class DurationError(NilometerError):
    """A duration that cannot be parsed, or that has the wrong sign."""


class WindowError(NilometerError):
    """Time windows that contradict each other, or that leave a stream unbounded."""

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        streams: tuple[str, ...] = (),
        limits: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.streams = streams
        self.limits = limits

    def __reduce__(self) -> tuple[object, ...]:
        keywords = {
            "detail": self.detail,
            "hint": self.hint,
            "streams": self.streams,
            "limits": self.limits,
        }
        return partial(type(self), **keywords), (self.message,)  # type: ignore[arg-type]


class ContradictionError(WindowError):
    """Windows that cannot all hold; the streams are those of a cycle, in order.

    The limits say how much later each may be than the previous one, and the first than the last.
    """


class UnboundedError(WindowError):
    """A stream whose tuples could never be dropped, and the stream whose time nothing bounds."""


class SchemaError(NilometerError):
    """A column that is missing, ambiguous, or of a type that cannot be used there."""


class InputError(NilometerError):
    """A stream that was declared in a way that cannot work."""


class InUseError(InputError):
    """A database or a catalog that another process has open."""


class NoStreamError(InputError):
    """A query over tables alone, which is answered once: there is nothing to follow."""


class OnlySparkError(InputError):
    """Input that this process might treat differently than Spark, so it refuses."""


class LimitError(InputError):
    """More than is allowed at once, or than one query may use."""


class PredicateError(NilometerError):
    """A join predicate that cannot be compiled, or that failed on the data."""


class UnavailableError(PredicateError):
    """An expression that only Spark can evaluate."""


class CheckpointError(NilometerError):
    """A checkpoint that belongs to another query, or to another number of buckets."""


class BackupError(NilometerError):
    """A backup that cannot be made, is not there, or is damaged."""


class LogError(NilometerError):
    """A log that cannot be opened, read or written: damaged, held by another, or misused."""


class LogTakenError(LogError):
    """An append to a log that another writer has taken over."""


class LogFullError(LogError):
    """An append that would take more disk than the log may use; nothing of it was stored."""


class DiskFullError(LogFullError):
    """An append for which the disk itself has no room."""


class LogGapError(LogError):
    """A place in a log whose rows are gone: `rows` of them, up to `oldest`, the first one kept."""

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        rows: int = 0,
        oldest: object = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.rows = rows
        self.oldest = oldest

    def __reduce__(self) -> tuple[object, ...]:
        keywords = {
            "detail": self.detail,
            "hint": self.hint,
            "rows": self.rows,
            "oldest": self.oldest,
        }
        return partial(type(self), **keywords), (self.message,)  # type: ignore[arg-type]


class ResultsGoneError(NilometerError):
    """Results of a query that was dropped or replaced."""


class InstallationError(NilometerError, ImportError):
    """A package that is not installed, or of a version that cannot work."""


class SessionError(NilometerError):
    """A Spark session that cannot be started or used."""


class CatalogError(NilometerError):
    """A catalog that cannot be opened, read or changed."""


class UnauthorizedError(NilometerError):
    """A request without a token, or with one that is not valid (any more)."""


class ForbiddenError(NilometerError):
    """An operation that a token does not allow."""


class NotFoundError(NilometerError):
    """A server address, or a name in one, that does not exist."""


class TooLargeError(NilometerError):
    """A request or an answer larger than the server allows."""


class TimeLimitError(NilometerError):
    """A statement that exceeded its time limit."""


class ClosedError(NilometerError):
    """A server that is starting, stopping, or cannot reach what it needs."""


class UnreachableError(ClosedError):
    """A server that does not answer, or whose reply is not Nilometer's."""


class InternalError(NilometerError):
    """A fault of Nilometer's own, detected before it could give a wrong answer."""


@dataclass(frozen=True, slots=True)
class Place:
    """A range in an SQL text: characters start … end-1."""

    sql: str
    start: int
    end: int

    @property
    def line(self) -> int:
        """The line, counted from 1."""
        return self.sql.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The column, counted from 1."""
        return self.start - (self.sql.rfind("\n", 0, self.start) + 1) + 1

    def excerpt(self) -> tuple[str, str]:
        """The line in which the range begins, cut to a screen's width, and its underline."""
        first = self.start - self.column + 1
        newline = self.sql.find("\n", first)
        line = self.sql[first : len(self.sql) if newline < 0 else newline].replace("\t", " ")
        marks = max(1, min(self.end, first + len(line)) - self.start)
        before = self.column - 1
        cut = 0 if before + marks <= _WIDTH else max(0, before - _CONTEXT)
        shown = "".join(c if c.isprintable() else " " for c in line[cut : cut + _WIDTH].rstrip())
        under = " " * (before - cut) + "^" * min(marks, _WIDTH - (before - cut))
        return ("…" if cut else "") + shown, (" " if cut else "") + under


class SqlError(NilometerError):
    """A statement that cannot be run: what is wrong, and where in the text."""

    def __init__(
        self,
        message: str,
        *,
        place: Place | None = None,
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.place = place

    @classmethod
    def at(cls, place: Place, error: NilometerError) -> Self:
        """The words of another error, about this place."""
        return cls(error.message, place=place, detail=error.detail, hint=error.hint)

    def __str__(self) -> str:
        message, *rest = super().__str__().split("\n")
        if self.place is None:
            return "\n".join([message, *rest])
        line, under = self.place.excerpt()
        where = f"  line {self.place.line}, column {self.place.column}:"
        return "\n".join([message, where, f"    {line}", f"    {under}", *rest])

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_sql, (type(self), self.message, self.place, self.detail, self.hint)


def _rebuild_sql(
    kind: type[SqlError],
    message: str,
    place: Place | None,
    detail: str | None,
    hint: str | None,
) -> SqlError:
    return kind(message, place=place, detail=detail, hint=hint)


class SqlSyntaxError(SqlError):
    """A text that is not a statement of the dialect."""


class UnknownNameError(SqlError):
    """A stream, column, function or field that does not exist."""


class NameTakenError(SqlError):
    """A name that is already taken."""


class ChangedError(InputError):
    """Something to be replaced has changed since it was read."""


class AmbiguousNameError(SqlError):
    """A name that could mean several things."""


class SqlTypeError(SqlError):
    """Values whose types are incompatible."""


class GoesOnError(SqlError):
    """A query over streams, which has no last row: it is followed, not answered."""


class SqlWindowError(SqlError):
    """Windows of a statement that contradict each other, or leave a stream unbounded."""


class NotYetError(SqlError):
    """A statement that is valid but not supported yet."""
