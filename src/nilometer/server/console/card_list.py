"""A list of cards, one for each thing that has a name, and a button to make another."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from nicegui import ui

from nilometer.server.console.access import Console
from nilometer.server.console.drawing import Drawing, shape
from nilometer.server.console.glossary import TERMS, term
from nilometer.server.scopes import Scope


class _Card(Protocol):
    card: ui.element


Card = TypeVar("Card", bound=_Card)


@dataclass(frozen=True)
class ListWords:
    """What a list of things says of them."""

    thing: str
    """One of them, as the glossary has it."""
    title: str
    empty: str
    scope: Scope
    """Which scope a token needs to make one."""


class CardList(Generic[Card]):
    """The cards by name, in the current place."""

    def __init__(self, console: Console, words: ListWords, ask: Callable[[], object]) -> None:
        self.cards: dict[str, Card] = {}
        may = console.visitor().may(words.scope)
        with ui.element("div").classes("nm-row"):
            Drawing(shape("p", term(words.thing, words.title), class_="nm-soft nm-summary"))
            ui.element("div").classes("nm-grow")
            if may:
                new = ui.button(f"New {words.thing}", icon="add", color=None, on_click=ask)
                new.classes("nm-first").props("unelevated no-caps")
        self._list = ui.element("ul").classes("nm-queries")
        with ui.element("div").classes("nm-card nm-empty") as self._empty:
            ui.label(words.empty).classes("nm-title")
            ui.label(TERMS[words.thing])
            if not may:
                needed = f"To make one needs a token with the scope {words.scope}."
                ui.label(needed).classes("nm-small")
        self._empty.set_visibility(False)

    def keep(self, names: Collection[str], make: Callable[[str], Card]) -> None:
        """Have a card for each of these names, and no others."""
        self._empty.set_visibility(not names)
        for name in set(self.cards) - set(names):
            self.cards.pop(name).card.delete()
        for name in names:
            if name not in self.cards:
                with self._list:
                    self.cards[name] = make(name)


def card_button(word: str, icon: str, name: str, do: Callable[[], object]) -> ui.button:
    """A button on the card of something that has a name."""
    button = ui.button(word, icon=icon, color=None, on_click=do)
    button.props("no-caps flat dense").classes("nm-second nm-action")
    button._props["aria-label"] = f"{word} {name}"
    return button
