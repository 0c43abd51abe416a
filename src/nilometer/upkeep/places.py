"""The layout of a database folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote

CATALOG_FILE: Final = "catalog.sqlite"
PLACE_OF_CATALOG: Final = "catalog-place"
"""Says where the catalog is, if not in the folder."""
LOGS: Final = "logs"
WRITE_AHEAD: Final = "write-ahead"
"""Rows of logs in an object store that are not there yet."""
CHECKPOINTS: Final = "checkpoints"
ENGINE: Final = "engine"
DELIVERIES: Final = "deliveries"


def file_name(name: str) -> str:
    """The name of the log, or of the checkpoint, of a stream or query."""
    return quote(name.lower(), safe="")


def is_database(folder: Path) -> bool:
    """Whether a database lies in a folder, as far as can be seen from outside."""
    files = (CATALOG_FILE, PLACE_OF_CATALOG)
    return any((folder / one).is_file() for one in files) or (folder / ENGINE).is_dir()
