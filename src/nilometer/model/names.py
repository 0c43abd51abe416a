"""Wording for users: names that they may have meant, and counts with nouns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from nilometer.errors import SchemaError


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A "did you mean" question with the most similar known name, if one is similar.

    >>> nearest("tss", ["ts", "k"])
    'did you mean ts?'
    """
    lowered = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    return f"did you mean {lowered[close[0]]}?" if close else None


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural if needed.

    >>> count(1, "argument"), count(2, "argument")
    ('1 argument', '2 arguments')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def find_column(stream: str, names: Sequence[str], column: str) -> int:
    """The position of a stream's column, whose name may be in any case unless that is ambiguous.

    >>> find_column("A", ["k", "ts"], "TS")
    1
    """
    same = [i for i, name in enumerate(names) if name == column]
    same = same or [i for i, name in enumerate(names) if name.lower() == column.lower()]
    if len(same) == 1:
        return same[0]
    if same:
        raise SchemaError(
            f"stream {stream} has {len(same)} columns named {column}", hint="rename one of them"
        )
    raise SchemaError(
        f"stream {stream} has no column {column}",
        detail=f"it has {', '.join(names) or 'no columns'}",
        hint=nearest(column, names),
    )


def natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key that sorts names as people do; numbers in them may have any length.

    >>> sorted(["Camera10", "Camera2", "alpha"], key=natural)
    ['alpha', 'Camera2', 'Camera10']
    >>> natural("8" * 5000) < natural("9" * 5000)
    True
    """
    parts = [one for one in re.split(r"([0-9]+)", name.lower()) if one]
    digits = [one.lstrip("0") if one[0] in "0123456789" else None for one in parts]
    return [
        (1, 0, part) if number is None else (0, len(number), number)
        for part, number in zip(parts, digits, strict=True)
    ]
