"""One shape for all errors of requests."""

from __future__ import annotations

import logging
from typing import Any, Final
from uuid import uuid4

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from nilometer import errors
from nilometer.errors import NilometerError, SqlError
from nilometer.model.secrets import shown_text

log = logging.getLogger("nilometer.server")

RETRY_SECONDS: Final = 2


class PositionShape(BaseModel):
    """Where in a statement: characters start … end-1; line and column are counted from 1."""

    line: int
    column: int
    start: int
    end: int


class ErrorDetail(BaseModel):
    """What is wrong, what was found, what to do, and where."""

    message: str = Field(examples=["there is no stream or table Camra1"])
    detail: str | None = None
    hint: str | None = Field(default=None, examples=["did you mean Camera1?"])
    kind: str = Field(examples=["UnknownNameError"])
    position: PositionShape | None = None


class ErrorShape(BaseModel):
    """How every refusal looks."""

    error: ErrorDetail


_STATUSES: Final[tuple[tuple[type[NilometerError], int], ...]] = (
    (errors.UnauthorizedError, 401),
    (errors.ForbiddenError, 403),
    (errors.NotFoundError, 404),
    (errors.TimeLimitError, 408),
    (errors.NameTakenError, 409),
    (errors.ChangedError, 409),
    (errors.LogGapError, 410),
    (errors.ResultsGoneError, 410),
    (errors.TooLargeError, 413),
    (errors.LimitError, 429),
    (errors.ClosedError, 503),
    (errors.CatalogError, 503),
    (errors.SessionError, 503),
    (errors.InternalError, 500),
)
"""The first matching class decides; anything else is the request's fault: 400."""

_MEANINGS: Final = {
    400: "The statement or a value in the request is wrong.",
    401: "There is no valid token.",
    403: "The token does not allow this.",
    404: "There is nothing of this name.",
    408: "The statement took too long.",
    409: "The name is taken, or what is there has changed.",
    410: "These rows are no longer kept.",
    413: "The request is too long.",
    422: "The request does not have the documented form.",
    429: "A limit is reached; try again after `Retry-After` seconds.",
    503: "The server is starting, stopping, or cannot reach what it needs.",
}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route documents its errors."""
    every = sorted({401, 403, 413, 422, 429, 503, *statuses})
    return {one: {"model": ErrorShape, "description": _MEANINGS[one]} for one in every}


def status_of(error: NilometerError) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 400)


def shape_of(error: NilometerError) -> dict[str, Any]:
    """An error as JSON."""
    place = error.place if isinstance(error, SqlError) else None
    position = None
    if place is not None:
        position = {
            "line": place.line,
            "column": place.column,
            "start": place.start,
            "end": place.end,
        }
    body = {
        "message": shown_text(error.message),
        "detail": None if error.detail is None else shown_text(error.detail),
        "hint": None if error.hint is None else shown_text(error.hint),
        "kind": type(error).__name__,
        "position": position,
    }
    return {"error": body}


def response_for(error: NilometerError) -> JSONResponse:
    """The response to a refused request."""
    status = status_of(error)
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="nilometer"'
    if status in (429, 503):
        headers["Retry-After"] = str(RETRY_SECONDS)
    return JSONResponse(shape_of(error), status, headers)


def unforeseen(error: BaseException) -> JSONResponse:
    """The response to an unexpected error: an id under which the log has the details."""
    number = uuid4().hex[:12]
    log.error("error %s: unexpected", number, exc_info=error)
    internal = errors.InternalError(
        "this should not have happened", detail=f"error {number}", hint="the server's log has more"
    )
    return response_for(internal)


def add_error_shape(app: FastAPI) -> None:
    """Give all errors of an application this shape."""
    app.add_exception_handler(NilometerError, _handle_refusal)
    app.add_exception_handler(HTTPException, _framework_refused)
    app.add_exception_handler(RequestValidationError, _malformed)


async def _handle_refusal(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, NilometerError)
    return response_for(error)


async def _framework_refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    match error.status_code:
        case 404:
            refusal: NilometerError = errors.NotFoundError(
                "there is nothing here", hint="GET /openapi.json lists what there is"
            )
        case 405:
            refusal = errors.InputError(f"{request.method} is not possible here")
        case 413:
            refusal = errors.TooLargeError("the request is too long")
        case _:
            refusal = errors.InputError(str(error.detail).lower())
    return JSONResponse(shape_of(refusal), error.status_code, dict(error.headers or {}))


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    refusal = errors.InputError(
        "the request cannot be read",
        detail=f"{where}: {first['msg']}",
        hint="GET /openapi.json describes what it should look like",
    )
    return JSONResponse(shape_of(refusal), 422)
