"""The header of a CSV file, checked before anything else is read."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Final

from nilometer.errors import InputError

_SEPARATORS: Final = {";": "semicolons", "\t": "tabulators", "|": "bars"}


def check_header(path: Path) -> None:
    """Refuse a header in which two columns share a name, or a column has none."""
    try:
        names = _names(path)
    except (OSError, EOFError, csv.Error):
        return  # the caller that reads the file reports what is wrong with it
    if len(names) == 1:
        for sign, word in _SEPARATORS.items():
            if sign in names[0]:
                raise InputError(
                    f"the cells of {path} are separated by {word}",
                    detail=f"the header is {names[0]}",
                    hint="write commas between them",
                )
    seen: dict[str, str] = {}
    for place, name in enumerate(names, 1):
        if not name.strip():
            raise InputError(
                f"column {place} of {path} has no name",
                detail=f"the header is {','.join(names)}",
                hint="give it one in the first line of the file",
            )
        if (before := seen.get(name.lower())) is not None:
            same = "" if before == name else f"; {before} differs only in case"
            raise InputError(
                f"two columns of {path} are named {name}",
                detail=f"the header is {','.join(names)}{same}",
                hint="rename one of them in the first line of the file",
            )
        seen[name.lower()] = name


def _names(path: Path) -> list[str]:
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        return next(csv.reader(file), [])
