"""/tokens: who may use the server."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from nilometer.errors import NotFoundError
from nilometer.kernels.json_values import iso_time
from nilometer.log.clock import now_micros
from nilometer.sensors.catalog.stored_tokens import StoredToken
from nilometer.server.access import Admin
from nilometer.server.error_shape import responses
from nilometer.server.scopes import Scope
from nilometer.server.service import Service
from nilometer.server.shapes import Request
from nilometer.server.tokens import Tokens

_LONGEST_SECONDS = 100 * 366 * 24 * 3600


class TokenRequest(Request):
    """A token to be made."""

    name: str = Field(examples=["dashboard"])
    scope: Scope
    expires_in: int | None = Field(
        default=None, gt=0, le=_LONGEST_SECONDS, description="seconds; null: never"
    )


class TokenShape(BaseModel):
    """What is known of a token."""

    name: str
    scopes: list[str]
    created: str
    expires: str | None


class NewTokenShape(BaseModel):
    """A token, this once."""

    name: str
    token: str = Field(description="it cannot be seen again")


def tokens_router(service: Service, tokens: Tokens) -> APIRouter:
    """Tokens: list, create, revoke."""
    router = APIRouter(prefix="/tokens", tags=["tokens"])

    @router.get("", operation_id="listTokens", responses=responses())
    async def list_tokens(_: Admin) -> list[TokenShape]:
        """All tokens by name; of the tokens themselves only hashes are kept."""
        return [_shape(one) for one in await service.look(tokens.all)]

    @router.post("", operation_id="createToken", status_code=201, responses=responses(400, 409))
    async def create_token(request: TokenRequest, _: Admin) -> NewTokenShape:
        """Make a token."""
        until = None
        if request.expires_in is not None:
            until = now_micros() + request.expires_in * 1_000_000
        made = await service.look(lambda: tokens.create(request.name, request.scope, expires=until))
        return NewTokenShape(name=request.name, token=made)

    @router.delete("/{name}", operation_id="revokeToken", status_code=204, responses=responses(404))
    async def revoke_token(name: Annotated[str, Path(examples=["dashboard"])], _: Admin) -> None:
        """End a token; sessions of the console that it opened end with it."""
        if not await service.look(lambda: tokens.revoke(name)):
            raise NotFoundError(f"there is no token {name}")

    return router


def _shape(token: StoredToken) -> TokenShape:
    expires = None if token.expires is None else iso_time(token.expires)
    return TokenShape(
        name=token.name,
        scopes=sorted(token.scopes),
        created=iso_time(token.created),
        expires=expires,
    )
