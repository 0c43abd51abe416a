"""/queries/{name}/download and /streams/{name}/download: rows of a time range, as a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Response

from nilometer.errors import DurationError, InputError, NilometerError
from nilometer.model.time import parse_duration, read_instant
from nilometer.past.downsample import Thinning
from nilometer.past.question import Bounds
from nilometer.server.access import Reader
from nilometer.server.error_shape import responses
from nilometer.server.results.download_formats import FILE_TYPES, FileFormat
from nilometer.server.results.following_response import FollowingResponse
from nilometer.server.routes.queries import QueryName
from nilometer.server.routes.results import why_ending
from nilometer.server.routes.streams import StreamName
from nilometer.server.scopes import Asker
from nilometer.server.service import Service

Ending = Callable[[], NilometerError | None]
"""Returns, between two pieces, why the rest will not be sent; None: it will."""
_INSTANT: Final = "an instant, in UTC unless it names a zone: 2026-01-31T12:00:00Z"
_FILES: Final[dict[str, Any]] = {
    "description": "a file",
    "content": {
        one.partition(";")[0]: {"schema": {"type": "string"}} for one in FILE_TYPES.values()
    },
}


@dataclass(frozen=True)
class Wanted:
    """The parameters of a request for a file."""

    form: FileFormat
    bounds: Bounds
    thinning: Thinning


def downloads_router(service: Service) -> APIRouter:
    """Files with rows of queries and streams."""
    router = APIRouter(tags=["results"])

    @router.get(
        "/queries/{name}/download",
        operation_id="downloadResults",
        response_class=Response,
        responses={200: _FILES, **responses(400, 404, 408)},
    )
    async def download_results(
        name: QueryName,
        caller: Reader,
        wanted: Annotated[Wanted, Depends(read_wanted)],
        answer: Annotated[
            bool, Query(description="for a changing answer: the answer, not its changes")
        ] = False,
    ) -> Response:
        """The results of a query as a file: all of them, a range of time, or fewer points."""
        ending = partial(why_ending, service, caller)
        return await query_file(service, name, caller, wanted, ending, answer=answer)

    @router.get(
        "/streams/{name}/download",
        operation_id="downloadStream",
        response_class=Response,
        responses={200: _FILES, **responses(400, 404, 408)},
    )
    async def download_stream(
        name: StreamName, caller: Reader, wanted: Annotated[Wanted, Depends(read_wanted)]
    ) -> Response:
        """What is stored of a stream or sensor table as a file."""
        return await stream_file(
            service, name, caller, wanted, partial(why_ending, service, caller)
        )

    return router


async def query_file(
    service: Service,
    name: str,
    asker: Asker,
    wanted: Wanted,
    ending: Ending,
    *,
    answer: bool = False,
) -> Response:
    """The results of a query as a file."""
    async with service.queries.known(name) as known:
        pieces, release = await service.download(
            known,
            asker,
            wanted.form,
            wanted.bounds,
            wanted.thinning,
            ending=ending,
            answer=answer,
        )
    return _file(known, wanted.form, pieces, release)


async def stream_file(
    service: Service, name: str, asker: Asker, wanted: Wanted, ending: Ending
) -> Response:
    """The stored rows of a stream as a file."""
    async with service.streams.known(name) as known:
        pieces, release = await service.download(
            known, asker, wanted.form, wanted.bounds, wanted.thinning, ending=ending
        )
    return _file(known, wanted.form, pieces, release)


def read_wanted(
    form: Annotated[FileFormat, Query(alias="format")] = FileFormat.CSV,
    start: Annotated[str | None, Query(max_length=100, description=_INSTANT)] = None,
    end: Annotated[str | None, Query(max_length=100, description="the same; inclusive")] = None,
    columns: Annotated[
        list[str], Query(max_length=100, description="only these; with bucket or points: values")
    ] = [],  # noqa: B006  FastAPI copies it
    per: Annotated[
        list[str], Query(max_length=20, description="columns that distinguish series")
    ] = [],  # noqa: B006
    bucket: Annotated[
        str | None,
        Query(max_length=50, description="minimum, maximum and mean of each minute, …"),
    ] = None,
    points: Annotated[
        int | None,
        Query(
            ge=3,
            le=100_000,
            description="how many rows of each series, chosen so that a chart looks the same",
        ),
    ] = None,
) -> Wanted:
    """Parse the parameters of a request."""
    bounds = (_instant(start), _instant(end))
    return Wanted(form, bounds, Thinning(tuple(columns), tuple(per), _length(bucket), points))


def _instant(text: str | None) -> int | None:
    return None if not text else read_instant(text)


def _length(text: str | None) -> int | None:
    if not text:
        return None
    try:
        length = parse_duration(text)
    except DurationError as error:
        raise InputError(error.message, detail=error.detail, hint="write bucket=1 minute") from None
    if length <= 0:
        raise InputError("a bucket must be greater than zero", detail=f"got {text}")
    return length


def _file(
    name: str,
    form: FileFormat,
    pieces: AsyncGenerator[bytes, None],
    release: Callable[[], None],
) -> Response:
    response = FollowingResponse(pieces, FILE_TYPES[form], release)
    disposition = f"attachment; filename*=UTF-8''{file_name(name, form)}"
    response.headers["Content-Disposition"] = disposition
    return response


def file_name(name: str, form: FileFormat) -> str:
    """The name of a file, percent-encoded.

    >>> file_name("mean/ä", FileFormat.CSV)
    'mean_%C3%A4.csv'
    """
    return quote(name.replace("/", "_").replace("\\", "_"), safe="") + f".{form}"
