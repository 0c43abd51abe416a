"""The positions of trees in the text of a statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from nilometer.errors import Place, SqlError


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions joined by AND, from left to right."""
    waiting = [tree]
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.And):
            waiting += [node.right, node.left]
        else:
            yield node


def place_of(tree: exp.Expr, sql: str) -> Place:
    """The position of an expression in the text: from its first to its last known word."""
    placed = (node for node in tree.walk(prune=is_placed) if is_placed(node))
    places = [(node.meta["start"], node.meta["end"]) for node in placed]
    if not places:
        return Place(sql, 0, min(len(sql), 1))
    start, end = min(start for start, _ in places), max(end for _, end in places)
    return Place(sql, start, _close_brackets(sql, start, end + 1))


def text_of(tree: exp.Expr, sql: str) -> str:
    """An expression as written."""
    place = place_of(tree, sql)
    return " ".join(sql[place.start : place.end].split())


def is_placed(node: exp.Expr) -> bool:
    """Whether the complete position of a node is known."""
    return "start" in node.meta


def put_at(node: exp.Expr, place: Place) -> exp.Expr:
    """The node with its position set."""
    node.meta.update(start=place.start, end=place.end - 1)
    return node


@contextmanager
def placed_within(part: Place) -> Iterator[None]:
    """Place errors about a part of a text, read by itself, in the whole text."""
    text = part.sql[part.start : part.end]
    try:
        yield
    except SqlError as error:
        at = error.place
        if at is not None and at.sql == text:
            error.place = Place(part.sql, part.start + at.start, part.start + at.end)
        raise


def _close_brackets(sql: str, start: int, end: int) -> int:
    """The end, moved past the closing brackets of those opened inside."""
    open_brackets = sql.count("(", start, end) - sql.count(")", start, end)
    while open_brackets > 0 and end < len(sql) and (sql[end] == ")" or sql[end].isspace()):
        open_brackets -= sql[end] == ")"
        end += 1
    return end
