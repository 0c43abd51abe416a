"""Alerts: their sources, when they fire and clear, and until when they are silenced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, update

from nilometer.sensors.catalog.schema import alerts
from nilometer.sensors.catalog.stored_names import require_text, rows_of_kind


@dataclass(frozen=True)
class StoredAlert:
    """CREATE ALERT name ON source WHEN …"""

    name: str
    source: str
    definition: Mapping[str, Any]
    """Conditions, columns, times and limits."""
    created: int
    silenced_until: int | None = None
    delivery: str | None = None
    """The delivery that was created with it, and is dropped with it."""


def store_alert(connection: Connection, owner: int, alert: StoredAlert) -> None:
    text = json.dumps(dict(alert.definition), ensure_ascii=False)
    require_text(text, "a condition")
    row = {
        "owner": owner,
        "source": alert.source,
        "definition": text,
        "created": alert.created,
        "silenced_until": alert.silenced_until,
        "delivery": alert.delivery,
    }
    connection.execute(insert(alerts).values(row))


def read_alert(connection: Connection, name: str) -> StoredAlert | None:
    return next((_alert(row) for row in rows_of_kind(connection, alerts, name)), None)


def read_alerts(connection: Connection) -> list[StoredAlert]:
    """All alerts, by name."""
    return [_alert(row) for row in rows_of_kind(connection, alerts)]


def change_alert(connection: Connection, owner: int, alert: StoredAlert) -> None:
    """Replace the mutable parts of an alert."""
    changed = update(alerts).where(alerts.c.owner == owner)
    text = json.dumps(dict(alert.definition), ensure_ascii=False)
    connection.execute(
        changed.values(
            definition=text, silenced_until=alert.silenced_until, delivery=alert.delivery
        )
    )


def move_alerts(connection: Connection, source: str, to: str) -> None:
    """Tell alerts the new name of their source."""
    connection.execute(update(alerts).where(alerts.c.source == source).values(source=to))


def _alert(row: Row[Any]) -> StoredAlert:
    return StoredAlert(
        row.name,
        row.source,
        json.loads(row.definition),
        row.created,
        row.silenced_until,
        row.delivery,
    )
