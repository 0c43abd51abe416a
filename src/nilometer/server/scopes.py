"""What a token allows, and what a statement needs."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nilometer.errors import ForbiddenError
from nilometer.sql.ddl.nodes import (
    AlterAlert,
    AlterQuery,
    CreateAlert,
    CreateQuery,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    Drop,
    ExplainQuery,
    Insert,
    ObjectKind,
    Rename,
    Show,
    StartQuery,
    StopQuery,
    Update,
)
from nilometer.sql.statements import AnyStatement, Statement


class Scope(StrEnum):
    """READ looks; WRITE runs queries and changes rows; ADMIN affects things outside the server."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


EVERYTHING: frozenset[Scope] = frozenset(Scope)


@dataclass(frozen=True)
class Asker:
    """Someone who asks for something: the name by which they are counted, and their scopes."""

    name: str
    scopes: frozenset[Scope]

    def may(self, needed: Scope) -> bool:
        return allows(self.scopes, needed)


SERVER: Final = Asker("the server itself", EVERYTHING)


def allows(held: Set[Scope], needed: Scope) -> bool:
    """Whether these scopes suffice: write includes read, and admin includes all."""
    order = list(Scope)
    return any(order.index(one) >= order.index(needed) for one in held)


def require_scope(held: Set[Scope], needed: Scope, detail: str | None = None) -> None:
    """Refuse what these scopes do not allow."""
    if not allows(held, needed):
        raise ForbiddenError(
            f"this needs the scope {needed}",
            detail=detail,
            hint="use a token that has it: nilometer tokens create",
        )


def scope_needed(statement: AnyStatement) -> Scope:
    """The scope needed to run a statement; an unknown statement needs the highest."""
    match statement:
        case Statement() | Show() | Describe() | ExplainQuery():
            return Scope.READ
        case CreateQuery() | CreateView() | CreateTable() | Insert() | Update() | Delete():
            return Scope.WRITE
        case StartQuery() | StopQuery() | AlterQuery() | AlterAlert() | CreateAlert(deliver=None):
            return Scope.WRITE
        case Rename(kind=ObjectKind.QUERY | ObjectKind.VIEW | ObjectKind.TABLE | ObjectKind.ALERT):
            return Scope.WRITE
        case Drop(kind=ObjectKind.QUERY | ObjectKind.VIEW | ObjectKind.TABLE | ObjectKind.ALERT):
            return Scope.WRITE
        case _:
            return Scope.ADMIN
