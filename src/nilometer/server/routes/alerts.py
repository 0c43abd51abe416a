"""/alerts: alerts, which of them fire, and their history."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from nilometer.alerts.kept import Notification
from nilometer.alerts.status import AlertStatus, GroupStatus
from nilometer.kernels.json_values import iso_time
from nilometer.model.time import format_duration
from nilometer.server.access import Reader
from nilometer.server.error_shape import responses
from nilometer.server.service import Service

AlertName = Annotated[str, Path(description="The name of an alert.", examples=["hot"])]
_MOST_GROUPS: Final = 1000
_MOST_LINES: Final = 1000
_STATES: Final = "ok, pending, firing or no data"


class AlertGroupShape(BaseModel):
    """One group of an alert: the rows with the same values of its PER columns."""

    key: dict[str, Any] | None = Field(description="the PER columns and their values")
    state: str = Field(description=_STATES)
    since: str
    value: dict[str, Any] | None = Field(
        description="of the last row, the columns that the conditions name"
    )


class AlertShape(BaseModel):
    """One alert; its state is the worst of its groups."""

    name: str
    on: str = Field(description="the stream, sensor table or query that it looks at")
    when: str | None = Field(
        description="when it fires; null: on silence only", examples=["v > 50"]
    )
    hold: str | None = Field(description="FOR: how long the condition must hold")
    clear_when: str | None
    per: list[str]
    no_data: str | None = Field(description="NO DATA FOR: after how long a silence")
    state: str = Field(description=_STATES, examples=["firing"])
    since: str
    silenced_until: str | None
    delivery: str | None = Field(description="the delivery that was made with it")
    error: str | None
    group_count: int
    groups: list[AlertGroupShape] = Field(description="the worst ones, at most 1000")


class NotificationShape(BaseModel):
    """One line of an alert's history."""

    time: str
    state: str
    previous: str
    key: dict[str, Any] | None
    value: dict[str, Any] | None
    message: str
    silenced: bool = Field(description="whether it was not delivered")


def alerts_router(service: Service) -> APIRouter:
    """Alerts, their state, and their history."""
    router = APIRouter(prefix="/alerts", tags=["alerts"])

    @router.get("", operation_id="listAlerts", responses=responses())
    async def list_alerts(_: Reader) -> list[AlertShape]:
        """All alerts, and how they are doing."""
        return [_shape(one) for one in await service.alerts()]

    @router.get("/{name}", operation_id="getAlert", responses=responses(404))
    async def get_alert(name: AlertName, _: Reader) -> AlertShape:
        """One alert, and how its groups are doing."""
        return _shape(await service.alert(name))

    @router.get("/{name}/history", operation_id="getAlertHistory", responses=responses(404))
    async def get_history(
        name: AlertName,
        _: Reader,
        limit: Annotated[int, Query(ge=1, le=_MOST_LINES)] = 100,
    ) -> list[NotificationShape]:
        """The last notifications of an alert, newest first."""
        return [_notification(one) for one in await service.alert_history(name, limit)]

    return router


def _shape(status: AlertStatus) -> AlertShape:
    one = status.definition
    return AlertShape(
        name=one.name,
        on=one.source,
        when=one.condition,
        hold=_length(one.rule.hold or None),
        clear_when=one.clear,
        per=list(one.per),
        no_data=_length(one.rule.no_data),
        state=status.state.value,
        since=iso_time(status.since),
        silenced_until=None if status.silenced_until is None else iso_time(status.silenced_until),
        delivery=status.delivery,
        error=status.error,
        group_count=len(status.groups),
        groups=[_group(group) for group in status.groups[:_MOST_GROUPS]],
    )


def _group(one: GroupStatus) -> AlertGroupShape:
    return AlertGroupShape(
        key=_object(one.key),
        state=one.state.value,
        since=iso_time(one.since),
        value=_object(one.value),
    )


def _notification(one: Notification) -> NotificationShape:
    return NotificationShape(
        time=iso_time(one.time),
        state=one.state,
        previous=one.previous,
        key=_object(one.key),
        value=_object(one.value),
        message=one.message,
        silenced=one.silenced,
    )


def _object(text: str | None) -> dict[str, Any] | None:
    value: dict[str, Any] | None = None if text is None else json.loads(text)
    return value


def _length(micros: int | None) -> str | None:
    return None if micros is None else format_duration(micros)
