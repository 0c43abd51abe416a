"""Sessions of the console, in memory: after a restart, users must enter a token again."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Set
from dataclasses import dataclass
from time import monotonic
from typing import Final

from nilometer.server.scopes import Asker, Scope
from nilometer.server.tokens import Tokens, scopes_of

CODE_SECONDS: Final = 300.0
SESSION_SECONDS: Final = 12 * 3600.0
_MOST: Final = 10_000
_BY_LINK: Final = "the console's link"
"""The name by which users of the link that the server printed are counted."""
_NOBODY: Final = Asker("nobody", frozenset())


@dataclass(frozen=True)
class _Session:
    until: float
    scopes: frozenset[Scope]
    """Its scopes; if a token opened it, at most these."""
    hashed: str | None = None
    """The token that opened it, and whose end ends it."""


class Sessions:
    """Sessions of the console, opened by a token or by a link that works once."""

    def __init__(self, tokens: Tokens, ticks: Callable[[], float] = monotonic) -> None:
        self._tokens = tokens
        self._ticks = ticks
        self._lock = threading.Lock()
        self._codes: dict[str, tuple[float, frozenset[Scope]]] = {}
        self._sessions: dict[str, _Session] = {}

    def code_for(self, scopes: Set[Scope]) -> str:
        """A code that opens one session within five minutes: /login?code=…"""
        code = secrets.token_urlsafe(24)
        with self._lock:
            self._codes[code] = (self._ticks() + CODE_SECONDS, frozenset(scopes))
        return code

    def redeem(self, code: str) -> str | None:
        """Open a session with a code, which then becomes invalid; None if it is not valid."""
        with self._lock:
            until, scopes = self._codes.pop(code, (0.0, frozenset[Scope]()))
            if self._ticks() >= until:
                return None
            return self._add(_Session(self._ticks() + SESSION_SECONDS, scopes))

    def open(self, token: str) -> str | None:
        """Open a session with a token; None if it is not valid."""
        stored = self._tokens.find(token)
        if stored is None:
            return None
        with self._lock:
            until = self._ticks() + SESSION_SECONDS
            return self._add(_Session(until, scopes_of(stored), stored.hash))

    def asker(self, session: str | None) -> Asker:
        """The holder of a session, with their current scopes.

        Without scopes if the session has ended, or its token was revoked.
        """
        entry = self._sessions.get(session or "")
        if entry is None or self._ticks() >= entry.until:
            return _NOBODY
        if entry.hashed is None:
            return Asker(_BY_LINK, entry.scopes)
        token = self._tokens.find_hash(entry.hashed)
        return _NOBODY if token is None else Asker(token.name, scopes_of(token))

    def scopes(self, session: str | None) -> frozenset[Scope]:
        """The current scopes of a session."""
        return self.asker(session).scopes

    def close(self, session: str | None) -> None:
        """End a session; one that has already ended stays so."""
        with self._lock:
            self._sessions.pop(session or "", None)

    def _add(self, session: _Session) -> str:
        now = self._ticks()
        self._codes = {code: one for code, one in self._codes.items() if one[0] > now}
        alive = {key: one for key, one in self._sessions.items() if one.until > now}
        while len(alive) >= _MOST:
            del alive[next(iter(alive))]  # the oldest: dicts keep the order of insertion
        session_id = secrets.token_urlsafe(32)
        self._sessions = {**alive, session_id: session}
        return session_id
