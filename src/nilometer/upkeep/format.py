"""The version of a database folder's format: a small file in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from nilometer.errors import InputError
from nilometer.log.sealed import seal, unseal
from nilometer.upkeep.whole_file import write_whole
from nilometer.version import VERSION

FORMAT_FILE: Final = "format.json"
FORMAT: Final = 1
"""Must be raised when a release writes what an earlier one cannot read."""
UNSAID: Final = 0
"""The format of folders from before it was stored."""


def read_format(folder: Path) -> int:
    """The format of a folder; UNSAID if not stored. Raises InputError if it cannot be opened."""
    file = folder / FORMAT_FILE
    try:
        content: dict[str, Any] = json.loads(unseal(file.read_bytes()))
        form, release = content["format"], str(content["release"])
    except FileNotFoundError:
        return UNSAID
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"the format of the database {folder} cannot be read",
            detail=f"{file}: {error}",
            hint="nilometer check says what else is damaged; restore the folder from a backup",
        ) from None
    if not isinstance(form, int) or form < 1:
        raise InputError(
            f"the format of the database {folder} cannot be read", detail=f"{file} says {form!r}"
        )
    if form > FORMAT:
        raise InputError(
            f"the database {folder} was written by a newer release of Nilometer",
            detail=f"it has format {form} and was written by {release}, "
            f"this is {VERSION}, which reads formats up to {FORMAT}",
            hint="upgrade Nilometer; the folder is left as it is",
        )
    return form


def write_format(folder: Path) -> None:
    """Store that a folder has the format of this release, unless it is stored already."""
    if read_format(folder) != FORMAT:
        content = {"format": FORMAT, "release": VERSION}
        write_whole(folder / FORMAT_FILE, seal(json.dumps(content).encode()))
