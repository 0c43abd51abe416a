"""POST /sensors/try: one sensor is read for a few seconds, and none of it is stored."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from nilometer.database.try_sensor import Row, TrialResult
from nilometer.errors import InputError
from nilometer.model.secrets import shown_text
from nilometer.server.access import Writer
from nilometer.server.error_shape import responses
from nilometer.server.service import Service
from nilometer.server.shapes import Request


class TrialRequest(Request):
    """What to read: what statements would declare, or a sensor that is declared."""

    statement: str | None = Field(
        default=None,
        description="CREATE STREAM …, CREATE SENSOR TABLE … with INSERT INTO …, or INSERT INTO …; "
        "it is not run",
    )
    stream: str | None = Field(default=None, examples=["Farm"])
    sensor: str | None = Field(default=None, description="by its first static column")
    seconds: float = Field(default=5.0, gt=0, le=30)
    rows: int = Field(
        default=5, gt=0, le=100, description="the trial ends after this many readings"
    )


class LetterShape(BaseModel):
    """A reading that could not be stored."""

    reason: str
    payload: str


class TrialShape(BaseModel):
    """What a sensor sent."""

    stream: str
    sensor: str
    readings: list[dict[str, Any]]
    refused: list[LetterShape] = Field(description="what could not be stored, and why")
    errors: int
    last_error: str | None


def trials_router(service: Service) -> APIRouter:
    """Reading a sensor before its stream is created."""
    router = APIRouter(tags=["streams"])

    @router.post("/sensors/try", operation_id="trySensor", responses=responses(400, 404, 408))
    async def try_sensor(request: TrialRequest, caller: Writer) -> TrialShape:
        """Read one sensor for a few seconds, and tell what it sends; nothing is kept.

        A statement needs the scope that it would need to be run: the server contacts the sensor.
        """
        if (request.statement is None) == (request.stream is None):
            raise InputError("name a statement or a stream", hint="one of the two")
        if request.statement is not None:
            tried = await service.streams.try_statements(
                request.statement, caller, request.seconds, request.rows
            )
        else:
            assert request.stream is not None
            tried = await service.streams.try_sensor(
                request.stream, request.sensor, caller, request.seconds, request.rows
            )
        return _shape(tried)

    return router


def plain_row(row: Row) -> dict[str, Any]:
    """A reading with values that JSON can represent."""
    plain: dict[str, Any] = json.loads(json.dumps(row, default=str))
    return plain


def _shape(tried: TrialResult) -> TrialShape:
    refused = [
        LetterShape(reason=shown_text(str(one["reason"])), payload=str(one["payload"])[:1000])
        for one in tried.letters
    ]
    return TrialShape(
        stream=tried.stream,
        sensor=tried.sensor,
        readings=[plain_row(one) for one in tried.readings],
        refused=refused,
        errors=tried.errors,
        last_error=None if tried.last_error is None else shown_text(tried.last_error),
    )
