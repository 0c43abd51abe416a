"""The lease of a catalog: its holder, and until when by the clock of the catalog's server."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, insert, or_, select, text, update

from nilometer.errors import CatalogError
from nilometer.sensors.catalog.schema import lease

_ONLY: Final = 1
_NOW: Final = text("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)")


class LeaseHolder(NamedTuple):
    """The holder of a catalog, in words, and until when (microseconds since 1970)."""

    description: str
    until: int


def take_lease(
    connection: Connection, holder: str, description: str, micros: int
) -> LeaseHolder | None:
    """Take the catalog for this long from now; return the holder if it is another one."""
    now = connection.execute(_NOW).scalar_one()
    row = {"holder": holder, "told": description, "until": now + micros}
    free = or_(lease.c.holder == holder, lease.c.until < now)
    updated = connection.execute(update(lease).where(lease.c.id == _ONLY, free).values(row))
    if updated.rowcount:
        return None
    if (held := _holder(connection)) is not None:
        return held[1]
    connection.execute(insert(lease).values(id=_ONLY, **row))
    return None


def require_lease(connection: Connection, holder: str) -> None:
    """Refuse to continue a transaction if another holder has taken the catalog over.

    A holder whose lease has expired may continue until then: nobody else has seen anything.
    """
    held = _holder(connection)
    if held is not None and held[0] != holder:
        raise CatalogError(
            "another database now holds the catalog",
            detail=f"{held[1].description} has taken it over",
        )


def _holder(connection: Connection) -> tuple[str, LeaseHolder] | None:
    statement = select(lease.c.holder, lease.c.told, lease.c.until).where(lease.c.id == _ONLY)
    row = connection.execute(statement).one_or_none()
    return None if row is None else (row.holder, LeaseHolder(row.told, row.until))


def release_lease(connection: Connection, holder: str) -> None:
    """Release the catalog."""
    connection.execute(delete(lease).where(lease.c.holder == holder))
