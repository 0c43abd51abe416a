"""/deliveries: where results are delivered."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from nilometer.server.access import Reader
from nilometer.server.error_shape import responses
from nilometer.server.service import Service
from nilometer.server.shapes import Instant, ObjectShape


class DeliveryShape(ObjectShape):
    """One delivery; where it goes to is nobody's business here."""

    name: str
    query: str
    unit: str = Field(examples=["webhook"])
    state: str
    delivered: int = Field(description="rows that have arrived")
    lag: int = Field(description="rows that have not")
    lost: int = Field(description="rows that were gone before they could be delivered")
    last_error: str | None
    next_try: Instant | None
    last_success: Instant | None = Field(description="when rows have arrived last")


def deliveries_router(service: Service) -> APIRouter:
    """Deliveries and their state."""
    router = APIRouter(tags=["deliveries"])

    @router.get("/deliveries", operation_id="listDeliveries", responses=responses())
    async def list_deliveries(_: Reader) -> list[DeliveryShape]:
        """All deliveries of results, and how they are doing."""
        return [DeliveryShape.model_validate(one) for one in await service.deliveries()]

    return router
