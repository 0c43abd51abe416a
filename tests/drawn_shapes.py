"""The contents of a drawing in the console."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.server.console.drawing import Shape


def shapes(tree: Shape) -> Iterator[Shape]:
    """A shape and everything in it."""
    yield tree
    for one in tree.inside:
        if isinstance(one, Shape):
            yield from shapes(one)


def texts(tree: Shape) -> list[str]:
    """All texts, in order."""
    inside = ([one] if isinstance(one, str) else texts(one) for one in tree.inside)
    return [text for one in inside for text in one]
