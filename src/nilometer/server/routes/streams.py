"""/streams, /sensors and /dead-letters: what sensors send."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from nilometer.server.access import Reader
from nilometer.server.error_shape import responses
from nilometer.server.routes.statements import shape_of_executed
from nilometer.server.service import Service
from nilometer.server.shapes import (
    ExecutedShape,
    SensorShape,
    StreamShape,
)

StreamName = Annotated[
    str, Path(description="The name of a stream or sensor table.", examples=["Readings"])
]


def streams_router(service: Service) -> APIRouter:
    """Streams, their sensors, and readings that could not be stored."""
    router = APIRouter(tags=["streams"])

    @router.get("/streams", operation_id="listStreams", responses=responses())
    async def list_streams(_: Reader) -> list[StreamShape]:
        """All streams and sensor tables, and how they are doing."""
        return [StreamShape.model_validate(one) for one in await service.streams.all()]

    @router.get("/streams/{name}", operation_id="describeStream", responses=responses(404))
    async def describe_stream(name: StreamName, _: Reader) -> ExecutedShape:
        """The columns of a stream or sensor table, and how it was declared."""
        return shape_of_executed(await service.streams.describe(name))

    @router.get("/storage", operation_id="listStorage", responses=responses())
    async def list_storage(_: Reader) -> ExecutedShape:
        """What every log takes, how fast it grows, and when the disk is full (the last row)."""
        return shape_of_executed(await service.storage())

    @router.get("/sensors", operation_id="listSensors", responses=responses(404))
    async def list_sensors(
        _: Reader,
        stream: Annotated[str | None, Query(description="Only those of this stream.")] = None,
    ) -> list[SensorShape]:
        """The sensors that some query needs at present; SHOW SENSORS lists the others, too."""
        return [SensorShape.model_validate(one) for one in await service.streams.sensors(stream)]

    @router.get("/dead-letters/{name}", operation_id="listDeadLetters", responses=responses(404))
    async def list_dead_letters(name: StreamName, _: Reader) -> ExecutedShape:
        """What the sensors of a stream sent that could not be stored, and why.

        Of a query: the rows of which it could not compute something.
        """
        done = await service.dead_letters(name)
        return await service.look(lambda: shape_of_executed(done))

    return router
