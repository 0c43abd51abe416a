"""/queries/{name}/results and /answer: rows of a query, stored, as they arrive, or added up."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Header, Query, Response
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from nilometer.errors import ClosedError, InputError, NilometerError
from nilometer.kernels.json_values import columns_of, rows_of
from nilometer.server.access import Caller, Reader
from nilometer.server.error_shape import responses
from nilometer.server.results.chunk import Chunk, CurrentAnswer, Page
from nilometer.server.results.events import StatusOf, tell
from nilometer.server.results.following_response import FollowingResponse
from nilometer.server.results.formats import (
    END_OF_ARROW,
    MEDIA_TYPES,
    Encoder,
    Format,
    encoder_of,
    moment,
    whole_arrow_stream,
)
from nilometer.server.results.offset import Offset
from nilometer.server.results.phases import Phases
from nilometer.server.results.query_results import QueryResults
from nilometer.server.routes.queries import QueryName
from nilometer.server.scopes import Scope
from nilometer.server.service import Service
from nilometer.server.shapes import ColumnShape

NEXT: Final = "Nilometer-Next"
"""The header with the offset after a page that is not JSON."""
_PAGE: Final = 1000

Start = Literal["start", "now", "latest"]


class PageShape(BaseModel):
    """Rows that follow an offset, in the order in which they came."""

    columns: list[ColumnShape]
    rows: list[dict[str, Any]]
    next: str = Field(description="the offset after these rows")
    watermark: str | None = Field(description="no row that follows has an earlier time")
    at_end: bool = Field(description="whether there is no more at present")


class AnswerShape(BaseModel):
    """The answer of a changelog query at an instant."""

    columns: list[ColumnShape]
    rows: list[dict[str, Any]]
    instant: str | None = Field(description="for which instant it is the answer")
    offset: str = Field(description="following from here gives all changes after the instant")
    is_cut: bool = Field(description="whether there were more rows")


@dataclass(frozen=True)
class Wanted:
    """The parameters of a request for results."""

    offset: Offset | None
    start: Start | None
    limit: int
    form: Format
    follow: bool


def results_router(service: Service) -> APIRouter:
    """Results of named queries."""
    router = APIRouter(prefix="/queries/{name}", tags=["results"])
    phases = Phases(service.queries.status)

    @asynccontextmanager
    async def opened(name: str) -> AsyncIterator[QueryResults]:
        async with service.queries.known(name) as known:
            service.followers.seen(known)
            yield await service.look(partial(service.queries.results, known))

    @router.get(
        "/results",
        operation_id="getResults",
        response_model=PageShape,
        responses={200: _described(PageShape), **responses(400, 404, 410)},
    )
    async def get_results(
        name: QueryName, caller: Reader, wanted: Annotated[Wanted, Depends(_wanted)]
    ) -> Response:
        """Rows of a query: a page of what is stored, or with follow=true all rows as they arrive.

        An offset marks the place after the rows received so far; send it to continue there. In
        server-sent events, `id` is the offset, so that browsers resume by themselves.
        """
        async with opened(name) as results:
            offset = None if wanted.offset is None else wanted.offset.require(results.log_id)
            max_rows = min(wanted.limit, service.settings.max_rows)
            if not wanted.follow:
                page = await _page(results, offset, wanted.start or "start", max_rows)
                return await results.work(lambda: _page_response(page, wanted.form))
            if offset is None:
                offset = await _begin(results, wanted.start or "now", max_rows)
        with ExitStack() as taken:
            taken.enter_context(service.followers.one(results.name, caller.name))
            status = partial(phases.of, results.name)
            pieces = _pieces(
                results, offset, wanted.form, status, partial(why_ending, service, caller)
            )
            release = taken.pop_all().close
            return FollowingResponse(pieces, MEDIA_TYPES[wanted.form], release)

    @router.get(
        "/answer",
        operation_id="getAnswer",
        response_model=AnswerShape,
        responses={200: _described(AnswerShape), **responses(400, 404, 410)},
    )
    async def get_answer(
        name: QueryName,
        _: Reader,
        limit: Annotated[int, Query(ge=1, le=1 << 31)] = _PAGE,
        form: Annotated[Literal["json", "arrow"] | None, Query(alias="format")] = None,
        accept: Annotated[str | None, Header(include_in_schema=False)] = None,
    ) -> Response:
        """The current answer of a changelog query, and the offset from which to follow it."""
        async with opened(name) as results:
            answer = await results.answer(min(limit, service.settings.max_rows))
            chosen = Format(form) if form else _accepted(accept) or Format.JSON
            return await results.work(lambda: _answer_response(answer, chosen))

    return router


def _wanted(
    offset: Annotated[str | None, Query(max_length=200, description="continue after it")] = None,
    start: Annotated[
        Start | None,
        Query(
            alias="from",
            description="where to begin without an offset: at the oldest row that "
            "is kept, now, or so that `limit` rows are shown of what is there",
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1 << 31, description="rows of a page")] = _PAGE,
    form: Annotated[Format | None, Query(alias="format")] = None,
    follow: Annotated[bool | None, Query(description="keep sending rows as they arrive")] = None,
    last_event_id: Annotated[str | None, Header(max_length=200)] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Wanted:
    """Parse the parameters of a request; a browser that reconnects sends its last offset."""
    chosen = form or _accepted(accept)
    follows = chosen is Format.SSE if follow is None else follow
    chosen = chosen or (Format.SSE if follows else Format.JSON)
    if follows and chosen is Format.JSON:
        raise InputError(
            "a single JSON document cannot be followed", hint="follow as sse, jsonl or arrow"
        )
    if not follows and chosen is Format.SSE:
        raise InputError("a page cannot be server-sent events", hint="take json, jsonl or arrow")
    place = last_event_id or offset
    return Wanted(Offset.read(place) if place else None, start, limit, chosen, follows)


def _accepted(accept: str | None) -> Format | None:
    """The first known format in the header Accept; None if there is none."""
    kinds = [one.partition(";")[0].strip().lower() for one in (accept or "").split(",")]
    ours = {media: form for form, media in MEDIA_TYPES.items()}
    return next((ours[kind] for kind in kinds if kind in ours), None)


async def _page(results: QueryResults, offset: Offset | None, start: Start, max_rows: int) -> Page:
    if offset is None and start == "latest":
        return await results.latest(max_rows)
    if offset is None and start == "now":
        offset = (await results.latest(0)).next
    return await results.page(offset, max_rows)


async def _begin(results: QueryResults, start: Start, max_rows: int) -> Offset | None:
    """Where to start following; None: now."""
    match start:
        case "now":
            return None
        case "latest":
            return (await results.latest(max_rows)).start
        case "start":
            return await results.oldest()


async def _pieces(
    results: QueryResults,
    offset: Offset | None,
    form: Format,
    status: StatusOf,
    ending: Callable[[], NilometerError | None],
) -> AsyncGenerator[bytes, None]:
    """The pieces sent to a follower."""
    encoder = encoder_of(form, results.schema)
    yield encoder.begin(results.schema)
    telling = tell(results, offset, status, max_rows=encoder.max_rows, ending=ending)
    try:
        async for event in telling:
            if isinstance(event, Chunk):
                yield await results.encoded(form, event, encoder.chunk)
            else:
                yield encoder.event(event)
    finally:
        await telling.aclose()


def why_ending(service: Service, caller: Caller) -> NilometerError | None:
    """Why a follower must be disconnected: the server is stopping, or the token has ended."""
    if service.is_closing:
        return ClosedError("the server is stopping", hint="resume at the last offset")
    return caller.refusal(Scope.READ)


def _page_response(page: Page, form: Format) -> Response:
    headers = {NEXT: str(page.next), "Cache-Control": "no-store"}
    if form is Format.JSON:
        shape = {
            "columns": columns_of(page.rows.schema),
            "rows": rows_of(page.rows),
            "next": str(page.next),
            "watermark": moment(page.watermark),
            "at_end": page.at_end,
        }
        return JSONResponse(shape, headers=headers)
    encoder: Encoder = encoder_of(form, page.rows.schema)
    end = END_OF_ARROW if form is Format.ARROW else b""
    content = encoder.begin(page.rows.schema) + encoder.chunk(page) + end
    return Response(content, headers=headers, media_type=MEDIA_TYPES[form])


def _answer_response(answer: CurrentAnswer, form: Format) -> Response:
    instant, offset = moment(answer.instant), str(answer.offset)
    headers = {NEXT: offset, "Cache-Control": "no-store"}
    if form is Format.ARROW:
        metadata = {"offset": offset, "is_cut": str(answer.is_cut).lower()}
        if answer.instant is not None:
            metadata["instant"] = str(answer.instant)
        content = whole_arrow_stream(answer.rows, metadata)
        return Response(content, headers=headers, media_type=MEDIA_TYPES[form])
    shape = {
        "columns": columns_of(answer.rows.schema),
        "rows": rows_of(answer.rows),
        "instant": instant,
        "offset": offset,
        "is_cut": answer.is_cut,
    }
    return JSONResponse(shape, headers=headers)


def _described(model: type[BaseModel]) -> dict[str, Any]:
    others = [one for form, one in MEDIA_TYPES.items() if form is not Format.JSON]
    text = {"schema": {"type": "string"}}
    return {"model": model, "content": dict.fromkeys(others, text)}
