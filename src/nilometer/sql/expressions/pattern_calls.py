"""A bound on the time for which Spark looks for a pattern in one text.

A pattern that could take years is refused. One whose time grows with a power of the length is
looked for in texts that are short enough (`pattern_guards`), the shorter the more often it is.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.sql.expressions.call_parts import arguments_of, kind_of, text_of
from nilometer.sql.expressions.explosive_functions import repetitions
from nilometer.sql.expressions.growth import grow
from nilometer.sql.expressions.pattern_guards import (
    LIKES,
    PATTERNS,
    STEPS,
    as_used,
    copies,
    patterns_of,
)
from nilometer.sql.expressions.patterns import MOST_STEPS, SHORTEST, longest_like, slow_part

_PARTS: Final = 200
"""What a call counts for that may take seconds: so a statement has at most a hundred of them."""


def require_quick_patterns(tree: exp.Expr, place: Place, functions: Collection[str] = ()) -> None:
    """Refuse patterns in the statement that could take years; `functions` are the users'."""
    for node in tree.walk():
        kind = kind_of(node)
        if kind in functions:
            continue
        for text in patterns_of(node):
            pattern = text_of(text)
            if pattern is None:
                continue
            if kind in LIKES:
                if longest_like(pattern) < SHORTEST:
                    raise SqlError(
                        "a pattern of LIKE with so many % could take years to match",
                        place=place,
                        detail=f"got {pattern[:60]!r}",
                        hint="join fewer parts: s LIKE '%a%' AND s LIKE '%b%'",
                    )
                continue
            slow = slow_part(as_used(pattern, kind))
            if slow is not None:
                name, _ = PATTERNS[kind]
                raise SqlError(
                    f"a pattern of {name} with {slow[:60]} could take years to match",
                    place=place,
                    detail="nested repetitions are tried in every combination, and each that "
                    "follows another one with all of its ways",
                    hint="use possessive or atomic parts: (a++)+, (?>a|b)+, a*+b, and begin "
                    "the pattern with ^ if you can",
                )


def bound_patterns(tree: exp.Expr, place: Place, functions: Collection[str] = ()) -> None:
    """Say in a tree how many steps each of its patterns may take, and count the slow ones."""
    grow(_PARTS * _mark(tree, MOST_STEPS, functions), place)


def _mark(node: exp.Expr, steps: int, functions: Collection[str]) -> int:
    """The number of slow calls, as often as they are evaluated."""
    node.meta[STEPS] = 0 if kind_of(node) in functions else steps
    inside = max(1, steps // repetitions(node))
    slow = sum(
        _mark(one, inside if isinstance(one, exp.Lambda) else steps, functions)
        for one in arguments_of(node)
    )
    times = copies(node)
    return slow * times + 1 if times else slow
