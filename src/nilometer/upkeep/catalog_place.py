"""Where the catalog of a database is, if not in its folder: the folder remembers it.

Otherwise a database opened once without its --catalog would start with an empty one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import make_url

from nilometer.errors import InputError
from nilometer.log.sealed import seal, unseal
from nilometer.upkeep.places import CATALOG_FILE, PLACE_OF_CATALOG
from nilometer.upkeep.whole_file import write_whole

_SECRETS: Final = ("password", "sslpassword")


def catalog_elsewhere(folder: Path) -> str | None:
    """The catalog of a database folder, without its password; None: it is in the folder."""
    path = folder / PLACE_OF_CATALOG
    try:
        return unseal(path.read_bytes()).decode()
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError(
            f"{path} is damaged",
            detail=str(error),
            hint="it says where the catalog is: if you know that, delete this file and pass it "
            "with --catalog",
        ) from None


def settle_catalog(folder: Path, catalog: str | None) -> str | Path:
    """Where a catalog is, given an argument; a catalog elsewhere must not be left out."""
    if catalog is not None:
        return catalog
    known = catalog_elsewhere(folder)
    if known is not None:
        raise InputError(
            f"the catalog of the database {folder} is elsewhere",
            detail=f"it is in {known}",
            hint="name it, with its password if it needs one: --catalog, or catalog= in Python",
        )
    return folder / CATALOG_FILE


def remember_catalog(folder: Path, catalog: str | None) -> None:
    """Store in a database folder where its catalog is."""
    place = None if catalog is None else catalog_without_password(catalog)
    if place == str(folder / CATALOG_FILE):
        place = None
    if place == catalog_elsewhere(folder):
        return
    if place is None:
        (folder / PLACE_OF_CATALOG).unlink(missing_ok=True)
    else:
        write_whole(folder / PLACE_OF_CATALOG, seal(place.encode()))


def catalog_without_password(catalog: str) -> str:
    """The path or the URL of a catalog as it may be stored and shown.

    >>> catalog_without_password("postgresql://nm:secret@db/plant?sslmode=require")
    'postgresql://nm@db/plant?sslmode=require'
    """
    if "://" not in catalog:
        return str(Path(catalog).expanduser().absolute())
    url = make_url(catalog)._replace(password=None)
    if url.get_backend_name() == "sqlite":
        return str(Path(str(url.database)).absolute())
    return url.difference_update_query(_SECRETS).render_as_string(hide_password=False)
