"""Identifies the caller of a request, and checks what they may do."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import HTTPConnection

from nilometer.errors import NilometerError, UnauthorizedError
from nilometer.model.events import event
from nilometer.sensors.catalog.stored_tokens import StoredToken
from nilometer.server.fair_threads import works_for
from nilometer.server.scopes import Asker, Scope, require_scope
from nilometer.server.service import Service
from nilometer.server.tokens import Tokens, scopes_of

_LOG: Final = logging.getLogger("nilometer.access")
_SHOWN: Final = 100
_bearer = HTTPBearer(
    auto_error=False, description="A token that `nilometer tokens create` has made."
)


@dataclass(frozen=True)
class Caller(Asker):
    """The holder of a token."""

    find_again: Callable[[], StoredToken | None]
    """The current state of the token; None if it has ended."""

    def refusal(self, needed: Scope) -> NilometerError | None:
        """Why the caller may not continue what was allowed; None: they may.

        What is known about tokens is seconds old: this is for callers that stay longer.
        """
        try:
            token = self.find_again()
            if token is None:
                return _not_valid()
            require_scope(scopes_of(token), needed)
        except NilometerError as error:
            return error
        return None

    def require(self, needed: Scope) -> None:
        """Refuse what the token does not allow."""
        held = ", ".join(sorted(self.scopes)) or "none"
        require_scope(self.scopes, needed, f"the token {self.name} has {held}")


async def find_caller(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Caller:
    """The holder of the token in a request."""
    if bearer is None:
        tell_refused(request, "a request came without a token")
        raise UnauthorizedError(
            "a token is required", hint="send the header Authorization: Bearer nm_…"
        )
    token = await _find(request, bearer.credentials)
    if token is None:
        tell_refused(request, "a request came with a token that is not valid")
        raise _not_valid()
    tokens: Tokens = request.app.state.tokens
    works_for(token.name)
    return Caller(token.name, scopes_of(token), partial(tokens.find_hash, token.hash))


def tell_refused(request: HTTPConnection, what: str) -> None:
    """Log that a request was refused: its origin, never its token."""
    client, path = client_of(request), request.url.path[:_SHOWN]
    extra = event("access_refused", client, client=client, path=path)
    _LOG.warning("%s, from %s, for %s", what, client, path, extra=extra)


def client_of(request: HTTPConnection) -> str:
    """The address that a request came from."""
    return "nowhere" if request.client is None else request.client.host


def _not_valid() -> UnauthorizedError:
    return UnauthorizedError(
        "the token is not valid", hint="it may have expired: nilometer tokens list"
    )


async def _find(request: Request, secret: str) -> StoredToken | None:
    tokens: Tokens = request.app.state.tokens
    service: Service = request.app.state.service
    if not tokens.is_fresh:
        await service.look(tokens.refresh)
    token = tokens.find(secret)
    if token is None and tokens.may_look_again:
        await service.look(tokens.refresh)
        token = tokens.find(secret)
    return token


async def _reader(caller: Annotated[Caller, Depends(find_caller)]) -> Caller:
    caller.require(Scope.READ)
    return caller


async def _writer(caller: Annotated[Caller, Depends(find_caller)]) -> Caller:
    caller.require(Scope.WRITE)
    return caller


async def _admin(caller: Annotated[Caller, Depends(find_caller)]) -> Caller:
    caller.require(Scope.ADMIN)
    return caller


Reader = Annotated[Caller, Depends(_reader)]
"""A route argument that requires the scope read; likewise for the others."""
Writer = Annotated[Caller, Depends(_writer)]
Admin = Annotated[Caller, Depends(_admin)]
