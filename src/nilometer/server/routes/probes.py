"""/health and /ready: for monitoring the server; they need no token."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from nilometer.server.service import Service
from nilometer.server.tokens import Tokens
from nilometer.version import VERSION


class AliveShape(BaseModel):
    """The server answers."""

    status: str = Field(examples=["alive"])
    version: str


class ReadyShape(BaseModel):
    """Whether the server can do its work, and what it waits for."""

    ready: bool
    missing: list[str] = Field(examples=[["queries"]])


def probes_router(service: Service, tokens: Tokens) -> APIRouter:
    """Whether the server is alive, and whether it is ready."""
    router = APIRouter(tags=["operation"])

    @router.get("/health", operation_id="getAlive")
    async def get_alive() -> AliveShape:
        """The server answers; nothing else is looked at."""
        return AliveShape(status="alive", version=VERSION)

    @router.get(
        "/ready",
        operation_id="getReady",
        responses={503: {"model": ReadyShape, "description": "Something is missing."}},
    )
    async def get_ready(response: Response) -> ReadyShape:
        """Whether Spark lives, the catalog answers, and queries have been started again."""
        missing = await service.missing()
        if tokens.is_lost:
            missing.append("catalog")
        if missing:
            response.status_code = 503
        return ReadyShape(ready=not missing, missing=missing)

    return router
