"""Where things lie in the folder of a database."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote

CATALOG_FILE: Final = "catalog.sqlite"
LOGS: Final = "logs"
CHECKPOINTS: Final = "checkpoints"
ENGINE: Final = "engine"
DELIVERIES: Final = "deliveries"


def file_name(name: str) -> str:
    """The name of the log, or of the checkpoint, of a stream or query."""
    return quote(name.lower(), safe="")


def is_database(folder: Path) -> bool:
    """Whether a database lies in a folder, as far as can be seen from outside."""
    return (folder / CATALOG_FILE).is_file() or (folder / ENGINE).is_dir()
