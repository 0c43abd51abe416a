"""The failure of a query, passed as JSON from its bucket to the engine's control side."""

from __future__ import annotations

from typing import Any

from nilometer import errors
from nilometer.errors import NilometerError, SessionError, in_one_line
from nilometer.mining.table_function import MiningError


def describe_failure(error: Exception) -> dict[str, Any]:
    """An error as JSON."""
    if isinstance(error, NilometerError):
        return {
            "kind": type(error).__name__,
            "message": error.message,
            "detail": error.detail,
            "hint": error.hint,
        }
    if isinstance(error, MemoryError):
        return {"kind": "SessionError", "message": "the engine has run out of memory"}
    return {
        "kind": "SessionError",
        "message": "the query could not continue",
        "detail": in_one_line(error),
    }


def read_failure(description: dict[str, Any]) -> NilometerError:
    """The error that was described."""
    kind: Any = getattr(errors, str(description["kind"]), SessionError)
    if description["kind"] == MiningError.__name__:
        kind = MiningError
    try:
        error = kind(
            description["message"], detail=description.get("detail"), hint=description.get("hint")
        )
    except TypeError:  # its constructor needs more arguments
        error = SessionError(
            description["message"], detail=description.get("detail"), hint=description.get("hint")
        )
    assert isinstance(error, NilometerError)
    return error
