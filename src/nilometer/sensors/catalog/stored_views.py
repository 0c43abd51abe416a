"""Views: named texts of queries."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from nilometer.sensors.catalog.schema import names, views
from nilometer.sensors.catalog.stored_names import require_text


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
    wanted = select(names.c.name, views).join_from(views, names, views.c.owner == names.c.id)
    found = connection.execute(wanted.order_by(names.c.folded))
    return [StoredView(row.name, row.text, row.created) for row in found]
