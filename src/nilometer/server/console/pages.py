"""Pages that applications add to the console; the server knows only what is defined here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nilometer.errors import InputError, NilometerError
from nilometer.model.installed import installed, load_installed

if TYPE_CHECKING:
    from nilometer.server.console.page_results import PageResults

ENTRY_POINTS: Final = "nilometer.console_pages"
_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")
_TAKEN: Final = {
    "queries": "Queries",
    "dashboards": "Dashboards",
    "sensors": "Sensors",
    "streams": "Streams",
    "alerts": "Alerts",
    "deliveries": "Deliveries",
    "health": "Health",
    "tokens": "Tokens",
    "glossary": "Words",
    "": "Query",
}
"""The console's own pages, by name."""


@dataclass(frozen=True)
class ConsolePage:
    """A page at `/console/name`, for everyone with read access; navigation shows its title.

    >>> ConsolePage("Belt", "belt", "luggage", lambda results: None).address
    '/console/belt'
    """

    title: str
    name: str
    icon: str
    """Its name among the Material icons."""
    build: Callable[[PageResults], object]
    """Draws the page with NiceGUI in the current place; gets the results it may read."""
    style: Path | None = None
    """A style sheet of its own, in addition to the console's."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(
                "the name of a page of the console is part of its URL",
                detail=f"got {self.name!r}",
                hint="use lower-case letters, digits and hyphens",
            )

    @property
    def address(self) -> str:
        return f"/console/{self.name}"


def required_page(key: str, named: object) -> ConsolePage:
    """What was named as a page; an error if it is anything else."""
    if not isinstance(named, ConsolePage):
        raise InputError(
            f"{key} is not a page of the console",
            detail=f"got {type(named).__name__}",
            hint="name a ConsolePage",
        )
    return named


def all_pages(
    configured: Iterable[ConsolePage], say: Callable[[NilometerError], None]
) -> tuple[ConsolePage, ...]:
    """The pages of the configuration and of installed packages; `say` gets the problems.

    A package that fails loses only its own page.
    """
    pages = list(configured)
    require_distinct(pages)
    for entry in installed(ENTRY_POINTS).values():
        try:
            page = required_page(entry.value, load_installed(entry, "page of the console"))
            if page not in pages:  # it may also be named in the configuration
                require_distinct([*pages, page])
                pages.append(page)
        except NilometerError as error:
            say(error)
    return tuple(pages)


def require_distinct(pages: Sequence[ConsolePage]) -> None:
    """Refuse a page whose address or title is already taken."""
    names: dict[str, Any] = dict(_TAKEN)
    for page in pages:
        if page.name in names or page.title in names.values():
            raise InputError(
                f"the console has a page {page.title} at {page.address} already",
                detail=_taken_names(names),
                hint="give it another name and another title",
            )
        names[page.name] = page.title


def _taken_names(names: Mapping[str, str]) -> str:
    listed = ", ".join(f"{title} (/console/{name})" for name, title in names.items() if name)
    return f"there are {listed}"
