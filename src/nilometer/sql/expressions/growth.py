"""A bound on the size to which a statement grows while it is bound.

A name stands for an expression or a query that may name others in turn: a short statement can mean
an expression of a million parts. Whatever replaces a name is counted first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from sqlglot import exp

from nilometer.errors import Place, SqlError

MOST_PARTS: Final = 20_000
"""Nodes of expressions, and entries of FROM, of a whole statement."""
PARTS_OF_QUERY: Final = 20
"""What a query counts for, besides its expressions."""
_SIZE: Final = "size"
_left: ContextVar[list[int] | None] = ContextVar("parts that a statement may still have")


@contextmanager
def bounded() -> Iterator[None]:
    """Count what is bound here as one statement."""
    token = _left.set([MOST_PARTS])
    try:
        yield
    finally:
        _left.reset(token)


def grow(parts: int, place: Place) -> None:
    """Add parts to the statement's count; raises an error if there are too many."""
    left = _left.get(None)
    if left is None:
        return
    left[0] -= parts
    if left[0] < 0:
        raise SqlError(
            f"the statement has more than {MOST_PARTS:,} parts, once its names are expanded",
            place=place,
            detail="a name for an expression or a query counts in full each time it is used",
            hint="compute parts in separate queries: CREATE QUERY a AS …, and read a",
        )


def grown() -> int:
    """The number of parts counted so far."""
    left = _left.get(None)
    return 0 if left is None else MOST_PARTS - left[0]


def copy_of(tree: exp.Expr, place: Place) -> exp.Expr:
    """A copy of what a name means, counted."""
    size = tree.meta.get(_SIZE)
    if size is None:
        size = tree.meta[_SIZE] = sum(1 for _ in tree.walk())
    grow(size, place)
    copied = tree.copy()
    copied.meta.pop(_SIZE, None)
    return copied
