"""A file of an image of a database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ImageFile:
    """One file of the image."""

    path: str
    """Its path in the folder, with slashes."""
    source: Path | bytes
    """The file that it is copied from, or its content."""
    length: int
    """How many bytes of the source it has."""
    is_sealed: bool = False
    """Whether a file of this name and time never changes."""
