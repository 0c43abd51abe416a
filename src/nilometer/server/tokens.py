"""Bearer tokens: created once, stored as hashes, looked up without waiting for the catalog."""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable
from hashlib import sha256
from time import monotonic
from typing import Final

from nilometer.errors import ClosedError, InputError
from nilometer.log.clock import now_micros
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.stored_tokens import StoredToken
from nilometer.server.scopes import Scope

PREFIX: Final = "nm_"
FIRST: Final = "first"
"""The name of the token that a new database starts with."""
FRESH_SECONDS: Final = 2.0
"""How long the catalog's answer is reused: revoking takes effect within this time."""
_OLDEST_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.2
"""An unknown token makes the server read the catalog again, but not more often than this."""


def new_secret() -> str:
    """A token that cannot be guessed: nm_ and 43 characters."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    """The stored hash of a token; it has 256 random bits, so no slow hash is needed."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Tokens:
    """The tokens in a catalog, with a copy that is at most seconds old."""

    def __init__(
        self,
        catalog: SensorCatalog,
        clock: Callable[[], int] = now_micros,
        ticks: Callable[[], float] = monotonic,
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._ticks = ticks
        self._lock = threading.Lock()
        self._known: tuple[StoredToken, ...] = ()
        self._seen: float | None = None

    def create(self, name: str, scope: Scope, *, expires: int | None = None) -> str:
        """Create a token and return it: this is the only time that it can be seen."""
        secret = new_secret()
        self._catalog.create_token(self._stored(_usable(name), secret, scope, expires))
        self.refresh()
        return secret

    def create_first(self) -> str | None:
        """Create a token of an administrator if there is no token at all; None otherwise."""
        secret = new_secret()
        made = self._catalog.create_first_token(self._stored(FIRST, secret, Scope.ADMIN, None))
        self.refresh()
        return secret if made else None

    def revoke(self, name: str) -> bool:
        """Revoke a token; False if there is none with this name."""
        was_known = self._catalog.revoke_token(name)
        self.refresh()
        return was_known

    def all(self) -> list[StoredToken]:
        """Every token, by name, including expired ones."""
        return self._catalog.tokens()

    def refresh(self) -> None:
        """Read the catalog; this may take as long as its database does."""
        with self._lock:
            began = self._ticks()
            self._known = tuple(self._catalog.tokens())
            self._seen = began

    @property
    def is_fresh(self) -> bool:
        """Whether the copy is so new that it need not be read again."""
        return self._age() < FRESH_SECONDS

    @property
    def is_lost(self) -> bool:
        """Whether the catalog has not answered for a long time."""
        return self._age() > _OLDEST_SECONDS

    @property
    def may_look_again(self) -> bool:
        """Whether the catalog may be read again for an unknown token."""
        return self._age() > _PAUSE_SECONDS

    def find(self, secret: str) -> StoredToken | None:
        """The token with this secret, if it is valid; answered from memory."""
        return self.find_hash(hash_of(secret))

    def find_hash(self, hashed: str) -> StoredToken | None:
        """As `find`, by the stored hash. All are compared, however early one matches."""
        if self.is_lost:
            raise ClosedError("tokens cannot be checked", detail="the catalog does not answer")
        fitting = [one for one in self._known if hmac.compare_digest(one.hash, hashed)]
        now = self._clock()
        return next((one for one in fitting if one.is_valid(now)), None)

    def _age(self) -> float:
        return float("inf") if self._seen is None else self._ticks() - self._seen

    def _stored(self, name: str, secret: str, scope: Scope, expires: int | None) -> StoredToken:
        now = self._clock()
        if expires is not None and expires <= now:
            raise InputError("a token cannot expire before it is made", hint="such as 30d from now")
        return StoredToken(name, hash_of(secret), frozenset({scope.value}), now, expires)


def scopes_of(token: StoredToken) -> frozenset[Scope]:
    """The scopes of a token; scopes unknown to this version allow nothing."""
    return frozenset(one for one in Scope if one.value in token.scopes)


def _usable(name: str) -> str:
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise InputError(
            "a token needs a name of at most 100 printable characters", detail=f"got {name!r}"
        )
    if "/" in name or name.strip() in (".", ".."):
        raise InputError(
            "a token's name cannot contain a slash, or only dots",
            detail=f"got {name!r}",
            hint="it is part of the URL that revokes it: /tokens/name",
        )
    return name.strip()
