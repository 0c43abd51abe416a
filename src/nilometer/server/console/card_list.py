"""A list of cards, one for each named thing, and a button to create another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.server.console.access import Console
from nilometer.server.console.confirm import confirmed
from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.server.console.form_dialog import tell_done
from nilometer.server.console.glossary import TERMS, term
from nilometer.server.console.query_actions import tell_problem
from nilometer.server.scopes import Scope


class NamedCard:
    """The card of one named thing, in the current place; statements change it."""

    def __init__(self, console: Console, name: str, changed: Callable[[], Awaitable[None]]) -> None:
        self.console = console
        self.visitor = console.visitor()
        self.name = name
        self.card = ui.element("li").classes("nm-card nm-query")
        self._changed = changed

    def draw_head(self, head: Shape, buttons: Callable[[], None]) -> Drawing:
        """Draw the head of the card, beside its buttons."""
        with ui.element("div").classes("nm-query-head"):
            drawn = Drawing(head)
            with ui.element("div").classes("nm-row nm-query-buttons"):
                buttons()
        return drawn

    def button(self, word: str, icon: str, do: Callable[[], object]) -> ui.button:
        """A button for one of its actions."""
        button = ui.button(word, icon=icon, color=None, on_click=do)
        button.props("no-caps flat dense").classes("nm-second nm-action")
        button._props["aria-label"] = f"{word} {self.name}"
        return button

    async def run(self, text: str) -> None:
        """Run a statement, and show its result or its error."""
        try:
            done = await self.console.service.execute(text, self.visitor.asker)
        except NilometerError as error:
            tell_problem(error)
            return
        await self.done(done.message or "done")

    async def delete(self, text: str, lost: str) -> None:
        """Run the statement that drops it, after a confirmation that says what is lost."""
        if await confirmed(f"Delete {self.name}?", lost, "Delete it", text):
            await self.run(text)

    async def done(self, message: str) -> None:
        """Report what was done, and show it."""
        tell_done(message)
        await self._changed()


Card = TypeVar("Card", bound=NamedCard)


@dataclass(frozen=True)
class ListWords:
    """The texts of a list."""

    thing: str
    """One of the things, by its word in the glossary."""
    title: str
    empty: str
    scope: Scope
    """The scope needed to create one."""


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
                needed = f"Creating one requires a token with the scope {words.scope}."
                ui.label(needed).classes("nm-small")
        self._empty.set_visibility(False)

    def keep(self, names: Collection[str], make: Callable[[str], Card]) -> None:
        """Keep a card for each of these names, and no others."""
        self._empty.set_visibility(not names)
        for name in set(self.cards) - set(names):
            self.cards.pop(name).card.delete()
        for name in names:
            if name not in self.cards:
                with self._list:
                    self.cards[name] = make(name)
