"""Errors about windows, which the network words for Python, worded and placed for SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from nilometer.errors import Place, SqlWindowError, UnboundedError, WindowError

_WINDOW: Final = re.compile(r'nm\.window\("([^"]+)", "([^"]+)", "10s"\)')
_RANGE: Final = re.compile(r'nm\.range\("([^"]+)", "10s"\)')


def window_error(error: WindowError, place: Place | None) -> SqlWindowError:
    """The error at a place, as a user of SQL would want it."""
    hint = error.hint
    if hint is not None and isinstance(error, UnboundedError):
        hint = in_sql(hint, _local_name(*error.streams))
        inside = ".".join(_common(*error.streams))
        hint = f"{hint}, inside {inside}" if inside else hint
    return SqlWindowError(error.message, place=place, detail=error.detail, hint=hint)


def in_sql(hint: str, local_name: Callable[[str], str] = str) -> str:
    """The hint in SQL, its streams under the names that the query has for them.

    >>> in_sql('add nm.range("A", "10s")')
    'add A [RANGE 10 SECONDS]'
    """
    hint = _WINDOW.sub(
        lambda found: f"WINDOW({local_name(found[1])}, {local_name(found[2])}) = 10 SECONDS", hint
    )
    return _RANGE.sub(lambda found: f"{local_name(found[1])} [RANGE 10 SECONDS]", hint)


def _local_name(first: str, second: str) -> Callable[[str], str]:
    """Of P.A and P.B, the names A and B, which the query in which both stand has for them."""
    size = len(_common(first, second))
    return lambda name: name.split(".")[size]


def _common(first: str, second: str) -> list[str]:
    """The subqueries in which both streams stand, from the outermost."""
    shared = []
    for one, other in zip(first.split(".")[:-1], second.split(".")[:-1], strict=False):
        if one != other:
            break
        shared.append(one)
    return shared
