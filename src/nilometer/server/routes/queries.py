"""/queries: named queries and their state."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Response

from nilometer.database.query_status import QueryStatus
from nilometer.server.access import Reader, Writer
from nilometer.server.error_shape import responses
from nilometer.server.service import Service
from nilometer.server.shapes import (
    QueryRequest,
    QueryShape,
    SampleShape,
    shape_of_query,
)

QueryName = Annotated[str, Path(description="The name of a query.", examples=["mean"])]


def queries_router(service: Service) -> APIRouter:
    """Named queries: list, create, get, start, stop, drop."""
    router = APIRouter(prefix="/queries", tags=["queries"])

    def shape(status: QueryStatus) -> QueryShape:
        return shape_of_query(status, service.followers.count(status.name))

    @router.get("", operation_id="listQueries", responses=responses())
    async def list_queries(_: Reader) -> list[QueryShape]:
        """All named queries, and how they are doing."""
        return [shape(one) for one in await service.queries.all()]

    @router.post(
        "", operation_id="createQuery", status_code=201, responses=responses(400, 403, 409)
    )
    async def create_query(request: QueryRequest, caller: Writer, response: Response) -> QueryShape:
        """Start a SELECT over streams and keep it; its results can then be followed."""
        made = await service.queries.create(
            request.statement,
            caller,
            name=request.name,
            temporary=request.temporary,
            limits=None if request.limits is None else request.limits.read(),
        )
        response.headers["Location"] = f"/queries/{quote(made.name)}"
        return shape(made)

    @router.get("/{name}", operation_id="getQuery", responses=responses(404))
    async def get_query(name: QueryName, _: Reader) -> QueryShape:
        """One query, and how it is doing."""
        return shape(await service.queries.status(name))

    @router.delete(
        "/{name}", operation_id="dropQuery", status_code=204, responses=responses(400, 404)
    )
    async def drop_query(name: QueryName, caller: Writer) -> None:
        """Forget a query, and its results."""
        await service.queries.drop(name, caller)

    @router.post("/{name}/start", operation_id="startQuery", responses=responses(400, 404))
    async def start_query(name: QueryName, caller: Writer) -> QueryShape:
        """Resume a query where it stopped; one that runs is not affected."""
        await service.queries.start(name, caller)
        return shape(await service.queries.status(name))

    @router.post("/{name}/stop", operation_id="stopQuery", responses=responses(400, 404))
    async def stop_query(name: QueryName, caller: Writer) -> QueryShape:
        """Stop a query until it is started again; its results stay."""
        await service.queries.stop(name, caller)
        return shape(await service.queries.status(name))

    @router.get("/{name}/health", operation_id="getQueryHealth", responses=responses(404))
    async def get_health(name: QueryName, _: Reader) -> list[SampleShape]:
        """How a query has been doing for the last ten minutes: a sample per micro-batch."""
        return [SampleShape.model_validate(one) for one in await service.queries.health(name)]

    return router
