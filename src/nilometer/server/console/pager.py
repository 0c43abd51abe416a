"""Shows a long list one page at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from nicegui import ui

from nilometer.server.console.figures import count_text

ON_A_PAGE: Final = 25

T = TypeVar("T")


class Pager:
    """Says which page is shown, and turns pages; in the current place."""

    def __init__(self, one: str, many: str, turned: Callable[[], object], *, page: int = 0) -> None:
        """What is listed, what to do when another page is wanted, and which page is shown first."""
        self._one = one
        self._many = many
        self._turned = turned
        self._page = page
        with ui.element("div").classes("nm-bar nm-pages") as self.bar:
            self._label = ui.label().classes("nm-small nm-soft").props("role=status")
            ui.element("div").classes("nm-grow")
            self._back = self._turner("chevron_left", "Page before", -1)
            self._on = self._turner("chevron_right", "Next page", 1)

    @property
    def page_in_address(self) -> str:
        """The page shown, counted from 1; empty: the first."""
        return str(self._page + 1) if self._page else ""

    def begin(self) -> None:
        """Go to the first page, because the list has changed."""
        self._page = 0

    def page_of(self, listed: Sequence[T], total: int) -> Sequence[T]:
        """The part of a list that is on the page; `total` counts what exists in all."""
        last = max(0, (len(listed) - 1) // ON_A_PAGE)
        self._page = min(max(0, self._page), last)
        first = self._page * ON_A_PAGE
        shown = listed[first : first + ON_A_PAGE]
        part = f"{count_text(first + 1)} to {count_text(first + len(shown))} of " if last else ""
        of = "" if len(listed) == total else f", {count_text(total)} in all"
        many = f"1 {self._one}" if len(listed) == 1 else f"{count_text(len(listed))} {self._many}"
        self._label.set_text(f"{part}{many}{of}")
        for one in (self._back, self._on):
            one.set_visibility(last > 0)
        self._back.set_enabled(self._page > 0)
        self._on.set_enabled(self._page < last)
        return shown

    def _turner(self, icon: str, label: str, by: int) -> ui.button:
        button = ui.button(icon=icon, on_click=lambda: self._turn(by), color=None)
        return button.props(f'flat round dense aria-label="{label}"')

    def _turn(self, by: int) -> object:
        self._page += by
        return self._turned()
