"""The lease of a catalog: who has it, and until when by the clock of the catalog's own server."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, delete, insert, or_, select, text, update

from nilometer.sensors.catalog.schema import lease

_ONLY: Final = 1
_NOW: Final = text("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)")


def take_lease(connection: Connection, holder: str, told: str, micros: int) -> str | None:
    """Have the catalog for so long from now; who has it, if that is another one."""
    now = connection.execute(_NOW).scalar_one()
    row = {"holder": holder, "told": told, "until": now + micros}
    free = or_(lease.c.holder == holder, lease.c.until < now)
    taken = connection.execute(update(lease).where(lease.c.id == _ONLY, free).values(row))
    if taken.rowcount:
        return None
    found = connection.execute(select(lease.c.told).where(lease.c.id == _ONLY)).scalar_one_or_none()
    if found is not None:
        return str(found)
    connection.execute(insert(lease).values(id=_ONLY, **row))
    return None


def release_lease(connection: Connection, holder: str) -> None:
    """Let others have the catalog."""
    connection.execute(delete(lease).where(lease.c.holder == holder))
