"""The lease of a catalog: its holder, and until when by the clock of the catalog's server."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, insert, or_, select, text, update

from nilometer.errors import CatalogError
from nilometer.sensors.catalog.schema import lease

_ONLY: Final = 1
_NOW: Final = text("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)")


class Held(NamedTuple):
    """The holder of a catalog, in words, and until when (microseconds since 1970)."""

    told: str
    until: int


def take_lease(connection: Connection, holder: str, told: str, micros: int) -> Held | None:
    """Take the catalog for this long from now; return the holder if it is another one."""
    now = connection.execute(_NOW).scalar_one()
    row = {"holder": holder, "told": told, "until": now + micros}
    free = or_(lease.c.holder == holder, lease.c.until < now)
    taken = connection.execute(update(lease).where(lease.c.id == _ONLY, free).values(row))
    if taken.rowcount:
        return None
    if (found := _held(connection)) is not None:
        return found[1]
    connection.execute(insert(lease).values(id=_ONLY, **row))
    return None


def require_lease(connection: Connection, holder: str) -> None:
    """Refuse to continue a transaction if another holder has taken the catalog over.

    A holder whose lease has expired may continue until then: nobody else has seen anything.
    """
    found = _held(connection)
    if found is not None and found[0] != holder:
        raise CatalogError(
            "another database now holds the catalog", detail=f"{found[1].told} has taken it over"
        )


def _held(connection: Connection) -> tuple[str, Held] | None:
    wanted = select(lease.c.holder, lease.c.told, lease.c.until).where(lease.c.id == _ONLY)
    found = connection.execute(wanted).one_or_none()
    return None if found is None else (found.holder, Held(found.told, found.until))


def release_lease(connection: Connection, holder: str) -> None:
    """Release the catalog."""
    connection.execute(delete(lease).where(lease.c.holder == holder))
