"""Drawings, tables and highlighted text: trees of elements whose texts are never parsed as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nicegui import ui

NOTHING: Final = "—"
"""Shown where a value is unknown; a card omits it."""


@dataclass(frozen=True)
class Shape:
    """An element of SVG or HTML; tags and attribute names are ours, values may be anyone's."""

    tag: str
    attributes: Mapping[str, str | float] = field(default_factory=dict)
    inside: tuple[Shape | str, ...] = ()

    @property
    def plain(self) -> list[Any]:
        """The tree as the browser receives it."""
        inside = (one if isinstance(one, str) else one.plain for one in self.inside)
        return [self.tag, dict(self.attributes), *inside]


def shape(tag: str, *inside: Shape | str, **attributes: str | float) -> Shape:
    """An element; underscores in names become hyphens, and a trailing one is removed.

    >>> shape("a", "text", class_="nm-soft", aria_label="A").plain
    ['a', {'class': 'nm-soft', 'aria-label': 'A'}, 'text']
    """
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return Shape(tag, named, inside)


def svg(width: float, height: float, label: str, inside: Iterable[Shape]) -> Shape:
    """A drawing as wide as its container, at most as wide as drawn."""
    attributes: dict[str, str | float] = {
        "viewBox": f"0 0 {width:g} {height:g}",
        "role": "group",
        "aria-label": label,
        "class": "nm-svg",
        "style": f"max-width:{width:g}px;--nm-wide:{width:g}px",
    }
    return Shape("svg", attributes, tuple(inside))


def table(headings: Sequence[str], rows: Iterable[Sequence[Shape | str]]) -> Shape:
    """A plain table; on a narrow page each row is a card."""
    head = shape("tr", *(shape("th", one, scope="col") for one in headings))
    body = (shape("tr", *map(_cell, headings, row)) for row in rows)
    return shape("table", shape("thead", head), shape("tbody", *body), class_="nm-sheet nm-stacked")


def _cell(heading: str, inside: Shape | str) -> Shape:
    is_nothing = inside == NOTHING or (isinstance(inside, Shape) and inside.inside == (NOTHING,))
    kind = "nm-nothing" if is_nothing else ""
    return shape("td", shape("div", inside), data_name=heading, class_=kind)


def shortened(text: str, length: int) -> str:
    """A text that fits, truncated if it is too long.

    >>> shortened("temperature", 8)
    'tempera…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


class Drawing(ui.element, component="drawing.js"):
    """A tree of elements on a page; when pointed at or focused, one shows its `data-note` below."""

    def __init__(self, tree: Shape, note: str = "") -> None:
        super().__init__()
        self._props["tree"] = tree.plain
        self._props["note"] = note

    def show(self, tree: Shape) -> None:
        """Replace the drawing."""
        plain = tree.plain
        if plain != self._props["tree"]:
            self._props["tree"] = plain
            self.update()
