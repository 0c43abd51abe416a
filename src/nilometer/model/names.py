"""Words for users: names that they may have meant, and numbers of things."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A question that offers the most similar known name, if one is similar.

    >>> nearest("tss", ["ts", "k"])
    'did you mean ts?'
    """
    lowered = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    return f"did you mean {lowered[close[0]]}?" if close else None


def count(number: int, noun: str) -> str:
    """So many of something.

    >>> count(1, "argument"), count(2, "argument")
    ('1 argument', '2 arguments')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
