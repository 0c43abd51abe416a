"""Default panels for a query or a stream."""

from __future__ import annotations

import pyarrow.types as pat

from nilometer.database.past import StoredSource
from nilometer.errors import NilometerError
from nilometer.log.layout import DIFF, TIME
from nilometer.model.dashboard import Panel, PanelKind, Source, SourceKind
from nilometer.server.dashboards.panel_source import Column, PanelSource
from nilometer.server.service import Service

MOST = 6


def suggested_panel(stored: StoredSource, kind: SourceKind) -> Panel:
    """Measured values by time, one line for each thing; without numbers, the rows."""
    title, source = stored.name, Source(kind, stored.name)
    opened = PanelSource(stored.name, stored.schema, stored.time, has_changes=stored.changes)
    columns = [one for one in opened.columns if one.name not in (TIME, DIFF, stored.time)]
    series = _series(columns)
    numbers = [one for one in columns if one.is_number and not pat.is_boolean(one.type)]
    measured = [one for one in numbers if not pat.is_integer(one.type)]
    counted = [one for one in numbers if not _is_key(one) and one.name != series]
    y = next(iter(measured or counted), None)
    if y is None or (stored.time is None and not stored.changes):
        return Panel(title, PanelKind.TABLE, source)
    return Panel(title, PanelKind.LINE, source, y=(y.name,), series=series)


async def suggested_panels(service: Service) -> list[Panel]:
    """Panels for the existing queries, then for the streams."""
    sources = [(one.name, SourceKind.QUERY) for one in await service.queries.all()]
    sources += [(one.name, SourceKind.STREAM) for one in await service.streams.all()]
    panels: list[Panel] = []
    for name, kind in sources:
        if len(panels) == MOST:
            break
        try:
            panels.append(suggested_panel(await service.stored_source(name), kind))
        except NilometerError:  # it has no rows yet, or was dropped
            continue
    return panels


def _series(columns: list[Column]) -> str | None:
    texts = [one.name for one in columns if pat.is_string(one.type)]
    keys = [one.name for one in columns if _is_key(one)]
    return next(iter([*texts, *keys]), None)


def _is_key(column: Column) -> bool:
    return bool(pat.is_integer(column.type)) and column.name.lower().endswith(("id", "key"))
