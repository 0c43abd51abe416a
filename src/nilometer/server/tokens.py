"""Bearer tokens: made once, kept as hashes, found again without waiting for the catalog."""

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
"""The name of the token that a new database begins with."""
FRESH_SECONDS: Final = 2.0
"""For so long what the catalog said is taken as it is: revoking takes effect within this time."""
_OLDEST_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.2
"""Unknown tokens make the server look again, but not more often than this."""


def new_secret() -> str:
    """A token that nobody can guess: nm_ and 43 characters."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    """What is kept of a token; it has 256 random bits, so no slow hash is needed."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Tokens:
    """The tokens in a catalog, of which a copy is kept that is at most seconds old."""

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
        """Make a token and return it: this is the only time that it can be seen."""
        secret = new_secret()
        self._catalog.create_token(self._stored(_usable(name), secret, scope, expires))
        self.refresh()
        return secret

    def create_first(self) -> str | None:
        """Make the token of an administrator if there is no token at all; None otherwise."""
        secret = new_secret()
        made = self._catalog.create_first_token(self._stored(FIRST, secret, Scope.ADMIN, None))
        self.refresh()
        return secret if made else None

    def revoke(self, name: str) -> bool:
        """End a token; False if there is none of this name."""
        found = self._catalog.revoke_token(name)
        self.refresh()
        return found

    def all(self) -> list[StoredToken]:
        """Every token, by name, also those that have expired."""
        return self._catalog.tokens()

    def refresh(self) -> None:
        """Look at the catalog; this may take as long as its database does."""
        with self._lock:
            began = self._ticks()
            self._known = tuple(self._catalog.tokens())
            self._seen = began

    @property
    def is_fresh(self) -> bool:
        """Whether what is known is so new that it need not be looked at again."""
        return self._age() < FRESH_SECONDS

    @property
    def is_lost(self) -> bool:
        """Whether the catalog has not answered for long."""
        return self._age() > _OLDEST_SECONDS

    @property
    def may_look_again(self) -> bool:
        """Whether another look for an unknown token is not too soon."""
        return self._age() > _PAUSE_SECONDS

    def find(self, secret: str) -> StoredToken | None:
        """The token that this is, if it is valid; answered from memory."""
        return self.find_hash(hash_of(secret))

    def find_hash(self, hashed: str) -> StoredToken | None:
        """As `find`, by what is kept of a token. Every one is compared, however early one fits."""
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
    """What a token allows; scopes that this version does not know allow nothing."""
    return frozenset(one for one in Scope if one.value in token.scopes)


def _usable(name: str) -> str:
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise InputError(
            "a token needs a name of at most 100 printable characters", detail=f"got {name!r}"
        )
    if "/" in name or name.strip() in (".", ".."):
        raise InputError(
            "a token's name cannot have a slash, or be dots alone",
            detail=f"got {name!r}",
            hint="it stands in an address where it is revoked: /tokens/name",
        )
    return name.strip()
