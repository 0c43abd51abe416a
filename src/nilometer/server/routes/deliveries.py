"""/deliveries: where results are delivered."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from nilometer.deliveries.status import DeliveryStatus
from nilometer.kernels.json_values import iso_time
from nilometer.server.access import Reader
from nilometer.server.error_shape import responses
from nilometer.server.service import Service


class DeliveryShape(BaseModel):
    """One delivery; where it goes to is nobody's business here."""

    name: str
    query: str
    unit: str = Field(examples=["webhook"])
    state: str
    delivered: int = Field(description="rows that have arrived")
    lag: int = Field(description="rows that have not")
    lost: int = Field(description="rows that were gone before they could be delivered")
    last_error: str | None
    next_try: str | None
    last_success: str | None = Field(description="when rows have arrived last")


def deliveries_router(service: Service) -> APIRouter:
    """Deliveries and their state."""
    router = APIRouter(tags=["deliveries"])

    @router.get("/deliveries", operation_id="listDeliveries", responses=responses())
    async def list_deliveries(_: Reader) -> list[DeliveryShape]:
        """All deliveries of results, and how they are doing."""
        return [_shape(one) for one in await service.deliveries()]

    return router


def _shape(status: DeliveryStatus) -> DeliveryShape:
    return DeliveryShape(
        name=status.name,
        query=status.query,
        unit=status.unit,
        state=status.state.value,
        delivered=status.delivered,
        lag=status.lag,
        lost=status.lost,
        last_error=status.last_error,
        next_try=None if status.next_try is None else iso_time(status.next_try),
        last_success=None if status.last_success is None else iso_time(status.last_success),
    )
