"""A page's choices are kept in its address, so that they survive a reload."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from nicegui import ui

_MOST_PAGES = 1_000_000


def address_with(path: str, chosen: Mapping[str, str]) -> str:
    """An address with these choices; empty ones are omitted.

    >>> address_with("/console/queries", {"words": "a b", "state": "", "page": "2"})
    '/console/queries?words=a+b&page=2'
    """
    filled = {name: value for name, value in chosen.items() if value}
    return f"{path}?{urlencode(filled)}" if filled else path


def keep_in_address(path: str, chosen: Mapping[str, str]) -> None:
    """Make the browser show this address for the open page."""
    ui.navigate.history.replace(address_with(path, chosen))


def known_or(value: str, known: Collection[str], otherwise: str) -> str:
    """A choice from an address, if it is known."""
    return value if value in known else otherwise


def page_number(text: str) -> int:
    """The page number in an address, from 0.

    >>> page_number("3"), page_number(""), page_number("-1"), page_number("x")
    (2, 0, 0, 0)
    """
    is_number = text.isascii() and text.isdigit() and len(text) < 8
    return min(_MOST_PAGES, max(0, int(text) - 1)) if is_number else 0
