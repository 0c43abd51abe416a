"""/dashboards: what the console shows, as JSON."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from nilometer.errors import InputError
from nilometer.kernels.json_values import iso_time
from nilometer.model.dashboard import COLUMNS, MOST_PANELS, Combine, Dashboard, PanelKind
from nilometer.server.access import Reader, Writer
from nilometer.server.error_shape import responses
from nilometer.server.service import Service
from nilometer.server.shapes import Request

Name = Annotated[str, Path(examples=["plant"])]


class PanelShape(Request):
    """One panel; it has one of query, stream and select."""

    title: str = Field(min_length=1, max_length=200)
    kind: PanelKind
    query: str | None = Field(default=None, description="a query, of which results are shown")
    stream: str | None = Field(default=None, description="a stream or sensor table")
    select: str | None = Field(
        default=None,
        description="a SELECT over what is stored; :start and :end are the range of the page",
    )
    x: str | None = Field(default=None, description="null: the time of the rows")
    y: list[str] = Field(default_factory=list, max_length=20, description="columns of numbers")
    series: str | None = Field(default=None, description="a line for each value of this column")
    value: str | None = Field(default=None, description="for a map: the column that colours places")
    combine: Combine | None = Field(default=None, description="null: all")
    unit: str | None = Field(default=None, max_length=40, examples=["°C"])
    width: int = Field(default=COLUMNS // 2, ge=1, le=COLUMNS, description="of the grid's columns")


class DashboardRequest(Request):
    """A dashboard as it is to be."""

    name: str | None = Field(default=None, description="if given, that of the address")
    title: str = Field(min_length=1, max_length=200)
    panels: list[PanelShape] = Field(default_factory=list, max_length=MOST_PANELS)
    version: int | None = Field(
        default=None,
        ge=0,
        description="that of the dashboard to be replaced; 0: none exists yet; null: any",
    )


class DashboardShape(BaseModel):
    """A dashboard as it is."""

    name: str
    title: str
    panels: list[PanelShape]
    version: int
    created: str
    changed: str


class DashboardEntry(BaseModel):
    """A dashboard in the list of all."""

    name: str
    title: str
    panels: int
    version: int
    changed: str


def dashboards_router(service: Service) -> APIRouter:
    """Dashboards: list, get, put, delete."""
    router = APIRouter(prefix="/dashboards", tags=["dashboards"])

    @router.get("", operation_id="listDashboards", responses=responses())
    async def list_dashboards(_: Reader) -> list[DashboardEntry]:
        """All dashboards by name."""
        return [
            DashboardEntry(
                name=one.name,
                title=one.title,
                panels=len(one.panels),
                version=one.version,
                changed=iso_time(one.changed),
            )
            for one in await service.dashboards.all()
        ]

    @router.get("/{name}", operation_id="getDashboard", responses=responses(404))
    async def get_dashboard(name: Name, _: Reader) -> DashboardShape:
        """One dashboard; name, title and panels are what PUT takes, here or elsewhere."""
        return _shape(await service.dashboards.find(name))

    @router.put("/{name}", operation_id="putDashboard", responses=responses(400, 409))
    async def put_dashboard(
        name: Name, request: DashboardRequest, caller: Writer
    ) -> DashboardShape:
        """Keep a dashboard, in the place of what has its name."""
        if request.name is not None and request.name.lower() != name.lower():
            raise InputError(
                "the name in the body differs from that in the URL",
                detail=f"got {request.name!r:.100}",
                hint="leave it out",
            )
        dashboard = _read(name, request)
        return _shape(await service.dashboards.put(dashboard, caller, expected=request.version))

    @router.delete(
        "/{name}", operation_id="deleteDashboard", status_code=204, responses=responses(404)
    )
    async def delete_dashboard(name: Name, caller: Writer) -> None:
        """Forget a dashboard; what it shows stays."""
        await service.dashboards.remove(name, caller)

    return router


def _read(name: str, request: DashboardRequest) -> Dashboard:
    panels = [one.model_dump(mode="json") for one in request.panels]
    return Dashboard.from_json({"title": request.title, "panels": panels}, name)


def _shape(dashboard: Dashboard) -> DashboardShape:
    content: dict[str, Any] = dashboard.to_json()
    return DashboardShape(
        **content,
        version=dashboard.version,
        created=iso_time(dashboard.created),
        changed=iso_time(dashboard.changed),
    )
