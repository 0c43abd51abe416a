"""Views: named texts of queries."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, insert, update

from nilometer.sensors.catalog.schema import views
from nilometer.sensors.catalog.stored_names import require_text, rows_of_kind


@dataclass(frozen=True)
class StoredView:
    """CREATE VIEW name AS text."""

    name: str
    text: str
    created: int


def store_view(connection: Connection, owner: int, text: str, created: int) -> None:
    require_text(text, "a view")
    connection.execute(insert(views).values(owner=owner, text=text, created=created))


def replace_view(connection: Connection, owner: int, text: str) -> None:
    require_text(text, "a view")
    connection.execute(update(views).where(views.c.owner == owner).values(text=text))


def read_views(connection: Connection) -> list[StoredView]:
    """All views, by name."""
    rows = rows_of_kind(connection, views)
    return [StoredView(row.name, row.text, row.created) for row in rows]
