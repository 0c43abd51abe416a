"""Hints about windows, which the network words for Python, worded for SQL."""

from __future__ import annotations

import re
from typing import Final

_WORDINGS: Final = (
    (re.compile(r'nm\.window\("([^"]+)", "([^"]+)", "10s"\)'), r"WINDOW(\1, \2) = 10 SECONDS"),
    (re.compile(r'nm\.range\("([^"]+)", "10s"\)'), r"\1 [RANGE 10 SECONDS]"),
)


def in_sql(hint: str | None) -> str | None:
    """The hint as a user of SQL would want it.

    >>> in_sql('add nm.range("A", "10s")')
    'add A [RANGE 10 SECONDS]'
    """
    for pattern, wording in _WORDINGS:
        hint = None if hint is None else pattern.sub(wording, hint)
    return hint
