"""A sentence about rows that a batch answer has left out."""

from __future__ import annotations

from collections.abc import Mapping


def describe_left_out(counts: Mapping[str, int]) -> str | None:
    """A sentence on how many rows of which streams have no time; None if all have one.

    >>> describe_left_out({"A": 3})
    '3 rows have no time and were left out'
    """
    parts = [f"{rows:,} of {name}" for name, rows in counts.items() if rows]
    if not parts:
        return None
    total = sum(counts.values())
    verb = "row has no time and was" if total == 1 else "rows have no time and were"
    where = "" if len(counts) == 1 else f" ({', '.join(parts)})"
    return f"{total:,} {verb} left out{where}"
