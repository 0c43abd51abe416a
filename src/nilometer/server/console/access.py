"""Who looks at a page, and what they may do: a cookie names a session, a session has scopes."""

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
    """What every page is made over."""

    service: Service
    sessions: Sessions
    tokens: Tokens
    pages: tuple[ConsolePage, ...] = ()
    """What applications add."""

    def visitor(self) -> Visitor:
        """Who looks at the page that is being built."""
        return Visitor(self.sessions, session_of(ui.context.client.request.cookies))


@dataclass(frozen=True)
class Visitor:
    """One session; its scopes are asked anew each time, since it may end at any moment."""

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
        """Whether nothing more may be shown: the session is over, or nobody can tell any more."""
        try:
            return not self.scopes
        except NilometerError:
            return True

    def may(self, needed: Scope) -> bool:
        return allows(self.scopes, needed)

    def refusal(self, needed: Scope) -> str | None:
        """Why something is not allowed; None: it is."""
        return None if self.may(needed) else f"your token lacks the scope {needed}"


def session_of(cookies: Mapping[str, str]) -> str:
    """The session that a browser names; empty: none."""
    return cookies.get(COOKIE, "")
