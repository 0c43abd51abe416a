"""The name by which other systems, such as brokers, know a database; a copy gets another one.

With the name, the place where it was last used is stored. A folder that is opened elsewhere was
moved, unless a database of this name is still at that place: then it is a copy.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from nilometer.log.sealed import seal, unseal
from nilometer.upkeep.whole_file import write_whole

IDENTITY_FILE: Final = "identity"
PLACE_FILE: Final = "place"
_NAME: Final = re.compile(r"nilometer-[0-9a-f]{12}")


def take_identity(folder: Path) -> str:
    """A name that is unique to this database, and stays even if the folder is moved."""
    name, place = read_identity(folder), _read(folder / PLACE_FILE)
    if not name or (place and _is_held_by_another(name, Path(place), folder)):
        name = f"nilometer-{uuid4().hex[:12]}"
        write_whole(folder / IDENTITY_FILE, seal(name.encode()))
    if place != str(folder):
        with suppress(OSError):  # a full disk: it is stored the next time
            write_whole(folder / PLACE_FILE, seal(os.fsencode(folder)))
    return name


def read_identity(folder: Path) -> str:
    """The name of the database in a folder; empty if it has none, or a damaged one."""
    name = _read(folder / IDENTITY_FILE)
    return name if _NAME.fullmatch(name) else ""


def read_place(folder: Path) -> str:
    """Where a database was last used; empty if unknown. Raises ValueError if damaged."""
    try:
        path = unseal((folder / PLACE_FILE).read_bytes())
    except FileNotFoundError:
        return ""
    if not path.startswith(b"/"):
        raise ValueError("it is not a path")
    return os.fsdecode(path)


def _is_held_by_another(name: str, place: Path, folder: Path) -> bool:
    """Whether another folder at the place of this one has its name."""
    try:
        is_same = place.samefile(folder)
    except OSError:
        return False  # nothing is there any more: it was moved
    return not is_same and _read(place / IDENTITY_FILE) == name


def _read(file: Path) -> str:
    try:
        return os.fsdecode(unseal(file.read_bytes())).strip()
    except (OSError, ValueError):
        return ""
