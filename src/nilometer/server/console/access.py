"""Identifies the visitor of a page: a cookie names a session, a session has scopes."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.server.console.pages import ConsolePage
from nilometer.server.scopes import Asker, Scope, allows
from nilometer.server.service import Service
from nilometer.server.sessions import Sessions
from nilometer.server.tokens import Tokens

COOKIE: Final = "nilometer_session"


@dataclass(frozen=True)
class Console:
    """Everything that pages are built from."""

    service: Service
    sessions: Sessions
    tokens: Tokens
    pages: tuple[ConsolePage, ...] = ()
    """Pages that applications add."""

    def visitor(self) -> Visitor:
        """The visitor of the page that is being built."""
        return Visitor(self.sessions, session_of(ui.context.client.request.cookies))


@dataclass(frozen=True)
class Visitor:
    """One session; its scopes are read each time, since it may end at any moment."""

    sessions: Sessions
    session: str

    @property
    def asker(self) -> Asker:
        return self.sessions.asker(self.session)

    @property
    def scopes(self) -> Set[Scope]:
        return self.asker.scopes

    @property
    def has_ended(self) -> bool:
        """Whether nothing more may be shown: the session has ended, or cannot be checked."""
        try:
            return not self.scopes
        except NilometerError:
            return True

    def may(self, needed: Scope) -> bool:
        return allows(self.scopes, needed)

    def refusal(self, needed: Scope) -> str | None:
        """Why something is not allowed; None: it is allowed."""
        return None if self.may(needed) else f"your token lacks the scope {needed}"


def session_of(cookies: Mapping[str, str]) -> str:
    """The session in a browser's cookies; empty: none."""
    return cookies.get(COOKIE, "")
