"""Errors in PostgreSQL's protocol: a code of five characters, and fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nilometer import errors
from nilometer.errors import NilometerError
from nilometer.model.secrets import shown_text
from nilometer.server.pg import wire

if TYPE_CHECKING:
    pass

_CODES: Final[tuple[tuple[type[NilometerError], str], ...]] = (
    (errors.UnauthorizedError, "28P01"),
    (errors.ForbiddenError, "42501"),
    (errors.UnknownNameError, "42P01"),
    (errors.NotFoundError, "42P01"),
    (errors.NameTakenError, "42P07"),
    (errors.AmbiguousNameError, "42702"),
    (errors.SqlTypeError, "42804"),
    (errors.SqlSyntaxError, "42601"),
    (errors.TimeLimitError, "57014"),
    (errors.TooLargeError, "54000"),
    (errors.LimitError, "53300"),
    (errors.ClosedError, "57P01"),
    (errors.InternalError, "XX000"),
    (wire.ProtocolError, "08P01"),
)
_OTHER: Final = "42000"


class CancelledError(NilometerError):
    """A statement that its client has cancelled."""


def error_message(error: NilometerError, *, fatal: bool = False) -> bytes:
    """An error as a message of PostgreSQL's protocol."""
    severity = "FATAL" if fatal else "ERROR"
    code = "57014" if isinstance(error, CancelledError) else _OTHER
    code = next((one for kind, one in _CODES if isinstance(error, kind)), code)
    fields = {b"S": severity, b"V": severity, b"C": code, b"M": shown_text(error.message)}
    if error.detail:
        fields[b"D"] = shown_text(str(error.detail))
    if error.hint:
        fields[b"H"] = shown_text(str(error.hint))
    place = getattr(error, "place", None)
    if place is not None:
        fields[b"P"] = str(place.start + 1)
    return wire.error_response(fields)
