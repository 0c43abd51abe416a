"""Every error that a user can meet: what went wrong, what was found, and what to do."""

from __future__ import annotations


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


def _rebuild(
    kind: type[NilometerError], message: str, detail: str | None, hint: str | None
) -> NilometerError:
    return kind(message, detail=detail, hint=hint)


class DurationError(NilometerError):
    """A length of time that cannot be read, or that has the wrong sign."""


class WindowError(NilometerError):
    """Time windows that contradict each other, or that leave a stream unbounded."""


class SchemaError(NilometerError):
    """A column that is missing, ambiguous, or of a type that cannot be used there."""


class InputError(NilometerError):
    """A stream that was declared in a way that cannot work."""


class PredicateError(NilometerError):
    """A join predicate that cannot be compiled, or that failed on the data."""


class CheckpointError(NilometerError):
    """A checkpoint that belongs to another query, or to another number of buckets."""


class SessionError(NilometerError):
    """A Spark session that cannot be started or used."""
