"""Tokens of the server: only a hash of each, its scope, and its expiry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from nilometer.errors import NameTakenError
from nilometer.sensors.catalog.schema import tokens
from nilometer.sensors.catalog.stored_names import require_text


@dataclass(frozen=True)
class StoredToken:
    """One token; instants are microseconds since 1970."""

    name: str
    hash: str
    """SHA-256 in hexadecimal digits: the token itself is stored nowhere."""
    scopes: frozenset[str]
    created: int
    expires: int | None = None
    """When it expires; None: never."""

    def is_valid(self, now: int) -> bool:
        return self.expires is None or now < self.expires


def store_token(connection: Connection, token: StoredToken) -> None:
    """Store a token, unless its name exists."""
    require_text(token.name, "a name")
    statement = select(tokens.c.name).where(tokens.c.name == token.name)
    if connection.execute(statement).one_or_none() is not None:
        raise NameTakenError(
            f"token {token.name} already exists", hint="choose another name, or revoke it first"
        )
    row = {
        "name": token.name,
        "hash": token.hash,
        "scopes": " ".join(sorted(token.scopes)),
        "created": token.created,
        "expires": token.expires,
    }
    connection.execute(insert(tokens).values(row))


def read_tokens(connection: Connection) -> list[StoredToken]:
    """All tokens, by name."""
    return [_token(row) for row in connection.execute(select(tokens).order_by(tokens.c.name))]


def remove_token(connection: Connection, name: str) -> bool:
    """Delete a token; False if there is none."""
    return connection.execute(delete(tokens).where(tokens.c.name == name)).rowcount > 0


def _token(row: Row[Any]) -> StoredToken:
    return StoredToken(row.name, row.hash, frozenset(row.scopes.split()), row.created, row.expires)
