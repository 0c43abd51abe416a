"""Dashboards: their titles and panels, found by a name in any case."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from nilometer.errors import ChangedError, LimitError, NotFoundError
from nilometer.model.dashboard import Dashboard, Panel
from nilometer.model.names import nearest
from nilometer.sensors.catalog.renamed_panels import renamed_panel
from nilometer.sensors.catalog.schema import dashboards

MOST: Final = 1000
"""The maximum number of dashboards in a database."""


def store_dashboard(
    connection: Connection, dashboard: Dashboard, now: int, expected: int | None
) -> Dashboard:
    """Store a dashboard, replacing one of the same name.

    `expected` is the version that it was based on, 0 for a new one; None: any version.
    """
    before = read_dashboard(connection, dashboard.name)
    version = 0 if before is None else before.version
    if expected is not None and expected != version:
        raise _changed(dashboard.name, expected, before)
    panels = json.dumps([one.to_json() for one in dashboard.panels])
    row: dict[str, Any] = {"title": dashboard.title, "panels": panels}
    row |= {"version": version + 1, "changed": now}
    if before is None:
        _require_room(connection)
        row |= {"folded": dashboard.name.lower(), "name": dashboard.name, "created": now}
        connection.execute(insert(dashboards).values(row))
        return Dashboard(dashboard.name, dashboard.title, dashboard.panels, 1, now, now)
    here = dashboards.c.folded == dashboard.name.lower()
    connection.execute(update(dashboards).where(here).values(row))
    return Dashboard(
        before.name, dashboard.title, dashboard.panels, version + 1, before.created, now
    )


def read_dashboard(connection: Connection, name: str) -> Dashboard | None:
    statement = select(dashboards).where(dashboards.c.folded == name.lower())
    row = connection.execute(statement).one_or_none()
    return None if row is None else _dashboard(row)


def require_dashboard(connection: Connection, name: str) -> Dashboard:
    """The dashboard with this name; raises if there is none."""
    dashboard = read_dashboard(connection, name)
    if dashboard is None:
        names = [one.name for one in read_dashboards(connection)]
        raise NotFoundError(f"there is no dashboard {name}", hint=nearest(name, names))
    return dashboard


def read_dashboards(connection: Connection) -> list[Dashboard]:
    """All dashboards, by name."""
    rows = connection.execute(select(dashboards).order_by(dashboards.c.folded))
    return [_dashboard(row) for row in rows]


def remove_dashboard(connection: Connection, name: str) -> None:
    require_dashboard(connection, name)
    connection.execute(delete(dashboards).where(dashboards.c.folded == name.lower()))


def move_panels(connection: Connection, name: str, to: str, now: int) -> None:
    """Tell panels the new name of what they show."""
    for one in read_dashboards(connection):
        panels = tuple(renamed_panel(panel, name, to) for panel in one.panels)
        if panels != one.panels:
            store_dashboard(connection, replace(one, panels=panels), now, None)


def _require_room(connection: Connection) -> None:
    if connection.execute(select(func.count()).select_from(dashboards)).scalar_one() >= MOST:
        raise LimitError(f"there are {MOST} dashboards already", hint="delete one of them")


def _changed(name: str, expected: int, before: Dashboard | None) -> ChangedError:
    if not expected:
        return ChangedError(f"dashboard {name} already exists", hint="choose another name")
    if before is None:
        return ChangedError(f"the dashboard {name} was deleted meanwhile")
    return ChangedError(
        f"somebody has changed the dashboard {name} meanwhile",
        detail=f"it has version {before.version}, not {expected}",
        hint="reload it, and repeat your change",
    )


def _dashboard(row: Row[Any]) -> Dashboard:
    panels = tuple(Panel.from_json(one) for one in json.loads(row.panels))
    return Dashboard(row.name, row.title, panels, row.version, row.created, row.changed)
