"""Where the logs of a database are, if not in its folder: the folder remembers it.

Otherwise a database opened once without its --logs would continue with empty ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from nilometer.errors import InputError
from nilometer.log.published import LAYOUT
from nilometer.log.sealed import seal, unseal
from nilometer.upkeep.places import LOGS
from nilometer.upkeep.whole_file import write_whole

PLACE_OF_LOGS: Final = "logs-place"


def logs_of(folder: Path) -> str:
    """The location of a database folder's logs: a path, or a URI."""
    return _read(folder) or str(folder / LOGS)


def settle_logs(folder: Path, logs: str | None) -> str:
    """Where logs lie; `logs`, if somebody names a place, must be that place, and is remembered.

    What follows the `?` of a URI, and the user in it, may differ every time.
    """
    own, known = str(folder / LOGS), _read(folder)
    if logs is None:
        return known or own
    place = logs if "://" in logs else str(Path(logs).expanduser().absolute())
    if known is None and _is_elsewhere(place, own) and _has_logs(folder / LOGS):
        known = own
    if known is not None and _is_elsewhere(place, known):
        raise InputError(
            f"the logs of the database {folder} are elsewhere",
            detail=f"they are in {known}; got {without_password(place)}",
            hint=f"leave out logs (--logs), or move them: nilometer move-logs {folder} "
            f"{without_password(place)}",
        )
    if without_password(place) != known and _is_elsewhere(place, own):
        remember_logs(folder, place)
    return place


def remember_logs(folder: Path, logs: str) -> None:
    """Store in a database folder where its logs are."""
    if _is_elsewhere(logs, str(folder / LOGS)):
        write_whole(folder / PLACE_OF_LOGS, seal(without_password(logs).encode()))
    else:
        (folder / PLACE_OF_LOGS).unlink(missing_ok=True)


def without_password(logs: str) -> str:
    """A URI without credentials: names and passwords are not stored."""
    if "://" not in logs:
        return logs
    parts = urlsplit(logs)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _read(folder: Path) -> str | None:
    path = folder / PLACE_OF_LOGS
    try:
        return unseal(path.read_bytes()).decode()
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError(
            f"{path} is damaged",
            detail=str(error),
            hint="it says where the logs are: restore the folder from a backup, or, if you know "
            "where they are, delete this file and pass it with --logs",
        ) from None


def _is_elsewhere(logs: str, other: str) -> bool:
    def place(one: str) -> str:
        return without_password(one).partition("?")[0].rstrip("/") if "://" in one else one

    return place(logs) != place(other)


def _has_logs(folder: Path) -> bool:
    return any(folder.glob(f"*/{LAYOUT}"))
