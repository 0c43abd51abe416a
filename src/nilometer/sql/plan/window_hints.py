"""Errors about windows from the network, reworded for SQL, with their positions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from nilometer.errors import Place, SqlWindowError, UnboundedError, WindowError

_WINDOW: Final = re.compile(r'nm\.window\("([^"]+)", "([^"]+)", "10s"\)')
_RANGE: Final = re.compile(r'nm\.range\("([^"]+)", "10s"\)')


def window_error(error: WindowError, place: Place | None) -> SqlWindowError:
    """The error at a position, worded for SQL users."""
    hint = error.hint
    if hint is not None and isinstance(error, UnboundedError):
        hint = in_sql(hint, _local_name(*error.streams))
        inside = ".".join(_common(*error.streams))
        hint = f"{hint}, inside {inside}" if inside else hint
    return SqlWindowError(error.message, place=place, detail=error.detail, hint=hint)


def in_sql(hint: str, local_name: Callable[[str], str] = str) -> str:
    """The hint in SQL, with streams by their names in the query.

    >>> in_sql('add nm.range("A", "10s")')
    'add A [RANGE 10 SECONDS]'
    """
    hint = _WINDOW.sub(
        lambda match: f"WINDOW({local_name(match[1])}, {local_name(match[2])}) = 10 SECONDS", hint
    )
    return _RANGE.sub(lambda match: f"{local_name(match[1])} [RANGE 10 SECONDS]", hint)


def _local_name(first: str, second: str) -> Callable[[str], str]:
    """For P.A and P.B, the names A and B that the query containing both uses."""
    size = len(_common(first, second))
    return lambda name: name.split(".")[size]


def _common(first: str, second: str) -> list[str]:
    """The subqueries that contain both streams, outermost first."""
    shared = []
    for one, other in zip(first.split(".")[:-1], second.split(".")[:-1], strict=False):
        if one != other:
            break
        shared.append(one)
    return shared
