"""Whole numbers in calls before OVER, and in their frames."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.parse.places import place_of

MOST: Final = 1_000_000_000
"""No one counts more rows than this, and sums of such numbers stay small."""


def read_count(tree: exp.Expr, sql: str) -> int:
    """A number of rows that is written as a constant."""
    is_count = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal()
    if is_count and len(tree.name) <= len(str(MOST)) and int(tree.name) <= MOST:
        return int(tree.name)
    raise SqlError(
        "expected a whole number of rows",
        place=place_of(tree, sql),
        detail=f"from 0 to {MOST:,}" if is_count else None,
        hint="write 1",
    )


def read_nth(node: exp.NthValue, sql: str) -> int:
    """The number in NTH_VALUE(x, number)."""
    if node.args.get("from_first") is not None:
        raise SqlError(
            "NTH_VALUE takes two arguments",
            place=place_of(node, sql),
            hint="write NTH_VALUE(x, 2) IGNORE NULLS",
        )
    number = read_count(node.args["offset"], sql)
    if not number:
        raise SqlError("rows are counted from 1", place=place_of(node, sql))
    return number
